"""FLT001: a node differs from its siblings in a fact that can cost bandwidth or stability."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.fleet.differs import DiffersFromSiblings
from topodiag.checks.fleet.weights import matters, weigh
from topodiag.model.finding import Severity
from topodiag.model.fleet import Cohort, How, Outlier
from topodiag.model.fleet_words import spelled

HOSTS = tuple(f"n{at}" for at in range(20))


def outlier(family: str = "driver", key: str = "NVIDIA driver", **more: object) -> Outlier:
    made = Outlier(family, key, ("",), "550", "570", ("n3",), 19, 20, source="nvml.json:1")
    return replace(made, **more)  # type: ignore[arg-type]


def cohort(*outliers: Outlier, nodes: Sequence[str] = HOSTS) -> Cohort:
    return Cohort("DGX H100", (), tuple(nodes), compared=100, outliers=outliers)


def outlier_of(told: dict[str, Any]) -> Outlier:
    """The outlier of a row, how it differs by the name of that."""
    more = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
    return outlier(**more | ({"how": How[told["how"]]} if "how" in told else {}))


@examples("nodes", "outliers", "wanted")
def test_what_is_said_of_nodes_that_differ(
    nodes: list[str] | None, outliers: list[dict[str, Any]] | None, wanted: Wanted
) -> None:
    outcome = DiffersFromSiblings().judge(cohort(*map(outlier_of, outliers or ()), nodes=nodes or HOSTS))
    assert shown(outcome, wanted) == wanted


@examples("family", "key", "how", "severity")
def test_severity_is_by_whether_it_can_cost_bandwidth_or_stability(
    family: str, key: str, how: How, severity: Severity
) -> None:
    assert weigh(outlier(family, key, how=how)).severity is severity


def test_two_against_one_is_a_hint_that_excludes_nobody() -> None:
    few = outlier(usual_count=2, total=3)
    expect(DiffersFromSiblings().judge(cohort(few, nodes=("n1", "n2", "n3"))), severity="INFO", confidence="LOW")
    assert not matters(few)


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [("270456016896", "bytes", "251.9 GiB"), ("unlimited", "bytes", "unlimited"), ("9" * 400, "bytes", "9" * 400),
     ("16", "GT/s", "16 GT/s"), ("3", "errors", "3")],
)  # fmt: skip
def test_a_value_is_spelt_with_its_unit(value: str, unit: str, words: str) -> None:
    assert spelled(value, unit) == words
