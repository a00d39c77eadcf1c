"""NUM001 and NUM002: NICs on another socket, processes bound to another socket; of nodes and by logs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.checks import jobs, nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.host.job import AwayFromGpuInLog, NicOnOtherSocket
from topodiag.checks.host.numa import GpuNicOnDifferentSockets
from topodiag.checks.host.process_cores import ProcessAwayFromGpu
from topodiag.checks.registry import Subject, check_of
from topodiag.model.finding import Severity
from topodiag.model.job import Communicator, Message
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic
from topodiag.model.system import Process


def placed(node: Node) -> Any:
    return GpuNicOnDifferentSockets().judge(node, ())


def bound(node: Node, *processes: Process) -> Any:
    return ProcessAwayFromGpu().judge(replace(node, processes=processes), ())


def process(gpu: int, cpus: str, pid: int = 4711) -> Process:
    return Process(pid, (gpu,), cpus_allowed=read(cpus, f"proc-{pid}"))


def one_socket() -> Node:
    return replace(nodes.l40s_box(), numa=nodes.sockets("0-31", "32-63", per_socket=2))


def crossed() -> Node:
    """The box with one GPU and one NIC left, on different sockets: what a badly placed pod sees."""
    node = nodes.l40s_box()
    return replace(node, gpus=node.gpus[:1], nics=node.nics[1:])


def two_nics() -> Node:
    """A matrix alone of an H100 machine with one NIC a socket, each near one GPU."""
    node = nodes.bare_matrix(nodes.hgx_h100())
    node = replace(node, nics=tuple(nic for nic in node.nics if nic.name in ("mlx5_0", "mlx5_4")))
    return nodes.with_words(node, lambda a, b: "SYS" if "mlx5" in a + b and a[-1] != b[-1] else None)


BUILDERS: dict[str, Any] = {"one_socket": one_socket, "crossed": crossed, "two_nics": two_nics}


# --- NUM001 ---------------------------------------------------------------------------------------------------


@examples("node", "changes", "wanted")
def test_gpus_and_nics_on_different_sockets(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(placed(machine(node, changes, **BUILDERS)), wanted) == wanted


# --- NUM002 ---------------------------------------------------------------------------------------------------


@examples("node", "processes", "wanted")
def test_processes_away_from_their_gpus(node: str, processes: list[tuple[int, str]], wanted: Wanted) -> None:
    """Each process by its GPU and the cores that it may use."""
    running = [process(gpu, cpus, pid) for pid, (gpu, cpus) in enumerate(processes)]
    assert shown(bound(machine(node), *running), wanted) == wanted


def test_a_process_with_several_gpus_is_not_judged() -> None:
    many = Process(1, (0, 3), cpus_allowed=read("0-7"))
    node = replace(nodes.l40s_box(), topics=frozenset({Topic.PROCESSES}))
    assert status(bound(node, many)) == "not_applicable"
    assert status(bound(node)) == "not_applicable"


def test_cores_and_places_that_were_not_seen_are_unknown() -> None:
    node = nodes.l40s_box()
    assert status(bound(node, Process(1, (0,)))) == "unknown"
    nowhere = replace(nodes.with_gpus(node, cpu_affinity=read(""), numa=Fact()), numa=(), pci={}, cpu=replace(node.cpu))
    assert status(bound(nowhere, process(0, "0-3"))) == "unknown"


# --- NUM001 and NUM002 by logs: sockets of GPUs, NICs and processes


def affinity(gpu: int, taken: str, near: str, own: str) -> Message:
    return jobs.message(
        "affinity",
        f"ncclTopoGetCpuAffinity: Affinity for GPU {gpu} is {taken}. (GPU affinity = {near} ; CPU affinity = {own}).",
    )


def bound_ranks(own: tuple[str, str]) -> Callable[[int, int, jobs.Process], jobs.Process]:
    """Processes with the cores `own`, by the half of the node that their GPU is in."""

    def hook(rank: int, host: int, process: jobs.Process) -> jobs.Process:
        half = rank % 8 // 4
        near = ("0-47", "48-95")[half]
        return replace(process, messages=(affinity(rank % 8, "empty, ignoring", near, own[half]),))

    return hook


def over_pxn() -> list[dict[str, Any]]:
    return [row | {"proxy": 0} if row["rank"] != 0 else row for row in jobs.healthy_rows(2, 8, 4)]


def masked(gpus: int) -> Callable[[int, int, jobs.Process], jobs.Process]:
    """NCCL to 2.27: the first GPUs of each node were bound, of the others there is no line."""

    def hook(rank: int, host: int, process: jobs.Process) -> jobs.Process:
        line = jobs.message("affinity", f"Setting affinity for GPU {rank % 8} to ffff,00000000")
        return replace(process, messages=(line,)) if rank % 8 < gpus else process

    return hook


def not_started(communicator: Communicator) -> Communicator:
    return replace(communicator, started=communicator.started & False)


HOOKS: dict[str, Any] = {"bound": bound_ranks, "masked": masked, "over_pxn": over_pxn(), "not_started": not_started}


@examples("check", "given", "wanted")
def test_sockets_of_a_job(check: str, given: jobs.Given, wanted: Wanted) -> None:
    assert shown(check_of(Subject.JOB, check)().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


def test_a_socket_without_a_nic_is_information() -> None:
    job = jobs.job(nics=4, systems=lambda host, system: jobs.system(host, nics=4))
    outcome = NicOnOtherSocket().judge(job)
    assert {finding.severity for finding in outcome.findings} == {Severity.INFO}
    assert outcome.findings[0].where.gpus == ("GPU4", "GPU5", "GPU6", "GPU7")


def test_nodes_that_say_the_same_are_one_finding() -> None:
    outcome = AwayFromGpuInLog().judge(jobs.job(5, process=bound_ranks(("0-1", "0-1"))))
    finding = expect(outcome, nodes=("n0", "n1", "n2", "n3", "n4"), message="n0, n1, n2 and 2 more nodes: *")
    assert str(finding.coverage) == "20 of 40 processes of these nodes"
    assert len(finding.where.ranks) == 20
