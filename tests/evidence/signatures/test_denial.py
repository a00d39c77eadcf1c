"""Lines that name a fault and report none."""

from tests.tables import examples
from topodiag.evidence.signatures.entry import counts_none, denies, warns

FAULT = "link down"


@examples("line", "denied")
def test_words_around_a_match_deny_it(line: str, denied: bool) -> None:
    start = line.index(FAULT)
    assert denies(line, start, start + len(FAULT)) is denied


@examples("fields", "none")
def test_a_count_of_zero_reports_nothing(fields: dict[str, int], none: bool) -> None:
    assert counts_none(fields) is none


@examples("line", "warned")
def test_a_warning_of_python_ends_no_program(line: str, warned: bool) -> None:
    assert warns(line, line.index("undefined symbol")) is warned
