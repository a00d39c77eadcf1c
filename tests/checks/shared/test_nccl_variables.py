"""ENV003: names that NCCL does not read, and the list of those that it does."""

import re
from typing import Any

import pytest

from tests.checks.nodes import only, status
from tests.checks.wanted import expect
from tests.tables import examples
from topodiag.checks.env.node import UnknownSetting
from topodiag.checks.env.rules import rules
from topodiag.checks.shared import nccl_variables
from topodiag.model.finding import Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Origin, Topic
from topodiag.model.system import Setting


def names(*pairs: str) -> Any:
    settings = tuple(Setting(*pair.split("=", 1), "environment", Origin("settings.tree", 1, pair)) for pair in pairs)
    return UnknownSetting().judge(Node("gpu-001", settings=settings, topics=frozenset({Topic.SETTINGS})), ())


@examples("wrong", "right")
def test_a_slip_is_a_warning_with_the_name_that_was_meant(wrong: str, right: str) -> None:
    finding = expect(names(f"{wrong}=1"), severity="WARNING")
    assert finding.message == f"{wrong} is not a variable of NCCL: misspelt {right}? (environment)"
    assert finding.fix == (f"write {right}=1",)
    assert finding.evidence[0].text == f"{wrong}=1"


@examples("name")
def test_a_name_that_is_read_no_more_is_a_warning(name: str) -> None:
    assert only(names(f"{name}=1")).severity is Severity.WARNING


@pytest.mark.parametrize("name", ["NCCL_MIN_NCHANNELS", "NCCL_MAX_NRINGS", "NCCL_ASYNC_ERROR_HANDLING"])
def test_a_deprecated_name_that_still_works_is_only_told(name: str) -> None:
    expect(names(f"{name}=1"), severity="INFO", first_step="use *")


def test_a_name_that_nothing_resembles_is_only_told() -> None:
    assert only(names("NCCL_ZEBRA_CROSSING=1")).severity is Severity.INFO


@examples("name")
def test_names_of_nccl_of_plug_ins_and_of_others_are_silent(name: str) -> None:
    assert status(names(f"{name}=1")) == "clean"


def test_the_rules_speak_of_names_that_nccl_reads() -> None:
    assert {rule.name for rule in rules("node") if rule.name.startswith("NCCL_")} <= nccl_variables.known()


RELEASE = re.compile(r"2\.\d{1,2}\.\d{1,2}")


def test_no_variable_lacks_its_first_release_its_default_or_its_meaning() -> None:
    for name in nccl_variables.known():
        held, old = nccl_variables.variable(name), nccl_variables.renamed(name)
        if held is None:
            assert old is not None, "PyTorch's, or of an NCCL before its source was public"
            continue
        assert RELEASE.fullmatch(held.since), name
        assert not held.until or RELEASE.fullmatch(held.until), name
        assert held.default, name
        assert 10 <= len(held.what) <= 120, name


def test_a_variable_that_is_read_no_more_is_told_by_its_last_release() -> None:
    held = nccl_variables.variable("NCCL_WORK_FIFO_DEPTH")
    assert (held.since, held.until) == ("2.13.4", "2.21.5")
    assert nccl_variables.variable("NCCL_ZEBRA") is None


@examples("name", "since", "default")
def test_releases_and_defaults_are_those_of_the_source(name: str, since: str, default: str) -> None:
    held = nccl_variables.variable(name)
    assert (held.since, held.until, held.default) == (since, "", default)


def test_what_replaces_an_old_name_is_a_name_in_force() -> None:
    for name in nccl_variables.known():
        old = nccl_variables.renamed(name)
        if old is not None and old.now.startswith("NCCL_"):
            replacement = old.now.partition("=")[0]
            assert replacement in nccl_variables.known()
            assert nccl_variables.renamed(replacement) is None
