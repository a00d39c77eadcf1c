"""NIC003: what grows between two samples, and what totals say; what NCCL says of devices while a job runs."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.networks import counter, ib_h100, roce_h100, with_counters, with_netdev, with_ports
from tests.checks.nodes import HOUR, only, read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.app.logs import logs
from topodiag.checks.env.job import MisreadSettingInLog
from topodiag.checks.job.settings.diagnostics import NcclReports
from topodiag.checks.network.rdma_errors import RdmaErrors
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.checks.nic.job import PortFellInLog
from topodiag.checks.nvlink.job import FabricInLog, NvlinksLeftOutInLog
from topodiag.checks.shared.node.nic_counters import LIMITS
from topodiag.checks.troubles.job import why_harmless
from topodiag.model.job import Job
from topodiag.model.node import Node


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
