"""Which warnings tell of no fault."""

from tests.checks import jobs
from tests.tables import examples
from topodiag.checks.troubles.job import why_harmless


@examples("text")
def test_a_call_that_failed_is_no_missing_symbol(text: str) -> None:
    assert not why_harmless(jobs.event("other", text), jobs.job())


@examples("text")
def test_an_optional_symbol_that_the_library_has_not_is_harmless(text: str) -> None:
    assert why_harmless(jobs.event("other", text), jobs.job())
