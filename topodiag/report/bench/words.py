"""What the outputs of `topodiag bench` share: names, heads and shares of measured runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from math import fsum
from os.path import commonpath, dirname

from topodiag.model.bench import Benchmark, BenchRow, BenchRun, GateState, Regime
from topodiag.model.maker import run_maker
from topodiag.words.dialect import AMD, NVIDIA, Maker
from topodiag.words.fold import fold_hosts, plural
from topodiag.words.units import in_gbs, percent, spell_bytes, spell_gbs, spell_us

SIGNS = {"normal": ("✔", "ok"), "low": ("▲", "warning"), "impossible": ("✖", "error")}
"""Sign and hue of a verdict; of any other, a question mark. A run that is broken has those of an error (`sign_of`)."""


def verdict_word(benchmark: Benchmark) -> str:
    """The verdict; `failed` for a run whose bandwidth is not low and in which an error was found."""
    gate = benchmark.gate
    fails = gate is not None and gate.state is GateState.FAIL
    return "failed" if fails and benchmark.verdict in {"normal", "unknown"} else benchmark.verdict


def sign_of(benchmark: Benchmark) -> tuple[str, str]:
    """Sign and hue of a run: those of the worst that is said of it, so that page and findings agree."""
    word = verdict_word(benchmark)
    if benchmark.severe or word == "failed":
        return SIGNS["impossible"]
    return SIGNS.get(word, ("?", "unknown"))


def collective_words(run: BenchRun) -> str:
    return run.collective or "unknown collective"


def ranks_words(run: BenchRun) -> str:
    """`16 ranks on 2 hosts, 8 each`, as far as it is known."""
    if run.nranks is None:
        return "unknown number of ranks"
    words = plural(run.nranks, "rank")
    hosts = [host for host in run.hosts if host]
    if not hosts:
        return words
    if len(run.devices) < run.nranks:
        return f"{words}, {plural(len(run.devices), 'device line')} of them"
    words += f" on {plural(len(hosts), 'host')}" if len(hosts) > 1 else f" on {hosts[0]}"
    ranks = run.ranks_per_host
    return f"{words}, {ranks} each" if len(hosts) > 1 and ranks is not None else words


def gpus_words(run: BenchRun) -> str:
    """`8 x NVIDIA H100 80GB HBM3`; several kinds with commas."""
    places = {(device.host, device.bus_id or device.device): device for device in run.devices if device.name}
    counts = Counter(device.name for device in places.values())
    return ", ".join(f"{count} × {name}" for name, count in counts.most_common(3))


def versions_words(run: BenchRun) -> list[str]:
    dialect = AMD if run_maker(run) is Maker.AMD else NVIDIA
    lines = [f"{dialect.library} {run.nccl}"] if run.nccl else []
    return lines + ([f"{dialect.say('nccl-tests')} {run.version}"] if run.version else [])


def hosts_words(run: BenchRun) -> str:
    return fold_hosts([host for host in run.hosts if host])


def settings_words(run: BenchRun) -> list[str]:
    """What of the parameters changes what the numbers mean, then NCCL's settings."""
    pairs = [("graph", "0"), ("agg iters", "1"), ("validation", ""), ("unalign", "0"), ("blocking", "0")]
    lines = [
        f"{name} {run.parameters[name]}"
        for name, usual in pairs
        if name in run.parameters and usual and run.parameters[name] not in {usual, "false"}
    ]
    if run.parameters.get("validation") == "0":
        lines.append("results not checked (-c 0)")
    return lines + [f"{name}={value}" for name, value in sorted(run.env.items()) if name.startswith("NCCL_")]


def expected_at(benchmark: Benchmark, size: int) -> float | None:
    """The bus bandwidth to expect at a size; beyond the sizes that were asked, that of the largest."""
    expected = benchmark.expected
    if expected is None:
        return None
    if size in expected.busbw:
        return expected.busbw[size]
    return expected.busbw_gbs if expected.busbw and size > max(expected.busbw) else None


def wrong_of(row: BenchRow) -> float | None:
    """Wrong elements of both blocks; None where neither was checked."""
    counts = [timing.wrong for timing in (row.out_of_place, row.in_place) if timing.wrong is not None]
    return fsum(counts) if counts else None


def regime_words(regime: Regime) -> str:
    """`18.2 us + size / 98.3 GB/s`, or the time alone where it does not grow."""
    if not math.isfinite(regime.beta_gbs):
        return spell_us(regime.alpha_us)
    rate = f"size / {in_gbs(regime.beta_gbs)}"
    return rate if regime.alpha_us <= 0 else f"{spell_us(regime.alpha_us)} + {rate}"


def range_words(low: float, high: float, unit: str) -> str:
    """`95 to 102 GB/s`, or how little is known."""
    if not math.isfinite(high):
        return f"from {spell_gbs(low)} {unit}" if math.isfinite(low) and low > 0 else "not known"
    return f"{spell_gbs(low)} to {spell_gbs(high)} {unit}"


def share_words(measured: float | None, expected: float | None) -> str:
    return "" if measured is None or not expected else percent(measured / expected)


def share_of(benchmark: Benchmark, row: BenchRow) -> float | None:
    """The part of the expectation that a row reached: by times, since small bandwidths are printed as 0.00."""
    expected, time = benchmark.expected, row.best.time_us
    if expected is None or not time or row.size not in expected.time_us:
        at, bus = expected_at(benchmark, row.size), row.best.busbw_gbs
        return bus / at if at and bus is not None else None
    return expected.time_us[row.size] / time


def place_words(run: BenchRun, folder: str = "") -> str:
    """File and line; without the folder that all runs share."""
    place = str(run.origin) if run.origin is not None else run.source
    return place.removeprefix(folder)


def folder_of(runs: Sequence[BenchRun]) -> str:
    """The folder that the files of all runs lie in, with its slash; "" where there is none."""
    sources = {run.source for run in runs}
    if not sources or len({source.startswith("/") for source in sources}) > 1:
        return ""
    shared = commonpath([dirname(source) for source in sources])
    return shared + "/" if shared not in {"", "/"} else ""


def sizes_words(rows: Sequence[BenchRow]) -> str:
    sizes = [row.size for row in rows if row.size > 0]
    return f"{spell_bytes(min(sizes))} to {spell_bytes(max(sizes))}" if sizes else "no rows"
