"""What lines of a job's programs say: the store where ranks meet, ends of processes, calls that differ, lost peers."""

from pathlib import Path

from tests.pasted import loud
from tests.tables import examples
from topodiag.checks.shared.phrases import advice_by_words
from topodiag.evidence.nccl_log.grammar.job_lines import end_of, peer_of, said_of, why_unreached
from topodiag.evidence.nccl_log.grammar.prefix import application

LISTEN = "The server socket has failed to"


@examples("text", "kind", "advice")
def test_a_store_without_name_port_or_answer_is_an_error_with_its_own_advice(text: str, kind: str, advice: str) -> None:
    pair = said_of(text)
    assert pair[0] == kind
    assert advice in advice_by_words(text)


@examples("text")
def test_a_port_that_another_process_has_ends_the_one_that_wants_it(text: str) -> None:
    assert said_of(text) == ("ended", {"how": "port taken"})
    assert said_of(f"{LISTEN} bind to [::]:29500 (errno: 97 - Address family not supported by protocol).") == (
        "connect",
        {},
    )


NO_FAMILY = "[W socket.cpp:401] [c10d] The server socket cannot be initialized on [::]:29500 (errno: {})."


def test_an_address_family_that_the_host_lacks_is_gone_past() -> None:
    assert said_of(NO_FAMILY.format("97 - Address family not supported by protocol")) == ("note", {})
    files = said_of(NO_FAMILY.format("24 - Too many open files"))
    assert files is None or files[0] != "note"


# --- ends of one process in the words of interpreters, shells and launchers -----------------------------------


@examples("text", "named")
def test_a_line_says_how_one_process_ended(text: str, named: dict[str, str]) -> None:
    kind, said = said_of(text) or ("", {})
    assert kind == "ended"
    assert {name: said.get(name, "") for name in named} == named


@examples("text")
def test_what_is_listed_raised_in_source_or_still_running_is_no_end(text: str) -> None:
    assert end_of(text) is None


def test_the_rank_of_an_exception_without_a_message_is_the_one_in_front() -> None:
    for front, rank in (("[rank3]: ", "3"), ("2025-10-31 03:11:02 [rank12]: ", "12"), ("", "")):
        table, row = application(f"{front}AssertionError") or ("", {})
        assert (table, row["label"]) == ("event", rank)


# --- words of frameworks for ranks whose calls differ, and texts in which the same words tell of nothing wrong


@examples("text")
def test_a_placement_group_that_ray_cannot_make_has_no_room(text: str) -> None:
    assert (said_of(text) or ("", {}))[1].get("how") == "no room"
    assert said_of("INFO that placement group creation timed out is met by another trial") is None
    assert said_of("INFO No current placement group found. Creating a new placement group.") is None


@examples("text")
def test_the_same_words_without_a_difference_accuse_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text + "\n") == []
    pair = said_of(text)
    assert pair is None or "told" not in pair[1]


# --- A peer that is not reached is read by the system's error and by whom it was, whichever program says it ---


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


# --- what schedulers, clouds and launchers say of a job that they ended ---------------------------------------


@examples("text", "how")
def test_a_line_says_who_ended_the_job(text: str, how: str) -> None:
    kind, named = said_of(text) or ("", {})
    assert (kind, named.get("how")) == ("ended", how)


@examples("text")
def test_what_a_text_explains_or_sets_is_no_end(text: str) -> None:
    assert said_of(text) is None
