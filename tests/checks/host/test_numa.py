"""NUM001 and NUM002: NICs on another socket, processes bound to another socket."""

from dataclasses import replace
from typing import Any

from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read, status
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.host.numa import GpuNicOnDifferentSockets
from topodiag.checks.host.process_cores import ProcessAwayFromGpu
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
