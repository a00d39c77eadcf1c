"""NIC001 to NIC005: ports that are down, slow or err, NICs that differ or are missing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.networks import (
    DOWN,
    counter,
    ib_h100,
    roce_h100,
    with_counters,
    with_netdev,
    with_nic,
    with_port,
    with_ports,
)
from tests.checks.nodes import HOUR, only, read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.app.logs import logs
from topodiag.checks.env.job import MisreadSettingInLog
from topodiag.checks.job.settings.diagnostics import NcclReports
from topodiag.checks.network.rdma_errors import RdmaErrors
from topodiag.checks.nic.count import MissingComputeNic
from topodiag.checks.nic.differ import NicsDiffer
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.checks.nic.job import PortFellInLog
from topodiag.checks.nic.rate import NicPortSlow
from topodiag.checks.nic.state import NicPortDown
from topodiag.checks.nvlink.job import FabricInLog, NvlinksLeftOutInLog
from topodiag.checks.registry import Subject, check_of
from topodiag.checks.shared.node.nic_counters import LIMITS
from topodiag.checks.troubles.job import why_harmless
from topodiag.model.devices import Nic, NicRole, PciDevice
from topodiag.model.job import Job
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic


def down(node: Node) -> Any:
    return NicPortDown().judge(node, ())


def slow(node: Node, *peers: Node) -> Any:
    return NicPortSlow().judge(node, peers)


@pytest.mark.parametrize("check", [NicPortDown, NicPortSlow])
@pytest.mark.parametrize("role", [NicRole.STORAGE, NicRole.MANAGEMENT, NicRole.UNKNOWN])
def test_nics_that_do_not_carry_the_job_are_not_judged(check: Any, role: NicRole) -> None:
    node = with_nic(with_port(ib_h100(), 3, **DOWN), 3, role=role)
    assert status(check().judge(node, ())) == "clean"
    none = replace(node, nics=tuple(replace(nic, role=role) for nic in node.nics))
    assert status(check().judge(none, ())) == "not_applicable"


# --- NIC001 ---------------------------------------------------------------------------------------------------


def second_ports() -> Node:
    """Each device with a second port, which is down on the first device."""
    node = ib_h100()
    nics = tuple(replace(nic, ports=(nic.ports[0], network.port(400.0, "InfiniBand", 2))) for nic in node.nics)
    return machine("made", {"nics/0/ports/1": DOWN_NOW}, made=lambda: replace(node, nics=nics))


DOWN_NOW = {"state": "DOWN", "phys_state": "Polling", "rate_gbps": 10.0}


@examples("state", "phys", "kind", "remedy")
def test_the_remedy_fits_the_state(state: str, phys: str | None, kind: str, remedy: str) -> None:
    facts = {"state": read(state), "phys_state": read(phys) if phys else Fact()}
    finding = expect(down(with_port(ib_h100(), 0, **facts)), severity="ERROR")
    assert finding.message.endswith(kind)
    assert remedy in " ".join(finding.fix)


def test_different_faults_are_different_findings() -> None:
    node = with_port(with_port(ib_h100(), 1, **DOWN), 2, state=read("INIT"))
    assert [finding.where.nics for finding in down(node).findings] == [("mlx5_1",), ("mlx5_2",)]


# --- NIC002 ---------------------------------------------------------------------------------------------------


def test_a_node_slower_than_the_same_nics_elsewhere_is_a_warning() -> None:
    node = with_port(ib_h100(), None, rate_gbps=read(200.0))
    outcome = slow(node, ib_h100(), replace(ib_h100(), host="gpu-002"))
    expect(outcome, severity="WARNING", expected="*16 ports of the same product on other nodes*")


# --- NIC004: MTU, link layer and firmware that differ, within a node and between nodes


def differ(node: Node, *peers: Node) -> Any:
    return NicsDiffer().judge(node, peers)


def host(node: Node, name: str) -> Node:
    return replace(node, host=name)


def with_firmware(node: Node, version: str) -> Node:
    return replace(node, nics=tuple(replace(nic, firmware=read(version)) for nic in node.nics))


def test_a_single_nic_has_no_sibling_but_those_of_other_nodes() -> None:
    node = machine("ib_h100", {"nics": 1})
    assert status(differ(node, host(ib_h100(), "gpu-002"))) == "clean"


def test_a_node_that_differs_from_most_others_is_found_and_the_others_are_not() -> None:
    old = with_firmware(ib_h100(), "28.36.1010")
    two, three = host(ib_h100(), "gpu-002"), host(ib_h100(), "gpu-003")
    finding = only(differ(old, two, three))
    assert finding.message == "firmware of ConnectX-7 is 28.36.1010, on 2 other nodes 28.41.1000"
    assert finding.expected == "28.41.1000, as on gpu-002, gpu-003"
    assert status(differ(two, old, three)) == "clean"


def test_of_two_nodes_that_differ_the_older_firmware_is_named() -> None:
    old, new = with_firmware(ib_h100(), "28.9.1"), host(ib_h100(), "gpu-002")
    assert status(differ(new, old)) == "clean"
    assert only(differ(old, new)).where.nodes == ("gpu-001",)


def test_other_products_on_other_nodes_do_not_count() -> None:
    elsewhere = network.full(nodes.dgx_a100(), part="ConnectX-6", firmware="20.1.1")
    assert status(differ(ib_h100(), elsewhere)) == "clean"


def test_other_nodes_link_layer_and_mtu_count() -> None:
    roce, ib = host(roce_h100(), "gpu-002"), ib_h100()
    assert "link layer" in only(differ(roce, ib, host(ib, "gpu-003"))).message
    small = with_ports(ib, lambda at, nic: {"active_mtu": read(2048)})
    assert "MTU of ConnectX-7 is 2048" in only(differ(small, host(ib, "gpu-002"), host(ib, "gpu-003"))).message


# --- NIC005: compute NICs that are missing by the datasheet, by the other nodes, or by the shape of the rails


LISTED = frozenset({Topic.RDMA_DEVICES})


def missing(node: Node, *peers: Node) -> Any:
    return MissingComputeNic().judge(node, peers)


def dgx(nics: int = 8) -> Node:
    """A DGX H100 by DMI, with so many of its NICs."""
    node = ib_h100()
    return replace(node, system=read("DGX H100", "os-state"), nics=node.nics[:nics], topics=LISTED)


def plain(nics: int = 8) -> Node:
    """The same parts in a machine that nobody knows."""
    return replace(dgx(nics), system=Fact())


def far(node: Node) -> Node:
    """No NIC below a GPU's switch."""
    return nodes.with_words(
        node, lambda a, b: "NODE" if ("GPU" in a and "mlx" in b) or ("GPU" in b and "mlx" in a) else None
    )


