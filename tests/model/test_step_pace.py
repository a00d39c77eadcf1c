"""How steady steps are: what is said of them, and what is never called a change."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.tables import examples
from topodiag.model import step_pace
from topodiag.model.steps import Step, StepSeries


def series(
    seconds: Callable[[int], float], count: int = 200, *, rank: int = -1, unit: str = "s", noise: float = 0.02,
    work: Callable[[int], float] | None = None,
) -> StepSeries:  # fmt: skip
    chance = random.Random(7 + rank)
    steps, now = [], 1_754_000_000.0
    for n in range(1, count + 1):
        took = seconds(n) * chance.gauss(1, noise)
        now += took
        steps.append(Step(n, took if unit == "s" else 1 / took, now, work(n) if work else None))
    return StepSeries("train.log", tuple(steps), unit, rank)


def pace(seconds: Callable[[int], float], count: int = 200, **more: float) -> step_pace.Pace:
    return step_pace.pace_of(series(seconds, count, **more))  # type: ignore[arg-type]


def waiting(part: Callable[[int], float], own: Callable[[int], float] = lambda _: 0.18) -> step_pace.Pace:
    """Steps that wait `part` seconds for data, by their log, beside their own time."""
    step_series = series(lambda n: own(n) + part(n), noise=0.001)
    return step_pace.pace_of(
        replace(step_series, steps=tuple(replace(step, waited=part(step.number)) for step in step_series.steps))
    )


def test_steps_that_are_long_where_they_wait_for_data_are_said_to() -> None:
    steps = waiting(lambda n: 0.004 if n % 3 else 0.4)
    assert steps.for_data > 0.95
    assert step_pace.says_waits(steps).startswith("steps take between 184 ms and 58")
    assert step_pace.says_waits(steps).endswith("of the difference is waiting for data: not the links")
    assert step_pace.says_waits(steps) in step_pace.says_pace(steps)


@pytest.mark.parametrize(
    "made",
    [
        waiting(lambda _: 0.004),  # steps hardly differ
        waiting(lambda _: 0.004, lambda n: 0.18 if n % 3 else 0.6),  # something else makes them long
        waiting(lambda n: 0.004 if n % 3 else 0.1, lambda n: 0.18 if n % 3 else 0.6),  # data is a part of it
        waiting(lambda _: 0.4, lambda n: 0.18 if n < 100 else 0.36),  # they always wait, and became longer
    ],
)
def test_nothing_is_laid_to_the_data_where_the_log_does_not_show_it(made: step_pace.Pace) -> None:
    assert step_pace.says_waits(made) == ""


def test_a_log_that_does_not_say_it_lays_nothing_to_the_data() -> None:
    assert step_pace.says_waits(pace(lambda n: 0.18 if n % 3 else 0.6)) == ""


@examples("seconds", "every", "count", "wanted", "begins", "ends")
def test_what_is_said_of_steps(
    *,
    seconds: list[tuple[int, float]],
    every: tuple[int, float] | None,
    count: int | None,
    wanted: dict[str, Any],
    begins: str | None,
    ends: str | None,
) -> None:
    """Of steps that take so long from each of some numbers on, and longer at every so many of them: how it is called
    that they changed, and at which step they did."""
    often, more = every or (count or 200, 0.0)
    steps = pace(lambda n: max(row for row in seconds if row[0] <= n)[1] + more * (n % often == 0), count or 200)
    shown = {
        "typical": pytest.approx(steps.typical, rel=0.02), "slower": pytest.approx(steps.slower, abs=0.02),
        "change": steps.change[1].first if steps.change else "none", "slow": list(steps.slow), "period": steps.period,
        "drift": steps.drift,
    }  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted
    assert not begins or step_pace.says_change(steps).startswith(begins)
    assert not ends or step_pace.says_change(steps).endswith(ends)
    assert wanted.get("period") is None or any(
        "as checkpoints and evaluations are" in line for line in step_pace.says_pace(steps)
    )


@pytest.mark.parametrize("unit", ["s", "tokens/s"])
def test_a_change_is_found_where_it_begins(unit: str) -> None:
    steps = step_pace.pace_of(series(lambda n: 1.2 if n < 120 else 2.1, unit=unit))
    assert steps.change[1].first == 120
    assert steps.slower == pytest.approx(1.75, rel=0.02)
    assert "1.7 times as long from step 120 on (2025-" in step_pace.says_change(
        steps
    ) or "1.8 times as long" in step_pace.says_change(steps)


def test_a_drift_is_told_apart_from_a_change() -> None:
    steps = pace(lambda n: 1.2 * (1 + 0.3 * n / 200))
    assert steps.change is None
    assert steps.drift == pytest.approx(1.28, abs=0.05)


def test_another_batch_or_sequence_is_no_change() -> None:
    steps = step_pace.pace_of(series(lambda n: 1.2 if n < 90 else 2.4, work=lambda n: 128 if n < 90 else 256))
    assert (steps.change, steps.drift, steps.resized) == (None, 1.0, 90)
    assert any("only steps of one size" in words for words in step_pace.says_pace(steps))


def test_a_batch_that_grows_with_each_line_says_nothing_of_a_change() -> None:
    steps = step_pace.pace_of(series(lambda n: 1.2 + n, 50, work=float))
    assert (steps.change, steps.drift) == (None, 1.0)


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.1])
def test_noise_is_no_change(noise: float) -> None:
    loud = 0
    for seed in range(40):
        chance = random.Random(seed)
        values = [1.2 * chance.lognormvariate(0, noise) for _ in range(chance.choice((30, 100, 200)))]
        steps = pace(values.__getitem__, len(values) - 1)
        loud += steps.change is not None or steps.drift != 1.0
    assert loud == 0


def test_of_several_starts_the_last_that_can_be_judged_counts() -> None:
    first, second = series(lambda _: 1.2), series(lambda _: 1.5, 50)
    short = series(lambda _: 9.0, 4)
    (steps,) = step_pace.last_starts((first, second, short))
    assert steps.typical == pytest.approx(1.5, rel=0.02)
    assert (steps.start, steps.starts) == (2, 3)
    assert "start 2 of 3" in step_pace.says_pace(steps)[0]


def test_a_rank_that_prints_longer_steps_than_its_siblings_is_named() -> None:
    slow, others = series(lambda _: 1.5, 40, rank=2), [series(lambda _: 1.2, 40, rank=r) for r in (0, 1, 3)]
    paces = step_pace.last_starts([slow, *others])
    assert [who for who, _ in step_pace.odd_ranks(paces)] == ["rank 2"]
    assert (
        "rank 2 prints steps 1.2 times as long" in step_pace.says_steps(paces)[-1]
        or "1.3 times" in step_pace.says_steps(paces)[-1]
    )
    assert step_pace.odd_ranks(paces[:2]) == ()
