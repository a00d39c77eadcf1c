"""A peer that is not reached is read by the system's error and by whom it was, whichever program says it."""

from tests.tables import examples
from topodiag.evidence.nccl_log.grammar.job_lines import peer_of, said_of, why_unreached


@examples("text", "why", "peer")
def test_the_error_and_the_peer_are_read_in_any_tool(text: str, why: str, peer: str) -> None:
    assert (why_unreached(text), peer_of(text)) == (why, peer)


@examples("text")
def test_what_is_tried_again_fetched_or_no_attempt_is_none(text: str) -> None:
    pair = said_of(text)
    assert pair is None or "why" not in pair[1]


def test_a_peer_that_refuses_was_reached_but_for_the_bridge_of_each_host() -> None:
    assert said_of("oob_tcp: connect to 10.4.0.2:4000 failed: Connection refused") is None
    assert said_of("oob_tcp: connect to 172.17.0.1:4000 failed: Connection refused") == (
        "connect",
        {"peer": "172.17.0.1", "why": "own"},
    )
