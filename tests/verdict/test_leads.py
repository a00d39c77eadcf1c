"""What an excerpt is like, beside what was found in it: where a lead is worth a word, and where it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks.likeness import like
from topodiag.model.finding import Confidence, Finding, Outcome, Severity, Status
from topodiag.model.likeness import Likely, Likeness
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, CauseStatus, State, Verdict
from topodiag.verdict.leads import with_leads

LINE = Origin("out.txt", 2, "imex: peer lost")
LIKELY = (Likely("NVL005", 0.4, ("imex", "peer"), (LINE,)), Likely("JOB005", -0.6, ("lost",), ()))
OPEN = Result(verdict=Verdict(headline="nothing in this evidence says why"))


def found(check: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(check, severity, "as the check says", "", "", ())


def judged(finding: Finding, state: State = State.FAILED, status: CauseStatus = CauseStatus.LIKELY) -> Result:
    return Result(findings=(finding,), verdict=Verdict(state, finding.message, causes=(Cause(finding, status),)))


def leads(result: Result) -> list[str]:
    assert result.verdict is not None
    return [each.id for each in result.verdict.leads]


def test_where_nothing_is_established_the_first_lead_is_a_note_and_the_headline() -> None:
    made = with_leads(OPEN, Likeness(LIKELY))
    assert leads(made) == ["NVL005", "JOB005"]
    [note] = made.findings
    assert (note.id, note.severity, note.confidence, note.evidence) == (
        "NVL005",
        Severity.INFO,
        Confidence.LOW,
        (LINE,),
    )
    assert made.verdict is not None
    assert made.verdict.headline.startswith("nothing here is established; it resembles NVL005 (")
    assert made.verdict.state is State.UNKNOWN


def test_what_is_more_like_a_harmless_text_says_so() -> None:
    made = with_leads(OPEN, Likeness(LIKELY, harmless=True))
    assert made.findings[0].message.startswith(
        "resembles texts in which nothing was wrong; if something is, like NVL005"
    )


def test_a_job_that_reads_like_those_that_were_well_keeps_its_headline() -> None:
    result = replace(OPEN, jobs=(jobs.job(2),))
    made = with_leads(result, Likeness(LIKELY, harmless=True))
    assert leads(made) == ["NVL005", "JOB005"]
    assert made.findings == ()
    assert made.verdict is not None
    assert made.verdict.headline == "nothing in this evidence says why"
    assert with_leads(result, Likeness(LIKELY)).findings != ()


def test_a_fault_that_is_established_stands_alone() -> None:
    result = judged(found("NIC001"), status=CauseStatus.ESTABLISHED)
    assert with_leads(result, Likeness(LIKELY)) is result


def test_beside_a_cause_that_is_not_established_the_leads_are_named_and_nothing_else_changes() -> None:
    result = judged(found("NIC001"))
    made = with_leads(result, Likeness(LIKELY))
    assert leads(made) == ["NVL005", "JOB005"]
    assert made.verdict is not None
    assert not made.verdict.leads_aside
    assert replace(made, verdict=replace(made.verdict, leads=())) == result
    assert with_leads(result, Likeness(LIKELY, harmless=True)) is result


def test_where_the_words_speak_for_what_was_found_the_other_leads_stand_aside() -> None:
    result = judged(found("NVL005"))
    made = with_leads(result, Likeness(LIKELY))
    assert leads(made) == ["JOB005"]
    assert made.verdict is not None
    assert made.verdict.leads_aside
    assert made.verdict.headline == "as the check says"


@pytest.mark.parametrize("effect", ["JOB005", "JOB009"])
@pytest.mark.parametrize("harmless", [False, True])
def test_beside_an_effect_the_first_lead_is_in_the_headline_and_none_is_a_finding(effect: str, harmless: bool) -> None:
    result = judged(found(effect))
    made = with_leads(result, Likeness(LIKELY[:1], harmless))
    assert leads(made) == ["NVL005"]
    assert made.findings == result.findings
    assert made.verdict is not None
    assert made.verdict.headline.startswith(
        "as the check says; what did it is not in sight, the text resembles NVL005 ("
    )


def test_an_effect_that_the_words_speak_for_first_keeps_its_headline() -> None:
    result = judged(found("JOB009"))
    made = with_leads(result, Likeness((Likely("JOB009", 0.1, ("killed",), ()), *LIKELY)))
    assert leads(made) == ["NVL005", "JOB005"]
    assert made.verdict is not None
    assert (made.verdict.headline, made.verdict.leads_aside) == ("as the check says", True)


def test_a_check_that_found_all_well_is_not_spoken_against() -> None:
    cleared = replace(OPEN, outcomes=(Outcome("NVL005", Status.CLEAN),))
    assert leads(with_leads(cleared, Likeness(LIKELY))) == ["JOB005"]


@pytest.mark.parametrize(("score", "harmless", "said"), [(0.4, False, True), (-0.6, False, False), (0.4, True, False)])
def test_a_clear_lead_leaves_open_what_the_checks_call_healthy(score: float, harmless: bool, said: bool) -> None:
    well = Result(verdict=Verdict(State.HEALTHY, "nothing is wrong"))
    made = with_leads(well, Likeness((replace(LIKELY[0], score=score),), harmless))
    assert leads(made) == (["NVL005"] if said else [])
    assert made.findings == ()
    assert made.verdict is not None
    assert made.verdict.state is (State.UNKNOWN if said else State.HEALTHY)
    assert made.verdict.headline.startswith("nothing is wrong, but it resembles NVL005 (") == said


def test_a_note_of_the_check_itself_is_kept_and_comes_first() -> None:
    own = found("NVL005", Severity.INFO)
    result = replace(OPEN, findings=(found("NET001", Severity.INFO), own))
    assert with_leads(result, Likeness(LIKELY)).findings == (own, result.findings[0])


def test_a_cause_that_the_catalogue_does_not_know_is_left_out() -> None:
    assert like(Likely("ZZZ999", 1.0, ("a",), ()), harmless=False) is None
    assert with_leads(OPEN, Likeness((Likely("ZZZ999", 1.0, ("a",), ()),))) is OPEN
