"""How good expectations are: published healthy results, each predicted by a calibration that never saw its system, and
the public cases about bandwidth.

    python benchmarks/expectations.py [--all]     --all lists every row
"""

from __future__ import annotations

import sys
from statistics import median

from calibrating import Observation, fit
from healthy_rows import CORPUS, MORE, Healthy, observations, rows

from topodiag.expect.calibration import calibration
from topodiag.expect.expect import Verdict, verdict_of

WITHIN = 0.15
GOAL = 0.85
SAMPLE = 30
"""Rows from which a share means something."""


def main() -> int:
    path = CORPUS / "healthy.csv"
    if not path.exists():
        print(f"{path} is not here: nothing to compare with")
        return 0
    healthy, more = rows(path), rows(MORE)
    every = "--all" in sys.argv[1:]
    seen = list(observations([*healthy, *more]))
    held_out(healthy, more, seen, every)
    print("\nfurther published results, held out likewise")
    held_out(more, healthy, seen, every)
    print()
    from expectation_cases import table  # noqa: PLC0415 - it needs the reader, which the calibration does not

    table()
    return 0


def held_out(healthy: list[Healthy], others: list[Healthy], seen: list[Observation], every: bool) -> None:
    tolerances = calibration().tolerances
    errors: dict[str, list[float]] = {}
    misses: list[str] = []
    verdicts: dict[str, list[tuple[Healthy, Verdict]]] = {}
    none: list[tuple[Healthy, str]] = []
    for row in healthy:
        if row.none:
            none.append((row, row.none))
            continue
        fitted = fit((each for each in seen if each.system != row.group), tolerances)
        made = row.expected(fitted)
        if made.expectation is None or made.rates is None:
            none.append((row, made.why))
            continue
        wanted = made.expectation.busbw.get(row.size, made.expectation.busbw_gbs)
        error = wanted / row.busbw - 1
        errors.setdefault(row.group, []).append(error)
        verdict = verdict_of(row.run, made.expectation)
        verdicts.setdefault(verdict.word, []).append((row, verdict))
        line = f"  {row.busbw:7.1f} measured {wanted:7.1f} expected {error:+7.1%}  {made.rates.transport:15} {row.name}"
        if abs(error) > WITHIN:
            misses.append(line)
        if every:
            print(line)
    report((healthy, others), seen, errors, misses, none)
    print("verdicts: " + ", ".join(f"{len(them)} {word}" for word, them in sorted(verdicts.items())))
    for word, them in verdicts.items():
        for row, verdict in them if word != "normal" else []:
            print(f"  {word}: {row.name}: {verdict.why}")


def report(
    published: tuple[list[Healthy], list[Healthy]],
    seen: list[Observation],
    errors: dict[str, list[float]],
    misses: list[str],
    none: list[tuple[Healthy, str]],
) -> None:
    healthy, others = published
    everything = [abs(error) for each in errors.values() for error in each]
    print(f"{'held out by system':22} rows  median error  90th percentile")
    for group, values in errors.items():
        sizes = sorted(map(abs, values))
        print(f"{group:22} {len(values):4}  {median(sizes):12.1%}  {_percentile(sizes, 0.9):15.1%}")
    good = sum(error <= WITHIN for error in everything)
    print(f"{'all':22} {len(everything):4}  {median(everything):12.1%}  {_percentile(sorted(everything), 0.9):15.1%}")
    goal = f"; goal {GOAL:.0%}" if len(healthy) > SAMPLE else ""
    print(f"within {WITHIN:.0%}: {good} of {len(everything)} rows with an expectation ({good / len(everything):.1%}), "
          f"of all {len(healthy)} published rows {good / len(healthy):.1%}{goal}")  # fmt: skip
    strict = [_strict_error(row, [*healthy, *others], seen) for row in healthy if not row.none]
    print(f"held out by machine too (no row of any system of that build): "
          f"{sum(error <= WITHIN for error in strict)} within {WITHIN:.0%}")  # fmt: skip
    raw = [abs(_raw_error(row)) for row in healthy if not row.none]
    print(f"without any calibration: {sum(error <= WITHIN for error in raw)} within {WITHIN:.0%}, "
          f"median {median(raw):.1%}")  # fmt: skip
    print("misses:")
    print("\n".join(misses) or "  none")
    print("without an expectation:")
    for row, why in none:
        print(f"  {row.name}: {why}")


def _strict_error(row: Healthy, published: list[Healthy], seen: list[Observation]) -> float:
    alike = {other.group for other in published if other.machine == row.machine}
    made = row.expected(fit((each for each in seen if each.system not in alike), calibration().tolerances)).expectation
    return abs(made.busbw.get(row.size, made.busbw_gbs) / row.busbw - 1) if made is not None else 9.0


def _raw_error(row: Healthy) -> float:
    made = row.raw.expectation
    return made.busbw.get(row.size, made.busbw_gbs) / row.busbw - 1 if made is not None else 9.0


def _percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, max(0, -(-int(share * 1000) * len(values) // 1000) - 1))]


if __name__ == "__main__":
    sys.exit(main())
