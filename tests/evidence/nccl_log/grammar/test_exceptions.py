"""Ends of one process in the words of interpreters, shells and launchers."""

from tests.tables import examples
from topodiag.evidence.nccl_log.grammar.job_lines import end_of, said_of
from topodiag.evidence.nccl_log.grammar.prefix import application


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
