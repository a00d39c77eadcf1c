"""Which instance type a topology file without GPUs is of, by its layout and its bus ids."""

import pytest

from tests.nccl.small_trees import GEN4, GEN5, cpu, element, host
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.infer_instance import instance_of_file

NDV4 = (("0001", "0002"), ("0003", "0004"), ("000b", "000c"), ("000d", "000e"))
NDV5 = tuple((f"{number:04x}",) for number in range(1, 9))


def function(bus: str, kind: str, speed: str) -> Element:
    return element("pci", busid=bus, class_=kind, link_speed=speed, link_width=16)


def cloud(groups: tuple[tuple[str, ...], ...], speed: str, *, numas: int = 2, bus: str = "{}:00:00.0") -> Element:
    """A switch for each group of GPUs, with as many NICs, whose domains are 0101 and following."""
    switches, number = [], 0
    for at, gpus in enumerate(groups):
        below = []
        for domain in gpus:
            number += 1
            below.append(function(bus.format(domain), "0x030200", speed))
            below.append(function(bus.format(f"01{number:02x}"), "0x020700", speed))
        switches.append(
            element("pci", *below, busid=f"ffff:ff:0{at + 1}.0", class_="0x060400", link_speed=speed, link_width=16)
        )
    share = len(switches) // numas
    return host(*(cpu(numa, *switches[numa * share : numa * share + share]) for numa in range(numas)))


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (cloud(NDV4, "16 GT/s", numas=4), "ND96asr_v4"),
        (cloud(NDV4, GEN4, numas=1), "ND96asr_v4"),  # an older file of the same type: all below one processor
        (cloud(NDV5, GEN5), "ND96isr_H100_v5"),
        (cloud(NDV5, "32 GT/s"), "ND96isr_H100_v5"),
        (cloud(NDV5, GEN4), None),  # NICs and GPUs one by one, of an older generation
        (cloud(NDV4, GEN5), None),
        (cloud(NDV5[:4], GEN5), None),
        (cloud(NDV5, GEN5, bus="0000:{0[1]}{0[3]}:00.0"), None),  # the layout of many clouds, with plain bus ids
        (host(cpu(0)), None),
    ],
)
def test_azures_layouts_are_known_by_their_bus_ids(tree: Element, expected: str | None) -> None:
    spec = instance_of_file(tree)
    assert (spec.name if spec else None) == expected
