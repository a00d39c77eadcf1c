"""What follows from a cause stands in a line below it."""

from dataclasses import replace

from topodiag.model.finding import Cost, Finding, Follows, Severity, Where
from topodiag.report.findings import draw_findings
from topodiag.report.text import Page, Style

CAUSE = Finding(
    "NIC001", Severity.ERROR, "mlx5_3 is down", where=Where(nodes=("a",)), observed="Down", expected="Active",
    cost=Cost(text="one rail"), fix=("plug the cable in",),
)  # fmt: skip
CONSEQUENCE = replace(
    CAUSE, id="NET003", message="7 of 8 NICs are used", observed="7 NICs", fix=("find the eighth",),
    follows=Follows("NIC001", CAUSE.message, "a port that is down is not used"),
)  # fmt: skip


def drawn(*, verbose: bool) -> str:
    page = Page(Style(width=80, verbose=verbose))
    draw_findings(page, [CAUSE, CONSEQUENCE], several_nodes=False)
    return "\n".join(line.plain for line in page.lines)


def test_a_consequence_is_a_line_below_its_cause() -> None:
    text = drawn(verbose=False)
    assert "└ NET003  7 of 8 NICs are used" in text
    assert text.splitlines()[-1].endswith("(-v: in full)")
    assert "find the eighth" not in text


def test_verbose_shows_a_consequence_in_full() -> None:
    text = drawn(verbose=True)
    assert "find the eighth" in text
    assert "from NIC001 above: a port that is down is not used" in text
