"""Causes stand above what follows from them, and each consequence says why."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from tests.tables import examples
from topodiag.checks.registry import ids
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Cost, Finding, Severity, Where
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.result import Case
from topodiag.verdict import conditions
from topodiag.verdict.causes import arranged
from topodiag.verdict.interface import RULES, relations_of
from topodiag.words.own_data import own_data

E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


def found(check: str, severity: Severity = E, nodes: tuple[str, ...] = ("n0",), **parts: Any) -> Finding:
    where = Where(nodes=nodes, jobs=parts.pop("jobs", ()))
    return Finding(check, severity, parts.pop("message", f"{check} is so"), "", "", (), where, **parts)


def order(*findings: Finding, case: Case | None = None) -> list[str]:
    return [finding.id for finding in arranged(findings, case or Case())]


def causes(*findings: Finding, case: Case | None = None) -> dict[str, str]:
    reports = arranged(findings, case or Case())
    return {finding.id: finding.follows.check if finding.follows else "" for finding in reports}


def failing(kind: str, text: str = "", **changes: Any) -> Case:
    """A job on n0 and n1 whose first error is of this kind."""
    return Case(jobs=(jobs.job(2, events=[jobs.event(kind, text or kind, **changes)]),))


def test_what_follows_from_another_finding_is_printed_below_it() -> None:
    low, links, search = found("BEN001", cost=Cost(gbs_lost=200.0)), found("NVL001", W), found("NET006")
    assert order(low, links, search) == ["NVL001", "BEN001", "NET006"]


def test_each_consequence_names_its_cause_with_the_reason() -> None:
    [_, low] = arranged([found("BEN001"), found("NVL001", message="GPU3 has 12 of 18 links")], Case())
    assert (low.follows.check, low.follows.message) == ("NVL001", "GPU3 has 12 of 18 links")
    assert low.follows.why == "all ranks take the channels that the most degraded GPU allows"


MARCH = 1_772_431_300.0
"""Seconds of the epoch: 2026-03-02 06:01:40."""


@examples("lasted_s", "waited_ms", "watchdog_at", "explains")
def test_storage_that_came_back_explains_a_wait_of_its_time_and_length(
    lasted_s: int, waited_ms: int, watchdog_at: float | None, explains: bool
) -> None:
    lines = [Origin("dmesg", at, text) for at, text in ((1, "not responding"), (2, "OK"))]
    events = [Event("storage", "", line.text, line, time_s=MARCH + at * lasted_s) for at, line in enumerate(lines)]
    watchdog = jobs.event("watchdog", "timed out", ts=watchdog_at, details={"ran_ms": str(waited_ms), "seq": "7"})
    case = Case(nodes=(Node("n0", events=tuple(events)),), jobs=(jobs.job(2, events=[watchdog]),))
    [above, *_] = arranged([found("JOB006"), replace(found("HST006", I), evidence=tuple(lines))], case)
    assert above.id == ("HST006" if explains else "JOB006")


def test_storage_that_came_back_explains_no_wait_of_unknown_length() -> None:
    assert order(found("JOB006"), found("HST006", I), case=failing("watchdog")) == ["JOB006", "HST006"]


@examples("cause")
def test_missing_ranks_are_below_the_fault_that_kept_them_away(cause: str) -> None:
    assert causes(found("JOB001"), found(cause))["JOB001"] == cause


def test_missing_ranks_are_below_every_other_fault_of_the_same_severity() -> None:
    assert order(found("JOB001"), found("PCI003", confidence=Confidence.LOW)) == ["PCI003", "JOB001"]


def test_of_a_job_that_failed_what_only_makes_it_slow_comes_later() -> None:
    slow, first = found("ENV001", cost=Cost(gbs_lost=100.0)), found("JOB005")
    assert order(slow, first, case=failing("memory")) == ["JOB005", "ENV001"]


def finding_of(fields: str | dict[str, Any]) -> Finding:
    """A finding of a row: its check, or its fields with those of `where` among them; `unset` names settings."""
    parts = {"check": fields} if isinstance(fields, str) else dict(fields)
    where = {name: tuple(parts.pop(name)) for name in ("nodes", "gpus", "nics", "jobs") if name in parts}
    for name, kind in (("severity", Severity), ("confidence", Confidence)):
        if name in parts:
            parts[name] = kind[parts[name]]
    finding = found(settings=tuple((name, None) for name in parts.pop("unset", ())), **parts)
    return replace(finding, where=replace(finding.where, **where))


@examples("findings", "first_error", "job", "follows")
def test_a_finding_follows_from_the_one_that_explains_it(
    findings: list[str | dict[str, Any]], first_error: list[str] | None, job: bool | None, follows: dict[str, str]
) -> None:
    case = failing(*first_error) if first_error else Case(jobs=(jobs.job(2),)) if job else Case()
    table = causes(*map(finding_of, findings), case=case)
    assert {check: table[check] for check in follows} == follows


def test_wrong_results_explain_how_the_benchmark_ended_and_nothing_else() -> None:
    effects = {effect for rule in RULES if "BEN004" in rule.causes for effect in rule.leads_to}
    assert effects == {"JOB009", "BEN006", "JOB005"}


def test_rules_speak_of_checks_and_say_why() -> None:
    planned = {"GPU001", "GPU002", "GPU003", "GPU004", "GPU005", "HST001", "HST002", "HST003", "NET009", "NET010",
               "JOB007", "JOB008", "JOB009", "JOB010", "FLT004"}  # fmt: skip
    for rule in RULES:
        assert {*rule.causes, *rule.leads_to} <= {*ids(), *planned}, rule
        assert rule.because[0].islower() or rule.because.startswith(("CUDA", "NCCL", "NICs", "NVLinks"))
        assert not rule.because.endswith(".")
    entries = own_data("verdict/rules")["rule"]
    assert all(entry["mechanism"] for entry in entries)
    assert len({entry["name"] for entry in entries}) == len(RULES)


def test_each_condition_is_that_of_a_rule() -> None:
    own = {name for name, item in vars(conditions).items() if getattr(item, "__module__", "") == conditions.__name__}
    asked = {name for rule in RULES for name in (rule.holds, rule.contradicted_by) if name}
    assert asked == {name for name in own if not name.startswith("_")}


def test_a_page_says_what_a_fault_leads_to_and_what_explains_it() -> None:
    leads_to, explained_by = relations_of("NVL001")
    assert (("TOP004", "NVL004", "NVL003", "TOP002", "P2P001"), "NCCL sees the links that this GPU lacks") in leads_to
    assert any("GPU001" in ids for ids, _ in explained_by)
    assert [ids for ids, _ in relations_of("JOB001")[0]] == [("JOB005", "JOB006"), ("JOB005",)], "only where ranks meet"


some_findings = st.lists(
    st.builds(
        found,
        st.sampled_from(sorted({check for rule in RULES for check in (*rule.causes, *rule.leads_to)})),
        st.sampled_from([E, W, I]),
        st.lists(st.sampled_from(["n0", "n1", "n2"]), max_size=2, unique=True).map(tuple),
        confidence=st.sampled_from(list(Confidence)),
        message=st.sampled_from("abc"),
    ),
    max_size=12,
)


@given(some_findings)
def test_no_finding_is_lost_and_every_cause_stands_above(findings: list[Finding]) -> None:
    reports = arranged(findings, Case())
    assert sorted((finding.id, finding.message) for finding in reports) == sorted(
        (finding.id, finding.message) for finding in findings
    )
    for at, finding in enumerate(reports):
        if finding.follows is not None:
            assert (finding.follows.check, finding.follows.message) in {
                (above.id, above.message) for above in reports[:at]
            }


@given(some_findings)
def test_the_order_is_stable(findings: list[Finding]) -> None:
    assert [e.id for e in arranged(findings, Case())] == [e.id for e in arranged(findings[::-1], Case())]


def test_the_cause_of_a_failed_init_stands_above_a_port_that_the_job_goes_without() -> None:
    case = failing("version", "Mismatched NCCL version detected : rank 0 version 22707 rank 8 version 22105")
    assert order(found("NIC001"), found("JOB002"), found("JOB005"), found("JOB001"), case=case) == [
        "JOB002", "JOB005", "JOB001", "NIC001",
    ]  # fmt: skip


@examples("variable", "error", "cause")
def test_what_only_makes_a_job_slow_ends_none_without_an_error_that_names_it(
    variable: str, error: str, cause: tuple[str, str, str]
) -> None:
    forced = found("ENV001", settings=((variable, "Tree"),))
    table = causes(forced, found("JOB005"), found("JOB001"), found("BEN001"), case=failing("watchdog", error))
    assert (table["JOB005"], table["JOB001"], table["BEN001"]) == cause


@examples("settings", "missing", "cause")
def test_a_setting_that_names_the_missing_nics_is_their_one_cause(
    settings: tuple[tuple[str, str], ...], missing: tuple[str, ...], cause: str
) -> None:
    left_out = replace(found("NET003"), settings=settings)
    left_out = replace(left_out, where=replace(left_out.where, nics=("m4", "m5")))
    finding = found("NIC005", W)
    finding = replace(finding, where=replace(finding.where, nics=missing))
    assert causes(left_out, finding)["NIC005"] == cause
