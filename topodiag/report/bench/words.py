"""What the outputs of `topodiag bench` share: names, heads and shares of measured runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os.path import commonpath, dirname

from topodiag.model.bench import Benchmark, BenchRun, GateState
from topodiag.words.units import plural

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


def signed(benchmark: Benchmark) -> tuple[str, str]:
    """The verdict behind its sign, with its hue."""
    sign, hue = sign_of(benchmark)
    return f"{sign} {verdict_word(benchmark)}", hue


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


def expected_at(benchmark: Benchmark, size: int) -> float | None:
    """The bus bandwidth to expect at a size; beyond the sizes that were asked, that of the largest."""
    expected = benchmark.expected
    if expected is None:
        return None
    if size in expected.busbw:
        return expected.busbw[size]
    return expected.busbw_gbs if expected.busbw and size > max(expected.busbw) else None


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
