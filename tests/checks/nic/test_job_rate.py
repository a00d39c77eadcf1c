"""What NCCL 2.31 and 2.32 say of devices and settings while a job runs: told with its place, and silent where it is
harmless."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import examples
from topodiag.app.logs import logs
from topodiag.checks.env.job import MisreadSettingInLog
from topodiag.checks.job.settings.diagnostics import NcclReports
from topodiag.checks.network.rdma_errors import RdmaErrors
from topodiag.checks.nic.job import PortFellInLog
from topodiag.checks.nvlink.job import FabricInLog, NvlinksLeftOutInLog
from topodiag.checks.troubles.job import why_harmless
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Job

EARLY, LATE = 1, 5


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


def only(outcome: tuple[Finding, ...]) -> Finding:
    (finding,) = outcome
    return finding


SPEED = "NCCL INFO NET/IB : mlx5_2:1 speed change detected: 400000 -> {} Mbps"


def test_a_port_that_fell_is_named_with_both_rates(tmp_path: Path) -> None:
    finding = only(PortFellInLog().judge(job(tmp_path, SPEED.format(200000), SPEED.format(100000))).findings)
    assert finding.message == "n1: mlx5_2 fell from 400 Gb/s to 100 Gb/s while the job ran"
    assert (finding.where.nodes, finding.where.nics, finding.severity) == (("n1",), ("mlx5_2",), Severity.ERROR)
    assert finding.cost is not None
    assert finding.cost.share == 0.75


@pytest.mark.parametrize("last", ["400000", "800000", "N/A"])
def test_a_port_that_came_back_or_rose_is_silent(tmp_path: Path, last: str) -> None:
    if last != "N/A":
        assert not PortFellInLog().judge(job(tmp_path, SPEED.format(100000), SPEED.format(last))).findings
    assert not PortFellInLog().judge(job(tmp_path, SPEED.format(last))).findings


LINK = "NCCL INFO Unable to get RemoteDeviceType for NVLink {}, igoring."


def test_nvlinks_that_nccl_leaves_out_are_counted_by_gpu(tmp_path: Path) -> None:
    finding = only(NvlinksLeftOutInLog().judge(job(tmp_path, *(LINK.format(at) for at in range(18)))).findings)
    assert "n1: NCCL leaves out 18 NVLinks of GPU0" in finding.message
    assert (finding.where.nodes, finding.where.gpus, finding.severity) == (("n1",), ("GPU0",), Severity.ERROR)
    assert NvlinksLeftOutInLog().judge(job(tmp_path)).status is Status.NOT_APPLICABLE


GID = "NCCL INFO NET/IB: ncclIbAsyncThreadMain: GID table changed on mlx5_3:1"


def test_a_gid_table_that_changes_counts_once_ranks_are_connected(tmp_path: Path) -> None:
    finding = only(RdmaErrors().judge(job(tmp_path, GID)).findings)
    assert "GID table of mlx5_3" in finding.message
    assert (finding.where.nodes, finding.severity) == (("n1",), Severity.WARNING)
    assert not RdmaErrors().judge(job(tmp_path, GID, at=EARLY)).findings


def test_a_device_that_is_given_up_after_a_gid_change_is_an_error(tmp_path: Path) -> None:
    text = "NET/IB : mlx5_3:1 marking device with fatal error after GID-change event handler failed"
    document = job(tmp_path, f"transport/net_ib/common.cc:161 (ncclIbAsyncThreadMain) NCCL WARN {text}")
    finding = only(RdmaErrors().judge(document).findings)
    assert (finding.severity, finding.where.nics) == (Severity.ERROR, ("mlx5_3",))


def wqe(device: str, slow: int, posts: int = 70000) -> str:
    return (
        f"NCCL INFO NET/IB: WQE latency summary [send peer=10.91.3.31 dev={device} qpn=412 port=1]: n={posts}"
        f" slow={slow} thr=1000000ns | post-to-poll ns: mean=5200000.000000 std=2100000.000000 p50=4700000 p90=9100000"
        " p99=14000000 p99.9=21000000 max=44000000"
    )


def test_a_nic_whose_posts_take_longer_than_those_of_the_others_is_named(tmp_path: Path) -> None:
    finding = only(NcclReports().judge(job(tmp_path, wqe("mlx5_0", 26600), wqe("mlx5_3", 0))).findings)
    assert "n1: 38 % of the posts to mlx5_0 take longer than 1 ms" in finding.message
    assert "14 ms" in finding.observed


@examples("lines")
def test_posts_that_say_nothing_of_one_nic_are_silent(tmp_path: Path, lines: list[str]) -> None:
    assert not NcclReports().judge(job(tmp_path, *lines)).findings


def test_a_fabric_whose_bandwidth_is_degraded_is_told(tmp_path: Path) -> None:
    text = "MNNVL busId 0x1b000 NVLink fabric health reports DEGRADED_BANDWIDTH (healthMask 0x1)"
    finding = only(FabricInLog().judge(job(tmp_path, f"init.cc:10 (fillInfo) NCCL ATTN {text}")).findings)
    assert finding.message == "n1: the fabric's bandwidth is degraded on 1 GPU"


@examples("text", "words")
def test_values_that_nccl_refuses_are_told_by_their_variable(tmp_path: Path, text: str, words: str) -> None:
    finding = only(MisreadSettingInLog().judge(job(tmp_path, f"init.cc:10 (x) NCCL WARN {text}")).findings)
    assert finding.message.startswith("NCCL_IB_")
    assert words in finding.message
    assert finding.where.nodes == ("n1",)


def test_a_key_that_is_found_is_silent(tmp_path: Path) -> None:
    text = "NCCL INFO NET/IB: NCCL_IB_PKEY_VALUE=0x8012 takes precedence over NCCL_IB_PKEY index 3"
    assert not MisreadSettingInLog().judge(job(tmp_path, text)).findings


def test_progress_counters_that_do_not_run_are_harmless(tmp_path: Path) -> None:
    text = "NCCL progress counter monitor: cudaDev 0 thread failed to come up within 2000 ms"
    document = job(tmp_path, f"ras/progress_monitor.cc:10 (x) NCCL WARN {text}")
    assert why_harmless(document.events[0], document)


DIAG = "NCCL DIAG [INFO] net bw: tx rank 1 (n1): {} Gbit/s, >30% off median 391.8 Gbit/s in comm 0x37a98d9bd0268b51"


def test_diagnostics_between_the_lines_of_a_log_are_read(tmp_path: Path) -> None:
    finding = only(NcclReports().judge(job(tmp_path, DIAG.format("204.6"))).findings)
    assert (finding.where.nodes, finding.where.ranks) == (("n1",), (1,))
    assert not NcclReports().judge(job(tmp_path, DIAG.format("591.0"))).findings
