"""HST002, HST004 to HST007, NUM001 and NUM002: devices, the driver, probes, storage, sockets of NICs and processes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs, nodes
from tests.checks.bent import Built, bent, machine
from tests.checks.nodes import read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.evidence.filled import node_of
from tests.tables import examples
from tests.verdict.judged import running, verdict
from topodiag.checks.host.driver import DriverMismatch, ProbeHangs
from topodiag.checks.host.job import AwayFromGpuInLog, NicOnOtherSocket
from topodiag.checks.host.limits import DevicesNotGiven
from topodiag.checks.host.numa import GpuNicOnDifferentSockets, ProcessAwayFromGpu
from topodiag.checks.registry import Subject, check_of
from topodiag.evidence.host.kernel_log import LEAST_WHOLE, KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.events import Event
from topodiag.model.finding import Outcome, Severity, Status
from topodiag.model.job import Communicator, Message
from topodiag.model.node import Node, Process
from topodiag.model.provenance import Fact, NotObserved, Topic
from topodiag.model.verdict import CauseStatus


def test_a_folder_that_ls_does_not_find_lacks_the_nodes_of_rdma() -> None:
    text = "# ls /dev/infiniband\nls: cannot access '/dev/infiniband': No such file or directory\n"
    expect(DevicesNotGiven().judge(node_of(text)), message="*uverbs*")


# --- HST004: the libraries of the NVIDIA driver are of another version than its kernel module


OLD = """\
[  812.1] NVRM: API mismatch: the client has the version 570.124.06, but
[  812.1] NVRM: this kernel module has the version 570.86.15.  Please
[  812.1] NVRM: make sure that this kernel module and all NVIDIA driver
[  812.1] NVRM: components have the same version.
"""


def events(text: str) -> tuple[Event, ...]:
    return tuple(KernelLog().parse(Blob("dmesg.txt", text.encode())).records)


def log(text: str, **changes: Any) -> Node:
    """A kernel log alone."""
    return Node("n7", events=events(text), topics=frozenset({Topic.KERNEL_LOG}), **changes)


def judge(node: Node) -> Outcome:
    return DriverMismatch().judge(node)


def answering() -> Node:
    """A node whose NVML answers."""
    node = nodes.hgx_h100()
    return replace(node, os=replace(node.os, cuda_version=read("12.8")))


@examples("lines", "changes", "wanted")
def test_a_driver_that_does_not_fit_its_library(
    lines: list[str] | None, changes: dict[str, Any] | None, wanted: Wanted
) -> None:
    """A kernel log alone, or a node of which nothing but these facts is known."""
    node = bent(log("\n".join([*lines, ""])) if lines else Node("n7"), changes or {})
    assert shown(judge(node), wanted) == wanted


def test_a_node_without_a_gpu_has_no_driver_to_judge() -> None:
    assert judge(Node("login", topics=frozenset({Topic.KERNEL_LOG, Topic.PCI}))).status is not Status.FINDING


def test_where_nvml_answers_on_the_host_one_process_alone_is_refused() -> None:
    expect(judge(replace(answering(), events=events(OLD))), severity="WARNING", confidence="MEDIUM")


def test_it_is_a_cause_of_a_job_that_ended_there() -> None:
    (finding,) = judge(replace(log(OLD), host="n0")).findings
    first = verdict(finding, case=running()).causes[0]
    assert (first.finding.id, first.status) == ("HST004", CauseStatus.ESTABLISHED)


# --- HST005: a probe of the node hangs


GPUS = frozenset({Topic.GPUS})


def waited(*probes: NotObserved, topics: frozenset[Topic] = frozenset()) -> Node:
    return replace(nodes.hgx_h100(), time=Fact("2026-03-02T08:15:30Z"), not_observed=probes, topics=topics)


def waits(what: str, seconds: float = 10.0, of: frozenset[Topic] = GPUS) -> NotObserved:
    return NotObserved(what, f"no answer within {seconds:g} s", of=of, timed_out_s=seconds)


@examples("hung", "told", "wanted")
def test_probes_that_hang(hung: list[tuple[str, float]], told: list[str] | None, wanted: Wanted) -> None:
    """Probes by their seconds, and the topics of which others told."""
    node = waited(*(waits(*probe) for probe in hung), topics=frozenset(Topic[topic] for topic in told or ()))
    assert shown(ProbeHangs().judge(node), wanted) == wanted


def test_a_node_whose_whole_collector_hung_is_an_error() -> None:
    bare = Node("gpu07", time=Fact("2026-03-02T08:15:30Z"), not_observed=(waits("nvidia-smi-q", 30, frozenset()),))
    expect(ProbeHangs().judge(bare), severity="ERROR", nodes=("gpu07",))


def test_a_tool_that_is_absent_or_refused_does_not_hang() -> None:
    absent = NotObserved("nvidia-smi", "not installed", of=GPUS)
    refused = NotObserved("dmesg", "permission denied", needs_root=True)
    assert ProbeHangs().judge(waited(absent, refused, topics=GPUS)).status is Status.CLEAN
    assert ProbeHangs().judge(waited(absent, refused)).status is Status.UNKNOWN, "nobody asked the driver"


def test_pasted_texts_are_no_capture() -> None:
    assert ProbeHangs().judge(nodes.hgx_h100()).status is Status.NOT_APPLICABLE


# --- HST006 and HST007: storage does not answer, processes wait in the kernel; it stops, or memory loses data


SILENT = "nfs: server 10.2.0.9 not responding, still trying"


def kernel_log(*lines: str) -> Node:
    text = "".join(f"[{100 + at}.000000] {line}\n" for at, line in enumerate(lines))
    events = tuple(KernelLog().parse(Blob("dmesg.txt", text.encode())).records)
    return replace(nodes.hgx_h100(), events=events, topics=frozenset({Topic.KERNEL_LOG}))


@examples("check", "lines", "part", "wanted")
def test_what_the_kernel_says(check: str, lines: list[str], part: bool | None, wanted: Wanted) -> None:
    """One line a second from 100 s on; of a `part` of a log the rest may say that the server came back."""
    made = kernel_log(*lines)
    outcome = check_of(Subject.NODE, check)().judge(replace(made, topics=frozenset()) if part else made)
    assert shown(outcome, wanted) == wanted


@pytest.mark.parametrize(("end", "told"), [("\n", {Topic.KERNEL_LOG}), ("", set())], ids=["whole", "cut"])
def test_a_log_whose_last_line_has_no_end_is_cut_and_may_lack_the_answer(end: str, told: set[Topic]) -> None:
    text = "\n".join(f"[{100 + at}.000000] {SILENT}" for at in range(LEAST_WHOLE)) + end
    source = KernelLog()
    assert source.told(source.parse(Blob("dmesg.txt", text.encode()))) == told


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