def one_lost(driver: str = "") -> Node:
    """A DGX H100 one of whose NICs has no driver, or another one."""
    bus_id = "0000:4a:00.0"
    held: Fact[str] = read(driver) if driver else Fact(why="no driver is bound")
    node = network.with_pci(dgx(7), bus_id, class_code=read(0x020700))
    return replace(node, nics=(*node.nics, Nic(bus_id, bus_id, part=read("ConnectX-7"), driver=held)))


def two_for_each() -> Node:
    """Two GPUs below the switch of each NIC."""

    def word(a: str, b: str) -> str | None:
        names = sorted((a, b))
        if not (names[0].startswith("GPU") and names[1].startswith("mlx")):
            return None
        return "PXB" if int(names[0][3:]) // 2 == int(names[1][5:]) else "SYS"

    return nodes.with_words(plain(4), word)


def one_for_most() -> Node:
    """One NIC near all GPUs but one."""
    return nodes.with_words(plain(1), lambda a, b: "PXB" if "mlx5_0" in (a, b) and "GPU7" not in (a, b) else None)


def flattened() -> Node:
    """A guest whose PCI tree lost its switches."""
    node = replace(plain(7), pci={}, os=nodes.flat_vm().os)
    tree = {
        str(device.bus_id): PciDevice(str(device.bus_id), root="pci0000:00", numa=read(-1), width=read(0))
        for device in (*node.gpus, *node.nics)
    }
    return replace(node, pci=tree)


