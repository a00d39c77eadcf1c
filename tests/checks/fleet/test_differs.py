"""FLT001: a node differs from its siblings in a fact that can cost bandwidth or stability."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.fleet.differs import DiffersFromSiblings
from topodiag.checks.fleet.flapping import ComesAndGoes, drops, fallen_alone, flaps
from topodiag.checks.fleet.weights import matters, weigh
from topodiag.model.finding import Severity, Status
from topodiag.model.fleet import Cohort, How, Outlier
from topodiag.model.fleet_words import spelled
from topodiag.model.history import Capture, Growth, NodeHistory, PartStates, Spell

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


# --- Drops and flaps as gpud defines them, and when a part that was down is neither


START = 1.7e9
UP, DOWN = "ACTIVE", "DOWN"


def part(*spells: tuple[str, float], name: str = "mlx5_0/1", boot: str = "b", first: float = 1000.0) -> PartStates:
    """Spells by state and by seconds from its first to its last sample; 10 s pass to the next one's first sample."""
    made: list[Spell] = []
    at = first
    for state, length in spells:
        made.append(Spell(state, boot, at, at + length, START + at))
        at += length + 10
    return PartStates(name, tuple(made))


def end(*parts: PartStates) -> float:
    return max(states.spells[-1].end_s for states in parts)


def flapping(*parts: PartStates) -> list[str]:
    return list(flaps(parts, end(*parts)))


CYCLE = ((DOWN, 30.0), (UP, 20.0))


@examples("spells", "later_days", "flap", "drop")
def test_flaps_and_drops_of_a_part(
    spells: list[list[Any]], later_days: float | None, flap: bool | None, drop: bool | None
) -> None:
    """Spells by state and length; a text before them is the boot that they are of, in which the first begins at the
    seconds behind it, and a state behind a length the number of times that the part fell again."""
    made: list[Spell] = []
    boot, at = "b", 1000.0
    for first, second, *more in spells:
        if first in {"a", "b", "c", "d", "e"}:
            boot, at = first, second
            continue
        made.append(Spell(first, boot, at, at + second, START + at, **({"fallen": more[0]} if more else {})))
        at += second + 10
    states = (PartStates("mlx5_0/1", tuple(made)),)
    now = end(*states) + 86400 * (later_days or 0.0)
    assert flap is None or bool(flaps(states, now)) is flap
    assert drop is None or bool(drops(states, now)) is drop


def test_a_watch_that_ended_long_before_the_last_capture_tells_no_drop_and_no_flap() -> None:
    parts = (part((UP, 60.0), (DOWN, 600.0)), part((UP, 600.0), *CYCLE, *CYCLE, *CYCLE, name="mlx5_1/1"))
    watched = NodeHistory("gpu07", states=parts, end_s=end(*parts))
    assert len(ComesAndGoes().judge(watched).findings) == 2
    for days, findings in ((0.5, 2), (2.0, 1), (6.0, 0)):
        now = Capture("c", "gpu07", time_s=end(*parts) + days * 86400)
        assert len(ComesAndGoes().judge(replace(watched, now=now)).findings) == findings


def test_parts_that_go_down_together_are_the_node_or_its_switch() -> None:
    everything = [part((UP, 600.0), *CYCLE, *CYCLE, *CYCLE, name=f"mlx5_{n}/1") for n in range(8)]
    assert not flapping(*everything)
    quiet = [part((UP, 900.0), name=f"mlx5_{n}/1") for n in range(1, 8)]
    assert flapping(everything[0], *quiet) == ["mlx5_0/1"]


def test_a_hundred_thousand_changes_are_judged_quickly() -> None:
    assert flapping(part((UP, 600.0), *(CYCLE * 50_000)))


def test_flaps_and_drops_are_errors_and_name_the_part() -> None:
    parts = (part((UP, 900.0), name="mlx5_1/1"), part((UP, 600.0), *CYCLE, *CYCLE, *CYCLE, name="gpu3/link6"),
             part((UP, 60.0), (DOWN, 600.0)))  # fmt: skip
    outcome = ComesAndGoes().judge(NodeHistory("gpu07", states=parts, end_s=end(*parts)))
    assert [(finding.severity, finding.where.links, finding.where.nics) for finding in outcome.findings] == [
        (Severity.ERROR, ("GPU3 link 6",), ()),
        (Severity.ERROR, (), ("mlx5_0",)),
    ]
    assert "3 times, for 30 s," in outcome.findings[0].observed


def test_a_node_that_nobody_watched_is_unknown_and_a_quiet_one_clean() -> None:
    assert ComesAndGoes().judge(NodeHistory("gpu07")).status is Status.UNKNOWN
    quiet = part((UP, 900.0))
    assert ComesAndGoes().judge(NodeHistory("gpu07", states=(quiet,), end_s=end(quiet))).status is Status.CLEAN


def grown(part: str, count: int, key: str = "link_downed") -> Growth:
    return Growth("nic", part, key, count, 168.0, count, "times")


def test_without_a_watch_a_link_that_fell_three_times_between_captures_is_a_warning() -> None:
    history = NodeHistory("gpu07", grown=(grown("mlx5_0/1", 4), grown("mlx5_1/1", 0), grown("mlx5_2/1", 1)))
    expect(ComesAndGoes().judge(history), severity="WARNING", nics=("mlx5_0",))


@pytest.mark.parametrize(
    ("counts", "why"),
    [((2, 0, 0), "a cable that somebody moved"), ((5, 5, 4), "all fell: the switch was served"), ((0, 0, 0), "none")],
)
def test_falls_that_others_share_or_that_are_few_are_silent(counts: Sequence[int], why: str) -> None:
    assert fallen_alone([grown(f"mlx5_{n}/1", count) for n, count in enumerate(counts)]) == [], why
    assert fallen_alone([grown("mlx5_0/1", 99, "symbol_error")]) == []
