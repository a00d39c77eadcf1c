"""Where a check of the links looks, in a job whose log shows no machine; what lines show alone is in tests/outputs."""

from tests.checks.excerpts import HEAD, result_of


def test_without_a_print_it_is_said_where_a_narrow_link_is_seen() -> None:
    (outcome,) = (outcome for outcome in result_of(HEAD + "Using network IB\n").outcomes if outcome.check == "PCI001")
    assert "topodiag scan" in outcome.why
