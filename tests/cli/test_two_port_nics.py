"""NICs with two ports in each command: as fast as one NIC of both rates, and no faster (NCCL merges the ports)."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.nccl.small_trees import GEN5, cpu, element, gpu, host, nvlink, pci
from tests.tables import examples
from topodiag.emit.nccl_xml import to_text
from topodiag.model.nccl_tree import Element

Run = Callable[..., CompletedProcess[str]]
SWITCHES = nvlink("fffffff:ffff:ff", 18)
NCCL = ("--nccl", "2.32.3", "--nodes", "2")


def port(number: int, mbps: int, guid: int, at: int = 1) -> Element:
    return element("nic", element("net", name=f"mlx5_{number}", dev=number, speed=mbps, port=at, guid=hex(guid), gdr=1))


def function(bus: str, below: Element) -> Element:
    return element("pci", below, busid=bus, class_="0x020700", link_speed=GEN5, link_width=16)


def one_port(slot: int) -> list[Element]:
    return [function(f"0000:{slot + 0x50:x}:00.0", port(slot, 400000, slot + 1))]


def two_functions(slot: int) -> list[Element]:
    """ConnectX-7 with two ports: a function for each, of one adapter."""
    return [function(f"0000:{slot + 0x50:x}:00.{at}", port(2 * slot + at, 200000, slot + 1, at + 1)) for at in range(2)]


def machine(folder: Path, nics: Callable[[int], Sequence[Element]], count: int = 8) -> str:
    """Eight Hopper GPUs with NVSwitches; a switch of PCIe for each GPU, with its NIC where there are so many."""
    slots = [
        pci(
            f"{slot + 0x10:x}",
            *(nics(slot) if slot < count else ()),
            gpu(f"{slot + 0x30:x}", SWITCHES, sm=90, speed=GEN5, dev=slot, rank=slot, gdr=1),
            speed=GEN5,
        )
        for slot in range(8)
    ]
    path = folder / f"{nics.__name__}.xml"
    path.write_text(to_text(host(cpu(0, *slots[:4]), cpu(1, *slots[4:]))))
    return str(path)


@pytest.fixture
def machines(tmp_path: Path) -> tuple[str, str]:
    return machine(tmp_path, one_port), machine(tmp_path, two_functions)


def figures(text: str) -> list[str]:
    """The numbers of a page, without the names of files and NICs."""
    return re.findall(r"\d[\d.,]*\d|\d", re.sub(r"\S*\.xml|mlx5_\S+", "", text))


def test_a_prediction_has_the_bandwidth_of_both_ports_once(topodiag: Run, machines: tuple[str, str]) -> None:
    whole, ports = (
        json.loads(topodiag("topo", "predict", file, *NCCL, "--format", "json").stdout) for file in machines
    )
    for made in (whole, ports):
        for graph in made["graphs"]:
            graph.pop("orders", None)
    assert [graph["bw_inter"] for graph in ports["graphs"]] == [graph["bw_inter"] for graph in whole["graphs"]]
    assert (ports["graphs"], ports["channels"]) == (whole["graphs"], whole["channels"])
    assert [nic["name"] for nic in ports["virtual_nics"]] == [f"mlx5_{at}+mlx5_{at + 1}" for at in range(0, 16, 2)]
    assert {nic["gbs"] for nic in ports["virtual_nics"]} == {50.0}
    assert whole["virtual_nics"] == []


@examples("command")
def test_prices_and_layouts_are_those_of_one_nic_with_both_rates(
    topodiag: Run, machines: tuple[str, str], command: tuple[str, ...]
) -> None:
    whole, ports = (topodiag(*(file if word == "FILE" else word for word in command)) for file in machines)
    assert ports.returncode == whole.returncode < 2, ports.stderr
    assert figures(ports.stdout) == figures(whole.stdout)


def test_a_lost_port_costs_half_of_its_nic(topodiag: Run, machines: tuple[str, str]) -> None:
    whole, ports = machines
    half = topodiag("topo", "what-if", ports, *NCCL, "--remove", "nic:mlx5_1", "-q")
    slow = topodiag("topo", "what-if", whole, *NCCL, "--rate", "mlx5_0=200", "-q")
    assert figures(half.stdout) == figures(slow.stdout)[1:]  # without `200` of the change itself
    process = topodiag("topo", "what-if", ports, *NCCL, "--remove", "mlx5_0+mlx5_1", "-q")
    other = topodiag("topo", "what-if", whole, *NCCL, "--remove", "mlx5_0", "-q")
    assert figures(process.stdout) == figures(other.stdout)


def test_a_check_has_nothing_against_two_ports(topodiag: Run, machines: tuple[str, str]) -> None:
    for file in machines:
        done = topodiag("topo", "check", file, "--format", "json")
        assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])


def test_files_and_pictures_hold_both_ports(topodiag: Run, machines: tuple[str, str], tmp_path: Path) -> None:
    _, ports = machines
    process = topodiag("emit", "nccl-topo", ports, "-o", str(tmp_path / "made.xml"))
    assert process.returncode == 0, process.stderr
    assert (tmp_path / "made.xml").read_text().count("<net ") == 16
    assert topodiag("emit", "picture", ports, "-o", str(tmp_path / "made.svg")).returncode == 0
    drawn = (tmp_path / "made.svg").read_text()
    assert all(f"mlx5_{number}" in drawn for number in range(16))


def test_a_list_of_ports_leaves_what_it_names(topodiag: Run, machines: tuple[str, str]) -> None:
    _, ports = machines
    firsts = "=" + ",".join(f"mlx5_{number}" for number in range(0, 16, 2))
    done = topodiag("topo", "predict", ports, *NCCL, "--env", f"NCCL_IB_HCA={firsts}", "--format", "json")
    document = json.loads(done.stdout)
    assert (document["virtual_nics"], document["assumed"]) == ([], [])
    assert document["graphs"][0]["channels"] * document["graphs"][0]["bw_inter"] == 8 * 24
    other = topodiag("topo", "predict", ports, *NCCL, "--env", "NCCL_IB_HCA=ibp9")
    assert "takes none of the NICs" in " ".join(other.stdout.split())
