"""From intended to measured: each step carries the check that takes it, and no figure is made up."""

from dataclasses import replace

import pytest

from tests.draw.shown import texts
from topodiag.draw.waterfall import bars_of, draw_waterfall
from topodiag.model.finding import Cost, Finding, Severity, Where
from topodiag.model.verdict import Agreement, Cause, CauseStatus, Price, Quantity, State, Verdict

WHAT = "busbw of all_reduce, 16 ranks on 2 nodes"


def cause(check: str, share: float, used: float, measured: float | None = None, whole: float = 400.0) -> Cause:
    quantity = Quantity(WHAT, measured, source="nccl-tests") if measured is not None else None
    price = Price(predicted=Quantity(WHAT, used), all_gone=Quantity(WHAT, whole), measured=quantity, job_share=share,
                  gbs_lost=whole * share, share=share)  # fmt: skip
    return Cause(
        Finding(check, Severity.ERROR, f"message of {check}", "o", "e", ()), CauseStatus.ESTABLISHED, price=price
    )


def verdict(*causes: Cause, state: State = State.SLOW) -> Verdict:
    return Verdict(state, causes=causes)


def rows(answer: Verdict) -> list[tuple[str, float]]:
    return [(bar.name.split()[0], round(bar.end)) for bar in bars_of(answer)[2] if bar.kind != "missing"]


def test_hardware_takes_before_negotiated_and_settings_before_used() -> None:
    judgement = verdict(cause("GDR001", 0.25, 200, 190), cause("NVL001", 0.25, 200, 190))
    assert rows(judgement) == [("intended", 400), ("NVL001", 300), ("negotiated", 300), ("GDR001", 200), ("used", 200),
                           ("not", 190), ("measured", 190)]  # fmt: skip


def test_each_step_carries_the_id_the_severity_and_what_it_takes() -> None:
    shown = texts(draw_waterfall(verdict(cause("NVL001", 0.5, 200, 200)), prefix="w"))
    assert "NVL001 error" in shown
    assert "−200 GB/s" in shown
    assert "message of NVL001" in shown


def test_causes_that_hide_each_other_never_go_below_what_is_left() -> None:
    judgement = verdict(cause("PCI001", 0.75, 60), cause("NET003", 0.5, 60))
    assert rows(judgement)[1:] == [("PCI001", 100), ("negotiated", 100), ("NET003", 60), ("used", 60)]
    assert any("by itself it takes 200" in text for text in texts(draw_waterfall(judgement)))


def test_causes_that_worsen_each_other_have_a_step_of_their_own() -> None:
    assert ("together", 200) in rows(verdict(cause("PCI001", 0.25, 200), cause("GDR001", 0.125, 200)))


def test_what_was_not_measured_says_so() -> None:
    assert "not in the evidence" in texts(draw_waterfall(verdict(cause("NVL001", 0.5, 200))))


def test_a_node_without_a_job_shows_its_narrowest_place() -> None:
    finding = Finding("NVL001", Severity.ERROR, "m", "o", "e", (), Where(("n1",), ("GPU3",)), Cost(123.6, 1 / 3))
    judgement = verdict(Cause(finding, CauseStatus.ESTABLISHED), state=State.AT_RISK)
    assert rows(judgement) == [("intended", 371), ("NVL001", 247), ("negotiated", 247)]
    assert "not in the evidence" in texts(draw_waterfall(judgement))


@pytest.mark.parametrize("state", [State.FAILED, State.HUNG])
def test_a_job_that_does_not_run_has_no_waterfall(state: State) -> None:
    assert draw_waterfall(verdict(cause("NVL001", 0.5, 200), state=state)) == ""


def test_without_a_price_there_is_no_picture() -> None:
    assert draw_waterfall(Verdict()) == ""
    finding = Finding("NVL001", Severity.ERROR, "m", "o", "e", ())
    assert draw_waterfall(verdict(Cause(finding, CauseStatus.ESTABLISHED))) == ""


@pytest.mark.parametrize(("agreement", "words"), [
    (Agreement.AGREES, "as expected"), (Agreement.PART, "not explained"),
])  # fmt: skip
def test_what_is_left_is_called_as_the_verdict_calls_it(agreement: Agreement, words: str) -> None:
    one = cause("NVL001", 0.5, 200, 150)
    shown = texts(draw_waterfall(verdict(replace(one, price=replace(one.price, agreement=agreement)))))
    assert words in shown


def test_measured_above_used_is_drawn_as_it_is() -> None:
    assert rows(verdict(cause("NVL001", 0.5, 200, 240)))[-1] == ("measured", 240)
