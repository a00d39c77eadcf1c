"""NUM001 and NUM002 by logs: sockets of GPUs, NICs and processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.checks import jobs
from topodiag.checks.host.job import AwayFromGpuInLog, NicOnOtherSocket
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Message, Process


def affinity(gpu: int, taken: str, near: str, own: str) -> Message:
    return jobs.message(
        "affinity",
        f"ncclTopoGetCpuAffinity: Affinity for GPU {gpu} is {taken}. (GPU affinity = {near} ; CPU affinity = {own}).",
    )


def bound(own: tuple[str, str]) -> Callable[[int, int, Process], Process]:
    """Processes with the cores `own`, by the half of the node that their GPU is in."""

    def hook(rank: int, host: int, process: Process) -> Process:
        half = rank % 8 // 4
        near = ("0-47", "48-95")[half]
        return replace(process, messages=(affinity(rank % 8, "empty, ignoring", near, own[half]),))

    return hook


def test_nics_beside_their_gpus_are_clean() -> None:
    assert NicOnOtherSocket().judge(jobs.job()).status is Status.CLEAN


def test_a_socket_without_a_nic_is_information() -> None:
    job = jobs.job(nics=4, systems=lambda host, system: jobs.system(host, nics=4))
    outcome = NicOnOtherSocket().judge(job)
    assert {finding.severity for finding in outcome.findings} == {Severity.INFO}
    assert outcome.findings[0].where.gpus == ("GPU4", "GPU5", "GPU6", "GPU7")


def test_pxn_reaches_the_other_socket_over_nvlink() -> None:
    rows = [row | {"proxy": 0} if row["rank"] != 0 else row for row in jobs.healthy_rows(2, 8, 4)]
    job = jobs.job(nics=4, rows=rows, systems=lambda host, system: jobs.system(host, nics=4))
    assert NicOnOtherSocket().judge(job).status is Status.CLEAN


def test_without_a_print_or_a_network_there_is_nothing_to_say() -> None:
    assert NicOnOtherSocket().judge(jobs.job(systems=lambda host, system: None)).status is Status.UNKNOWN
    assert NicOnOtherSocket().judge(jobs.job(1)).status is Status.NOT_APPLICABLE


def test_processes_on_their_gpus_cores_are_clean() -> None:
    assert AwayFromGpuInLog().judge(jobs.job(1, process=bound(("0-3", "48-51")))).status is Status.CLEAN


def test_processes_pinned_to_the_other_socket_are_a_warning() -> None:
    (finding,) = AwayFromGpuInLog().judge(jobs.job(1, process=bound(("48-51", "0-3")))).findings
    assert finding.severity is Severity.WARNING
    assert finding.where.ranks == tuple(range(8))


def test_a_container_with_few_cores_is_information() -> None:
    (finding,) = AwayFromGpuInLog().judge(jobs.job(1, process=bound(("0-1", "0-1")))).findings
    assert finding.severity is Severity.INFO
    assert finding.where.gpus == ("GPU4", "GPU5", "GPU6", "GPU7")
    assert str(finding.coverage) == "4 of 8 processes of these nodes"


def test_processes_that_share_a_gpu_name_it_once() -> None:
    job = jobs.job(1, 16, process=bound(("0-1", "0-1")))  # ranks 8 to 15 say the GPUs of ranks 0 to 7 again
    (finding,) = AwayFromGpuInLog().judge(job).findings
    assert finding.where.gpus == ("GPU4", "GPU5", "GPU6", "GPU7")
    assert "processes of GPU4-7 may" in finding.message


def test_nodes_that_say_the_same_are_one_finding() -> None:
    (finding,) = AwayFromGpuInLog().judge(jobs.job(5, process=bound(("0-1", "0-1")))).findings
    assert finding.where.nodes == ("n0", "n1", "n2", "n3", "n4")
    assert finding.message.startswith("n0, n1, n2 and 2 more nodes: ")
    assert str(finding.coverage) == "20 of 40 processes of these nodes"
    assert len(finding.where.ranks) == 20


def test_no_word_of_cores_is_unknown() -> None:
    assert AwayFromGpuInLog().judge(jobs.job(1)).status is Status.UNKNOWN


def masked(gpus: int) -> Callable[[int, int, Process], Process]:
    """NCCL to 2.27: the first GPUs of each node were bound, of the others there is no line."""

    def hook(rank: int, host: int, process: Process) -> Process:
        line = jobs.message("affinity", f"Setting affinity for GPU {rank % 8} to ffff,00000000")
        return replace(process, messages=(line,)) if rank % 8 < gpus else process

    return hook


OLD = ("2.18.6",)


def test_masks_of_older_versions_on_all_processes_are_clean() -> None:
    outcome = AwayFromGpuInLog().judge(jobs.job(1, process=masked(8), nccl_versions=OLD))
    assert outcome.status is Status.CLEAN
    assert str(outcome.coverage) == "8 of 8 processes"


def test_processes_that_an_older_version_did_not_bind_are_information() -> None:
    (finding,) = AwayFromGpuInLog().judge(jobs.job(1, process=masked(4), nccl_versions=OLD)).findings
    assert (finding.severity, finding.where.ranks) == (Severity.INFO, (4, 5, 6, 7))
    assert finding.where.gpus == ("GPU4", "GPU5", "GPU6", "GPU7")


def test_a_line_that_is_not_there_says_nothing_by_itself() -> None:
    one = jobs.job(1, process=masked(7), nccl_versions=OLD)  # may be lost
    newer = jobs.job(1, process=masked(4), nccl_versions=("2.28.9",))  # says so in words
    none = jobs.job(1, process=masked(4), nccl_versions=OLD, world=lambda c: replace(c, started=c.started & False))
    for job in (one, newer, none):
        assert AwayFromGpuInLog().judge(job).status is Status.CLEAN
