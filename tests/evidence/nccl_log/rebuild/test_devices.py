"""What a process says of its network devices: ports as listed, and the virtual NICs that NCCL makes of them."""

import pytest

from topodiag.evidence.nccl_log.grammar.grammar import kind_of
from topodiag.evidence.nccl_log.rebuild.process import process_of
from topodiag.model.job import Process
from topodiag.model.job_wires import nics_of

LIST = "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [2]mlx5_2:1/RoCE [RO]; OOB eno1:10.0.0.1<0>"
BRACES = (
    "NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [1]={[2] mlx5_2:1/IB, [3] mlx5_3:1/IB} [RO];"
    " OOB ib0:10.0.0.1<0>"
)
MADE = "NET/IB : Made virtual device [{}] name={} speed={} ndevs={}"
GDR = "NET/IB : GPU Direct RDMA {} for HCA {} '{}'"
PORT = "NET/IB: [{}] mlx5_{}:uverbs0:1/RoCE provider=Mlx5 speed=200000 context=0x7f00 pciPath=/sys/devices/a ar=0"


def process(*lines: str) -> Process:
    return process_of("n0", 1, [(kind_of(line) or "", line, None, 1) for line in lines], {})


CASES = (
    ("each port is a NIC, before 2.24 and where nothing is merged", [LIST], "0 mlx5_0, 1 mlx5_1, 2 mlx5_2"),
    (
        "two functions of an adapter, 2.24 and later",
        [LIST, MADE.format(0, "mlx5_0", 200000, 1), MADE.format(1, "mlx5_1", 200000, 1),
         MADE.format(3, "mlx5_0+mlx5_1", 400000, 2)],
        "2 mlx5_2, 3 mlx5_0+mlx5_1",
    ),
    (
        "rails and planes behind, 2.30 and later",
        [LIST, MADE.format(3, "mlx5_0+mlx5_1", 400000, 2) + " rail=-1 plane=16387"],
        "2 mlx5_2, 3 mlx5_0+mlx5_1",
    ),
    ("a NIC of one port has a number of its own from 2.24 to 2.26",
     [LIST, MADE.format(3, "mlx5_0+mlx5_1", 400000, 2), MADE.format(4, "mlx5_2", 200000, 1)],
     "3 mlx5_0+mlx5_1, 4 mlx5_2"),
    ("lists up to 2.23", [BRACES], "0 mlx5_0+mlx5_1, 1 mlx5_2+mlx5_3"),
    ("only lines of INIT, of which the second thread's come late",
     [LIST, GDR.format("Enabled", 0, "mlx5_0"), GDR.format("Enabled", 1, "mlx5_1"),
      GDR.format("Enabled", 3, "mlx5_0+mlx5_1"), GDR.format("Enabled", 1, "mlx5_1")],
     "2 mlx5_2, 3 mlx5_0+mlx5_1"),
    ("an excerpt without the list", [GDR.format("Enabled", 2, "mlx5_0+mlx5_1")], "2 mlx5_0+mlx5_1"),
)  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_connections_number_the_virtual_nics_in_the_place_of_their_ports(lines: list[str], expected: str) -> None:
    nics = nics_of(process(*lines))
    assert ", ".join(f"{number} {nic.name}" for number, nic in sorted(nics.items())) == expected


def test_ports_stay_listed_and_carry_what_is_said_of_their_virtual_nic() -> None:
    rank = process(BRACES, GDR.format("Disabled", 1, "mlx5_2+mlx5_3"))
    assert [(hca.name, hca.gdr) for hca in rank.hcas] == [
        ("mlx5_0", None), ("mlx5_1", None), ("mlx5_2", False), ("mlx5_3", False),
    ]  # fmt: skip
    old = process(
        LIST, "NET/IB : GPU Direct RDMA Disabled for GPU 2[2] / HCA 1 'mlx5_1' (no module or not supported by GPU)"
    )
    assert [(hca.name, hca.gdr) for hca in old.hcas] == [("mlx5_0", None), ("mlx5_1", False), ("mlx5_2", None)]
    alone = process(GDR.format("Disabled", 2, "mlx5_0+mlx5_1"))
    assert [(hca.name, hca.gdr) for hca in alone.hcas] == [("mlx5_0", False), ("mlx5_1", False)]


@pytest.mark.parametrize(
    ("lists", "ports", "cut"),
    [([LIST], 3, False), ([BRACES], 4, False), ([LIST[:50]], 2, True), ([LIST[:50], LIST], 3, False), ([], 0, False)],
)
def test_a_list_without_its_end_may_lack_ports(lists: list[str], ports: int, cut: bool) -> None:
    rank = process(*lists)
    assert (len(rank.hcas), rank.hcas_cut) == (ports, cut)


def test_rails_and_planes_of_a_list_are_no_part_of_the_link_layer() -> None:
    rank = process(
        "NET/IB : Using [0]mlx5_0:1:0:1/RoCE [1]mlx5_1:1::2/IB [2]mlx5_2:1:3/RoCE [RO]; OOB eno1:10.0.0.1<0>"
    )
    assert [(hca.name, hca.port, hca.link_layer) for hca in rank.hcas] == [
        ("mlx5_0", 1, "RoCE"), ("mlx5_1", 1, "IB"), ("mlx5_2", 1, "RoCE"),
    ]  # fmt: skip


def test_a_virtual_nic_is_as_fast_as_its_ports_together() -> None:
    named = process(LIST, MADE.format(3, "mlx5_0+mlx5_1", 400000, 2))
    assert [(nic.speed_mbps, nic.link_layer) for nic in named.vnics] == [(400000, "RoCE")]
    lines = [PORT.format(at, at) for at in (0, 1)]
    assert nics_of(process(LIST, *lines, GDR.format("Enabled", 3, "mlx5_0+mlx5_1")))[3].speed_mbps == 400000
    assert nics_of(process(LIST, lines[0], GDR.format("Enabled", 3, "mlx5_0+mlx5_1")))[3].speed_mbps is None


def test_lines_of_virtual_nics_are_devices_and_no_messages() -> None:
    assert not process(LIST, MADE.format(3, "mlx5_0+mlx5_1", 400000, 2), "TOPO/NET : Made vNic 3").said("virtual nic")
