"""HST004: the libraries of the NVIDIA driver are of another version than its kernel module."""

from dataclasses import replace
from typing import Any

from tests.checks import nodes
from tests.checks.bent import bent
from tests.checks.nodes import read
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from tests.verdict.judged import running, verdict
from topodiag.checks.host.driver import DriverMismatch
from topodiag.evidence.host.kernel_log import KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.events import Event
from topodiag.model.finding import Outcome, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Topic
from topodiag.model.verdict import CauseStatus

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


def test_a_healthy_node_is_clean() -> None:
    assert judge(answering()).status is Status.CLEAN


def test_a_node_without_a_gpu_has_no_driver_to_judge() -> None:
    assert judge(Node("login", topics=frozenset({Topic.KERNEL_LOG, Topic.PCI}))).status is not Status.FINDING


def test_where_nvml_answers_on_the_host_one_process_alone_is_refused() -> None:
    expect(judge(replace(answering(), events=events(OLD))), severity="WARNING", confidence="MEDIUM")


def test_it_is_a_cause_of_a_job_that_ended_there() -> None:
    (finding,) = judge(replace(log(OLD), host="n0")).findings
    first = verdict(finding, case=running()).causes[0]
    assert (first.finding.id, first.status) == ("HST004", CauseStatus.ESTABLISHED)
