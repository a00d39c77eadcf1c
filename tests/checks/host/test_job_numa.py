"""NUM001 and NUM002 by logs: sockets of GPUs, NICs and processes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.host.job import AwayFromGpuInLog, NicOnOtherSocket
from topodiag.model.finding import Severity
from topodiag.model.job import Communicator, Message, Process


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


def over_pxn() -> list[dict[str, Any]]:
    return [row | {"proxy": 0} if row["rank"] != 0 else row for row in jobs.healthy_rows(2, 8, 4)]


def masked(gpus: int) -> Callable[[int, int, Process], Process]:
    """NCCL to 2.27: the first GPUs of each node were bound, of the others there is no line."""

    def hook(rank: int, host: int, process: Process) -> Process:
        line = jobs.message("affinity", f"Setting affinity for GPU {rank % 8} to ffff,00000000")
        return replace(process, messages=(line,)) if rank % 8 < gpus else process

    return hook


def not_started(communicator: Communicator) -> Communicator:
    return replace(communicator, started=communicator.started & False)


HOOKS: dict[str, Any] = {"bound": bound, "masked": masked, "over_pxn": over_pxn(), "not_started": not_started}


@examples("given", "wanted")
def test_nics_of_the_other_socket(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(NicOnOtherSocket().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


@examples("given", "wanted")
def test_processes_away_from_their_gpus(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(AwayFromGpuInLog().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


def test_a_socket_without_a_nic_is_information() -> None:
    job = jobs.job(nics=4, systems=lambda host, system: jobs.system(host, nics=4))
    outcome = NicOnOtherSocket().judge(job)
    assert {finding.severity for finding in outcome.findings} == {Severity.INFO}
    assert outcome.findings[0].where.gpus == ("GPU4", "GPU5", "GPU6", "GPU7")


def test_nodes_that_say_the_same_are_one_finding() -> None:
    outcome = AwayFromGpuInLog().judge(jobs.job(5, process=bound(("0-1", "0-1"))))
    finding = expect(outcome, nodes=("n0", "n1", "n2", "n3", "n4"), message="n0, n1, n2 and 2 more nodes: *")
    assert str(finding.coverage) == "20 of 40 processes of these nodes"
    assert len(finding.where.ranks) == 20
