"""What schedulers, clouds and launchers say of a job that they ended."""

from tests.tables import examples
from topodiag.evidence.nccl_log.grammar.job_lines import said_of


@examples("text", "how")
def test_a_line_says_who_ended_the_job(text: str, how: str) -> None:
    kind, named = said_of(text) or ("", {})
    assert (kind, named.get("how")) == ("ended", how)


@examples("text")
def test_what_a_text_explains_or_sets_is_no_end(text: str) -> None:
    assert said_of(text) is None
