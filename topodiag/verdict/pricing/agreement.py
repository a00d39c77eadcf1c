"""Does what the causes predict agree with what was measured? Where it does, that is the proof."""

from __future__ import annotations

from dataclasses import dataclass

from topodiag.expect.verdict import measured as top_of
from topodiag.model.bench import BenchRun
from topodiag.model.verdict import Agreement, Quantity
from topodiag.words.units import spell_bytes

TOLERANCE = 0.15
"""Share by which a prediction and a measurement may differ and still be called the same."""
SLIGHT = 0.03
"""Share of loss below which a cause cannot be told from none by its size: healthy runs vary as much."""
HALF = 0.5
"""Share of the measured loss that a cause must predict at least to be called its explanation."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How a prediction stands to a measurement, with the sentence for a reader."""

    agreement: Agreement
    says: str


def measured_of(run: BenchRun, what: str) -> Quantity | None:
    """What the run reached at its greatest size; None for a job that nobody measured."""
    top = top_of(run)
    if top is None or top[1] <= 0:
        return None
    size, gbs = top
    hosts = len(run.hosts)
    where = f" on {hosts} node{'s' if hosts > 1 else ''}" if hosts else ""
    source = f"nccl-tests at {spell_bytes(size)}{where}" + (f", {run.source}" if run.source else "")
    return Quantity(what, gbs, source=source)


def compare(whole: float, predicted: float, measured: float, cause: str) -> Compared:
    """All three in GB/s: what the machines reach without causes and with them, and what was measured. `cause` in words,
    such as "this cause" or "these 2 causes"."""
    off = measured / predicted - 1
    numbers = f"predicted {_gbs(predicted)} GB/s of {_gbs(whole)}, measured {_gbs(measured)} ({off:+.0%})".replace(
        "%)", " %)"
    )
    loss, missing = whole - predicted, whole - measured
    verb = "explain" if cause.startswith("these") else "explains"
    if loss < SLIGHT * whole:
        if missing < TOLERANCE * whole:
            return Compared(Agreement.AGREES, f"{numbers}: {cause} cost{_s(cause)} next to nothing here, as measured")
        return Compared(Agreement.PART, f"{numbers}: {_gbs(predicted - measured)} GB/s are left unexplained")
    if _same(loss, missing):
        return Compared(Agreement.AGREES, f"{numbers}: {cause} {verb} the loss")
    nearer_to_whole = abs(whole - measured) < abs(measured - predicted)
    if measured > predicted * (1 + TOLERANCE) or (measured > predicted and nearer_to_whole):
        said = "no such loss was measured" if nearer_to_whole else "less was lost than that"
        return Compared(Agreement.EXCEEDS, f"{numbers}: {said}, so it was not in force in this run, or not so much")
    if measured < predicted * (1 - TOLERANCE) or loss < HALF * missing:
        share = f"{loss / missing:.0%}".replace("%", " %")
        rest = f"{_gbs(predicted - measured)} GB/s are left unexplained"
        return Compared(Agreement.PART, f"{numbers}: {cause} {verb} {share} of the loss, {rest}")
    return Compared(Agreement.AGREES, f"{numbers}: {cause} {verb} the loss")


def _same(loss: float, missing: float) -> bool:
    """Whether what was predicted to be lost is what is missing. Of a great loss what is left may differ by times and
    say little: 66 or 47 of 477 GB/s."""
    return missing > 0 and abs(loss - missing) <= TOLERANCE * missing


def _s(cause: str) -> str:
    return "" if cause.startswith("these") else "s"


def _gbs(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
