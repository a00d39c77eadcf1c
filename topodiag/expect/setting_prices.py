"""Which settings of a low run explain it: those that take a transport away, and choices that NCCL's model prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from topodiag.expect.expect import Expected
from topodiag.expect.rates import Rates, share_left
from topodiag.expect.setup import Setup
from topodiag.model.bench import BenchRun, Hypothesis, SettingPrice

NOTED = 0.8
"""Share of the bandwidth above which a choice among NCCL's own ways is a matter of taste: the model is that rough."""
LIKELY = 0.4
"""Likelihood from which a cause of the numbers is taken for theirs."""


def setting_prices(run: BenchRun, built: Expected, causes: Sequence[Hypothesis]) -> tuple[SettingPrice, ...]:
    """The settings of a low run that cost it bandwidth. Never raises for the content of a run."""
    if built.expectation is None:
        return ()
    expected = built.expectation.busbw_gbs
    taken = [cause for cause in causes if cause.settings and cause.shown and cause.likelihood >= LIKELY]
    prices = [
        SettingPrice(name, run.env[name], expected, None, run.commands.get(name))
        for hypothesis in taken
        for name in hypothesis.settings
        if name in run.env
    ]
    if built.setup is not None and built.rates is not None and built.setup.unlike is None:
        prices += _choices(run, built.rates, built.setup, expected)
    return tuple(prices)


def _choices(run: BenchRun, rates: Rates, setup: Setup, expected: float) -> Iterator[SettingPrice]:
    """Settings that `expected` keeps because they choose among NCCL's own ways, where the choice is a poor one."""
    names = [name for name in run.env if name.startswith("NCCL_") and name in setup.env]
    free = {name: value for name, value in setup.env.items() if name not in names}

    def left(env: dict[str, str]) -> float | None:
        return share_left(rates, lambda: replace(setup, env=env), run.collective)

    whole = left(free) if names else None
    if whole is None or whole * NOTED <= 1:
        return
    for name in names:
        single = left({**free, name: setup.env[name]})
        if single is not None and single < NOTED * whole:
            yield SettingPrice(name, run.env[name], whole * expected, single * expected, run.commands.get(name))
