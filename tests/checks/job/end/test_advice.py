"""No two findings of one report advise against each other, and none advises what cannot work."""

import re
from functools import cache
from pathlib import Path

import pytest

from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Finding

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures"
JOBS = sorted(path.name for path in (FIXTURES / "jobs").iterdir() if path.is_dir())
_LISTS = re.compile(r"NCCL_DEBUG_SUBSYS=([A-Z,0-9]+)")
_GIVES = re.compile(r"(?<![\w`])((?:NCCL|TORCH)_[A-Z0-9_]+)=([^\s,;:`)]+)")
_TAKES = re.compile(r"\bunset ((?:NCCL|TORCH)_[A-Z0-9_]+)")
_EXPERIMENT = re.compile(r"\btells\b|\bcontrol\b|\bif it passes\b|\bwhere only\b|\bwhere\b|; else |\bif\b")


@cache
def result_of(name: str) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    try:
        diagnosis = diagnose(str(FIXTURES / "jobs" / name))
    except TopodiagError:
        return (), ()
    return diagnosis.findings, tuple(gap.why for gap in diagnosis.not_observed)


def advice(findings: tuple[Finding, ...]) -> tuple[dict[str, set[str]], set[str]]:
    """By variable, the values that fixes give it outside of experiments; and the variables that they take out."""
    gives: dict[str, set[str]] = {}
    takes: set[str] = set()
    for finding in findings:
        for step in finding.fix:
            takes.update(_TAKES.findall(step))
            if not _EXPERIMENT.search(step):
                for name, value in _GIVES.findall(step):
                    gives.setdefault(name, set()).add(value)
    return gives, takes


@pytest.mark.parametrize("name", JOBS)
def test_no_two_findings_advise_against_each_other(name: str) -> None:
    findings, _ = result_of(name)
    gives, takes = advice(findings)
    assert not {variable: values for variable, values in gives.items() if len(values) > 1}
    assert not takes & set(gives)
    table: dict[str, set[str | None]] = {}
    for finding in findings:
        for variable, value in finding.settings:
            table.setdefault(variable, set()).add(value)
    assert not {variable: values for variable, values in table.items() if len(values) > 1}


@pytest.mark.parametrize("name", JOBS)
def test_a_report_asks_for_one_list_of_subsystems_and_that_with_bootstrap(name: str) -> None:
    findings, gaps = result_of(name)
    asked = {match for finding in findings for step in finding.fix for match in _LISTS.findall(step)}
    asked |= {match for why in gaps for match in _LISTS.findall(why)}
    assert len(asked) <= 1
    assert all("BOOTSTRAP" in each.split(",") for each in asked)