BUILDERS: dict[str, Any] = {
    "dgx": dgx, "plain": plain, "one_lost": one_lost, "two_for_each": two_for_each, "one_for_most": one_for_most,
    "flattened": flattened, "second_ports": second_ports,
}  # fmt: skip


def test_a_node_with_fewer_nics_than_most_others_is_found() -> None:
    outcome = missing(far(plain(6)), far(plain()), replace(far(plain()), host="gpu-003"))
    finding = expect(outcome, expected="8 compute NICs, as 2 other nodes with the same GPUs", confidence="MEDIUM")
    assert finding.cost.gbs_lost == 100.0


def test_nodes_with_other_gpus_are_no_measure() -> None:
    assert status(missing(plain(), network.full(nodes.dgx_a100()), nodes.t4_node())) == "clean"
    assert status(missing(far(plain(4)), nodes.dgx_a100())) == "clean"


def test_a_node_with_more_nics_than_the_others_is_clean() -> None:
    assert status(missing(plain(), far(plain(6)), far(plain(6)))) == "clean"


@examples("check", "node", "changes", "wanted")
def test_nics_of_a_machine(check: str, node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    """Healthy machines with something changed."""
    outcome = check_of(Subject.NODE, check)().judge(machine(node, changes, **BUILDERS), ())
    assert shown(outcome, wanted) == wanted


def errors(node: Node) -> Any:
    return NicPortErrors().judge(node, ())


@examples("node", "changes", "wanted")
def test_counters_of_ports(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(errors(machine(node, changes, flapped=flapped, went_back=went_back)), wanted) == wanted


def test_many_counters_are_cut_in_the_message() -> None:
    grown = [counter(name, 0, 50) for name in list(LIMITS)[:10]]
    assert "and 4 other counters" in only(errors(with_counters(roce_h100(), 0, *grown))).message


def flapped(totals: dict[str, int], days: float) -> Node:
    """Ports by their numbers that flapped so often since boot."""
    node = with_counters(ib_h100(), None, counter("link_downed", 0))
    for index, total in totals.items():
        node = with_counters(node, int(index), counter("link_downed", total))
    return nodes.with_os(node, uptime_s=read(days * 24 * HOUR))


def went_back() -> Node:
    back = {name: counter(name, 9, 3) for name in network.IB_COUNTERS}
    return with_netdev(with_ports(ib_h100(), lambda at, nic: {"counters": back}), None, counters={})


NAMES = st.sampled_from([*(name for name in LIMITS if "*" not in name), "rx_prio0_discards", "unheard_of"])
READING = st.one_of(st.none(), st.integers(0, 2**64))


@given(st.lists(st.tuples(NAMES, READING, READING, st.floats(0, 1e9)), max_size=8), st.booleans())
def test_no_counters_make_it_raise(drawn: list[tuple[str, int | None, int | None, float]], roce: bool) -> None:
    counters = [counter(name, first, later, seconds) for name, first, later, seconds in drawn]
    outcome = errors(with_counters(roce_h100() if roce else ib_h100(), None, *counters))
    assert all(finding.message and finding.fix and finding.expected for finding in outcome.findings)


@pytest.mark.parametrize(
    ("packets", "lost", "found"),
    [(8_000_000_000, 801, True), (8_000_000_000, 800, False), (500, 101, True), (None, 101, True)],
)
def test_lost_packets_of_a_report_weigh_as_a_share_of_what_the_port_carried(
    packets: int | None, lost: int, found: bool
) -> None:
    carried = f"PortXmitPkts:....................{packets}\n" if packets is not None else ""
    text = f"# Port extended counters: Lid 71 port 3 (CapMask: 0x5300)\nPortSelect:......................3\n{carried}"
    text += f"LinkDownedCounter:...............0\nPortXmitDiscards:................{lost}\n"
    assert (status(errors(node_of(text))) == "finding") is found


# --- What NCCL 2.31 and 2.32 say of devices and settings while a job runs: told with its place, and silent where it is
#  harmless


LATE = 5
"""The place in the log of lines that NCCL prints once ranks are connected."""


def job(tmp_path: Path, *lines: str, at: int = LATE) -> Job:
    """Two connected ranks on n0 and n1 of a job of 2.32; rank 1 prints the lines at this place of its log."""
    for rank in range(2):
        head = f"n{rank}:{rank + 7}:{rank + 7} [0]"
        record = f"rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x37a98d9bd0268b51 - Init"
        text = [
            f"{head} NCCL INFO NCCL version 2.32.3+cuda13.4",
            f"{head} NCCL INFO [Rank {rank}] ncclCommInitRank comm 0x7f37b76da010 {record} START",
            f"{head} NCCL INFO ncclCommInitRank comm 0x7f37b76da010 {record} COMPLETE",
            f"{head} NCCL INFO Channel 00/0 : {rank}[0] -> {1 - rank}[0] [send] via NET/IB/0/GDRDMA",
            f"{head} NCCL INFO Connected all rings, use ring PXN 0 GDR 1",
        ]
        if rank:
            text[at:at] = [f"{head} {line}" for line in lines]
        (tmp_path / f"rank{rank}.log").write_text("\n".join(text) + "\n")
    (run,) = logs([str(tmp_path)]).jobs
    return run


CHECKS = {
    check.__name__: check
    for check in (PortFellInLog, NvlinksLeftOutInLog, RdmaErrors, NcclReports, FabricInLog, MisreadSettingInLog)
}


@examples("check", "lines", "at", "wanted")
def test_what_nccl_prints_of_its_devices_while_the_job_runs(
    tmp_path: Path, check: str, lines: list[str], at: int | None, wanted: Wanted
) -> None:
    assert shown(CHECKS[check]().judge(job(tmp_path, *lines, at=at or LATE)), wanted) == wanted


def wqe(device: str, slow: int, posts: int = 70000) -> str:
    return (
        f"NCCL INFO NET/IB: WQE latency summary [send peer=10.91.3.31 dev={device} qpn=412 port=1]: n={posts}"
        f" slow={slow} thr=1000000ns | post-to-poll ns: mean=5200000.000000 std=2100000.000000 p50=4700000 p90=9100000"
        " p99=14000000 p99.9=21000000 max=44000000"
    )


def test_a_nic_whose_posts_take_longer_than_those_of_the_others_is_named(tmp_path: Path) -> None:
    outcome = NcclReports().judge(job(tmp_path, wqe("mlx5_0", 26600), wqe("mlx5_3", 0)))
    expect(outcome, message="*n1: 38 % of the posts to mlx5_0 take longer than 1 ms*", observed="*14 ms*")


def test_nvlinks_that_nccl_leaves_out_are_counted_by_gpu(tmp_path: Path) -> None:
    line = "NCCL INFO Unable to get RemoteDeviceType for NVLink {}, igoring."
    outcome = NvlinksLeftOutInLog().judge(job(tmp_path, *(line.format(at) for at in range(18))))
    expect(outcome, message="*n1: NCCL leaves out 18 NVLinks of GPU0*", nodes=("n1",), gpus=("GPU0",), severity="ERROR")


@examples("lines")
def test_posts_that_say_nothing_of_one_nic_are_silent(tmp_path: Path, lines: list[str]) -> None:
    assert not NcclReports().judge(job(tmp_path, *lines)).findings


@examples("text", "words")
def test_values_that_nccl_refuses_are_told_by_their_variable(tmp_path: Path, text: str, words: str) -> None:
    wanted: Wanted = {"message": ["NCCL_IB_*", f"*{words}*"], "nodes": ["n1"]}
    outcome = MisreadSettingInLog().judge(job(tmp_path, f"init.cc:10 (x) NCCL WARN {text}"))
    assert shown(outcome, wanted) == wanted


def test_progress_counters_that_do_not_run_are_harmless(tmp_path: Path) -> None:
    text = "NCCL progress counter monitor: cudaDev 0 thread failed to come up within 2000 ms"
    document = job(tmp_path, f"ras/progress_monitor.cc:10 (x) NCCL WARN {text}")
    assert why_harmless(document.events[0], document)
