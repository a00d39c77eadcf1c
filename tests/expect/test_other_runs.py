"""Other runs on the same nodes: one that reaches more than a cause leaves rules it out."""

from dataclasses import replace

from tests.expect.measured_runs import run
from topodiag.expect.expect import expected
from topodiag.expect.hypotheses import Explained, explain
from topodiag.expect.other_runs import Judged, on_same_nodes
from topodiag.expect.verdict import verdict_of

BRIDGE = {"NCCL_NET_GDR_LEVEL": "SYS"}


def judged(collective: str, busbw: float, **env: str) -> Judged:
    measured = run(collective, 16, busbw, env=env)
    estimate = expected(measured, system="DGX H100", nodes=2)
    return Judged(measured, estimate, verdict_of(measured, estimate.expectation, estimate.why))


def explained(slow: Judged, *others: Judged) -> Explained:
    return explain(slow.run, slow.modelled, slow.verdict, others=on_same_nodes(slow.run, others))


def words(found: Explained) -> str:
    return " ".join(cause.cause for cause in found.causes)


def test_a_broadcast_at_line_rate_rules_out_ports_and_fabric() -> None:
    slow, fast = judged("all_gather", 170.0), judged("broadcast", 380.0)
    alone = explained(slow)
    assert "half their rate" in words(alone)
    found = explained(slow, fast)
    assert "half their rate" not in words(found)
    assert "lossy" not in words(found)
    assert any("broadcast on the same nodes reaches 380 GB/s" in why for why in found.ruled_out)
    assert "one direction at a time" in words(found)  # of which a broadcast says nothing


def test_a_run_under_other_settings_says_nothing() -> None:
    slow, other = judged("all_gather", 170.0), judged("broadcast", 380.0, NCCL_ALGO="Ring")
    assert explained(slow, other) == explained(slow)


def test_a_slow_run_beside_it_says_nothing() -> None:
    slow, other = judged("all_gather", 170.0), judged("broadcast", 150.0)
    assert explained(slow, other).causes == explained(slow).causes


def test_the_run_itself_is_no_other_run() -> None:
    slow = judged("all_gather", 170.0)
    assert on_same_nodes(slow.run, [slow, replace(slow)]) == ()
