"""HST005: a probe of the node hangs."""

from dataclasses import replace

from tests.checks import nodes
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.host.hung_probes import ProbeHangs
from topodiag.model.finding import Status
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, NotObserved, Topic

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
