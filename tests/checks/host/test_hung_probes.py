"""HST005: a probe of the node hangs."""

from __future__ import annotations

from dataclasses import replace

from tests.checks import nodes
from topodiag.checks.host.hung_probes import ProbeHangs
from topodiag.model.finding import Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, NotObserved
from topodiag.model.topics import Topic

GPUS = frozenset({Topic.GPUS})


def waited(*probes: NotObserved, told: frozenset[Topic] = frozenset()) -> Node:
    return replace(nodes.hgx_h100(), time=Fact("2026-03-02T08:15:30Z"), not_observed=probes, told=told)


def hung(what: str, seconds: float = 10.0, of: frozenset[Topic] = GPUS) -> NotObserved:
    return NotObserved(what, f"no answer within {seconds:g} s", of=of, timed_out_s=seconds)


def test_what_nothing_else_answered_for_is_an_error_and_the_rest_a_warning() -> None:
    judged = ProbeHangs().judge(waited(hung("nvidia-smi -q -x")))
    assert [finding.severity for finding in judged.findings] == [Severity.ERROR]
    beside = ProbeHangs().judge(waited(hung("nvidia-smi -q -x"), told=GPUS))
    assert [finding.severity for finding in beside.findings] == [Severity.WARNING]


def test_calls_of_one_tool_are_counted_and_not_listed() -> None:
    (finding,) = ProbeHangs().judge(waited(hung("nvidia-smi -q -x"), hung("nvidia-smi topo -m"), hung("nvml"))).findings
    assert finding.message == "nvidia-smi (2 calls), nvml hang: no answer within 10 s"


def test_a_node_whose_whole_collector_hung_is_an_error() -> None:
    bare = Node("gpu07", time=Fact("2026-03-02T08:15:30Z"), not_observed=(hung("nvidia-smi-q", 30, frozenset()),))
    (finding,) = ProbeHangs().judge(bare).findings
    assert (finding.severity, finding.where.nodes) == (Severity.ERROR, ("gpu07",))


def test_a_tool_that_is_absent_or_refused_does_not_hang() -> None:
    absent = NotObserved("nvidia-smi", "not installed", of=GPUS)
    refused = NotObserved("dmesg", "permission denied", needs_root=True)
    assert ProbeHangs().judge(waited(absent, refused, told=GPUS)).status is Status.CLEAN
    assert ProbeHangs().judge(waited(absent, refused)).status is Status.UNKNOWN, "nobody asked the driver"


def test_a_probe_that_had_no_time_is_unknown() -> None:
    assert ProbeHangs().judge(waited(hung("nvml", 0.0))).status is Status.UNKNOWN
    assert ProbeHangs().judge(waited(hung("nvml", 4.9))).status is Status.UNKNOWN


def test_pasted_texts_are_no_capture() -> None:
    assert ProbeHangs().judge(nodes.hgx_h100()).status is Status.NOT_APPLICABLE
