"""What other runs say of a cause: on the same nodes one that reaches more than the cause leaves to it rules it out; on
other nodes one that reaches the same speaks against a fault of one part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topodiag.expect.expect import Expected, Verdict
from topodiag.expect.hypothesis_causes import Cause
from topodiag.lazy import dataclass
from topodiag.model.bench import BenchRun
from topodiag.words.units import in_gbs

AS_EXPECTED = 0.95
"""Share of its expectation from which a run shows that nothing slows these nodes."""
MORE = 1.15
"""Times what a cause leaves from which a run cannot have met it: prices are off by some percent."""
MOST_OTHERS = 4
ALIKE = 0.99
"""Share of the faster of two runs from which both reach the same: runs of healthy machines differ by a percent."""
ONE_WAY = frozenset({"broadcast", "reduce", "gather", "scatter"})
"""Collectives of which a link between two nodes carries one direction at a time."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A run with its expectation and verdict."""

    run: BenchRun
    modelled: Expected
    verdict: Verdict


def on_same_nodes(run: BenchRun, judged: Iterable[Judged]) -> tuple[Judged, ...]:
    """Those of the other runs that ran on the very nodes of this one, with as many ranks."""
    others = (
        other
        for other in judged
        if other.run is not run
        and set(run.hosts) == set(other.run.hosts)
        and run.nranks == other.run.nranks
        and run.env == other.run.env
        and other.verdict.measured_gbs
        and other.modelled.expectation is not None
    )
    return tuple(sorted(others, key=lambda other: -(other.verdict.measured_gbs or 0.0))[:MOST_OTHERS])


def alike_elsewhere(one: Judged, judged: Iterable[Judged]) -> int:
    """How many runs of the collective, with as many ranks on nodes that are none of this run's, reach what it does."""
    mine, hosts = one.verdict.measured_gbs, set(one.run.hosts)
    if not mine or not hosts:
        return 0
    alike = (
        other.run.hosts
        for other in judged
        if other.run.collective == one.run.collective
        and other.run.nranks == one.run.nranks
        and ALIKE * mine <= (other.verdict.measured_gbs or 0.0) <= mine / ALIKE
    )
    return sum(bool(others) and hosts.isdisjoint(others) for others in alike)


def refuted(cause: Cause, others: Sequence[Judged]) -> str:
    """Which run refutes a cause that is only supposed, in a clause; "" where none does."""
    for other in others:
        measured, expected = other.verdict.measured_gbs or 0.0, other.verdict.expected_gbs or 0.0
        if cause.both_ways and other.run.collective in ONE_WAY:
            continue
        left = AS_EXPECTED * expected if cause.gbs is not None else _left(cause, other, expected)
        if left is not None and measured >= left * (1 if cause.gbs is not None else MORE):
            return f"{other.run.collective} on the same nodes reaches {in_gbs(measured)}"
    return ""


def _left(cause: Cause, other: Judged, expected: float) -> float | None:
    """What the cause would leave to another run, GB/s; None where the model has no answer, or it leaves nearly all."""
    if other.modelled.setup is None or other.modelled.rates is None:
        return None
    share = cause.share_left(other.modelled.setup, other.modelled.rates, other.run.collective)
    return share * expected if share is not None and share < 1 / MORE else None
