"""Advice: sentences of checks/advice, and no two findings of one report advise against each other."""

import ast
import re
import string
import tomllib
from collections.abc import Iterator
from functools import cache

import pytest

from tests.shown import ROOT
from topodiag.api import diagnose
from topodiag.checks.registry import FOLDERS
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Finding

CHECKS = ROOT / "topodiag" / "checks"
KEYS = {"severity", "confidence", "expected", "fix", "cost", "share"}
FINDINGS = {"finding", "of_events"}
ENTRIES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in (CHECKS / "advice").glob("???.toml")}
STEPS = {family: entries.pop("steps", {}) for family, entries in ENTRIES.items()}


@cache
def _modules() -> list[tuple[set[str], list[ast.Call], set[object]]]:
    """Of each module of checks: the files of the folder's families, its calls, and its constants."""
    modules = []
    for path in CHECKS.rglob("*.py"):
        folder = path.relative_to(CHECKS).parts[0]
        families = {family.lower() for family, name in FOLDERS.items() if name == folder} & ENTRIES.keys()
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        modules.append((families, calls, {node.value for node in nodes if isinstance(node, ast.Constant)}))
    return modules


def _asked() -> Iterator[tuple[set[str], str, set[str]]]:
    """Of each finding that names its advice and each call of `advice`: the files of the folder's families, the name
    and its words."""
    for families, calls, _ in _modules():
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "advice":
                name, words = call.args[0], {word.arg for word in call.keywords if word.arg is not None}
                if not isinstance(name, ast.Constant):  # `finding` itself, which is given a name
                    continue
            elif isinstance(call.func, ast.Attribute) and call.func.attr in FINDINGS and len(call.args) > 1:
                named_by = call.args[-2]
                choices = [named_by.body, named_by.orelse] if isinstance(named_by, ast.IfExp) else [named_by]
                # Another expression is an advice with words, or one of its own.
                yield from ((families, str(c.value), set()) for c in choices if isinstance(c, ast.Constant))
                continue
            else:
                continue
            yield families, str(name.value), words


def _words(entry: dict[str, object]) -> set[str]:
    fixes = entry.get("fix", [])
    assert isinstance(fixes, list)
    texts = [str(entry.get("expected", "")), str(entry.get("cost", "")), *fixes]
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


def test_each_name_that_the_code_asks_for_is_an_entry_with_the_words_that_it_is_given() -> None:
    for families, name, words in _asked():
        held = [ENTRIES[family][name] for family in families if name in ENTRIES[family]]
        assert len(held) == 1, name
        assert not words or _words(held[0]) == words, name


def _written() -> set[object]:
    return {value for _, _, constants in _modules() for value in constants}


def test_no_entry_is_left_over_and_none_has_an_unknown_key() -> None:
    assert {name for entries in ENTRIES.values() for name in entries} <= _written()
    assert all(entry.keys() <= KEYS for entries in ENTRIES.values() for entry in entries.values())


def _steps() -> Iterator[tuple[set[str], set[str], set[str]]]:
    """Of each call of `steps`: the files of the folder's families, the names, and the words."""
    for families, calls, _ in _modules():
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "steps":
                held = {node.value for arg in call.args for node in _names(arg) if isinstance(node.value, str)} - {""}
                yield families, held, {str(word.arg) for word in call.keywords}


def _names(arg: ast.expr) -> Iterator[ast.Constant]:
    """The constants that an argument may be: what decides between them is no name."""
    if isinstance(arg, ast.IfExp):
        yield from (*_names(arg.body), *_names(arg.orelse))
    elif isinstance(arg, ast.Constant):
        yield arg


def test_each_step_is_named_by_the_code_of_its_family_with_its_words() -> None:
    for families, names, words in _steps():
        held = {name: STEPS[family][name] for family in families for name in names & STEPS[family].keys()}
        assert held.keys() == names
        assert {word for sentences in held.values() for word in _words({"fix": sentences})} <= words
    assert {name for steps in STEPS.values() for name in steps} <= _written()


# --- no two findings of one report advise against each other, and none advises what cannot work


FIXTURES = ROOT / "fixtures"
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
