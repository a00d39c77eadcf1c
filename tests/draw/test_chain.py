"""The chain: each cause in a box, what follows below it with the reason, equal ones folded."""

from tests.draw.shown import texts
from topodiag.draw.chain import INSET, MOST_CAUSES, draw_chain
from topodiag.model.finding import Finding, Severity
from topodiag.model.verdict import Cause, CauseStatus, Consequence, Price, Verdict


def finding(check: str, message: str = "message", severity: Severity = Severity.ERROR) -> Finding:
    return Finding(check, severity, message, "o", "e", ())


def chain(*below: Consequence, check: str = "NVL001", status: CauseStatus = CauseStatus.ESTABLISHED) -> Cause:
    return Cause(
        finding(check, "GPU3 has 12 of 18 NVLinks active"), status, price=Price(123.6, 1 / 3), consequences=below
    )


def test_a_cause_says_its_check_how_sure_it_is_and_what_it_costs() -> None:
    shown = texts(draw_chain(Verdict(causes=(chain(),))))
    assert "1. NVL001 error, established" in shown
    assert "GPU3 has 12 of 18 NVLinks active" in shown
    assert "123.6 GB/s lost (33 %)" in shown


def test_what_follows_stands_below_with_its_reason() -> None:
    svg = draw_chain(Verdict(causes=(chain(Consequence(finding("BEN001"), "each ring crosses that GPU")),)))
    shown = texts(svg)
    assert "each ring crosses that GPU" in shown
    assert shown.index("each ring crosses that GPU") < shown.index("BEN001 error")
    assert svg.count('class="arrow"') == 1


def test_equal_consequences_are_one_box_with_their_count() -> None:
    many = [Consequence(finding("NET008", f"rank {at} lost its peer"), "why") for at in range(63)]
    svg = draw_chain(Verdict(causes=(chain(*many),)))
    assert "NET008 error x 63" in texts(svg)
    assert svg.count('class="arrow"') == 1


def test_a_consequence_of_a_consequence_is_one_step_further_in() -> None:
    svg = draw_chain(
        Verdict(causes=(chain(Consequence(finding("NET003"), "a"), Consequence(finding("BEN001"), "b", 2)),))
    )
    assert f'x="{INSET}"' in svg
    assert f'x="{2 * INSET}"' in svg


def test_many_causes_and_consequences_are_counted() -> None:
    many = tuple(chain(*(Consequence(finding(f"JOB{at:03d}"), "why") for at in range(20))) for _ in range(20))
    shown = texts(draw_chain(Verdict(causes=many)))
    assert "12 more findings that follow" in shown
    assert f"{20 - MOST_CAUSES} more causes not drawn" in shown


def test_a_hypothesis_has_a_dashed_frame() -> None:
    assert 'class="bad dashed"' in draw_chain(Verdict(causes=(chain(status=CauseStatus.HYPOTHESIS),)))


def test_no_cause_no_picture() -> None:
    assert draw_chain(Verdict()) == ""
