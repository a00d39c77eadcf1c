"""Cores that more threads want than there are: by the numbers that people and tools give of threads, load and limits.

    368 cores, 8 GPUs; torch.get_num_threads() is 368 in each      each process opens threads for all cores
    nproc 64, load average: 812.40, 801.11, 790.01                 many times as many tasks as cores
    nr_periods 120044, nr_throttled 98121                          the limit of a container holds its tasks back

Loaders, tokenisers and the launches of kernels wait for a core then, and each rank comes late.

SOURCE: torch aten/src/ATen/ParallelOpenMP.cpp (a pool of all cores where nothing says less); Linux
kernel/sched/loadavg.c; Documentation/admin-guide/cgroup-v2.rst (cpu.stat).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Telling, event
from topodiag.model.system import TOLD_OF, KernelEvent
from topodiag.model.topics import Topic
from topodiag.words.units import percent

CROWDED = 2.0
"""Times the cores that threads or tasks must be: half as many again is what busy nodes have."""
HELD_BACK = 0.1
"""Share of a container's periods that are cut short."""
FEWEST_PERIODS = 1000
ALERT = 25
"""Per cent of its periods from which on Kubernetes' rules call a container throttled."""
_WORDS = ("load average", "get_num_threads", "nr_throttled", "throttling of CPU")
MAX_LINE = 400
MAX_LINES = 4000

_PROMPT = re.compile(r"^\s{0,8}(?:\S{0,60}[$#%>]|\+)\s{1,3}nproc(?: --all)?\s*$|^nproc:?\s*$")
_CORES = re.compile(
    r"(?<![\w.~-])(?P<many>[0-9]{1,4}) (?:(?:CPU|cpu|physical|logical) )?(?:cores|vCPUs|CPUs)\b"
    r"(?! (?:busy|used|idle|free|per|each|for)| ?/)|^\s{0,8}CPU\(s\):\s{1,40}(?P<lscpu>[0-9]{1,5})\s*$"
    r"|\bnproc\s{0,3}[:=]\s{0,3}(?P<nproc>[0-9]{1,5})\b"
)
_POOL = re.compile(r"\bget_num_threads\(\)(?:\s{0,3}[:=]+\s{0,3}(?P<here>[0-9]{1,5})\b)?")
_BARE = re.compile(r"^\s{0,8}(?P<many>[0-9]{1,5})\s*$")
_EACH = re.compile(
    r"\beach of (?:the |these |our )?(?P<each>[0-9]{1,4}) (?:\w{1,12} )?(?:actors|ranks|workers|processes|procs)\b"
    r"|\bn(?:proc|tasks)[_-]per[_-]node[= ](?P<launched>[0-9]{1,4})\b"
    r"|\b(?P<run>[0-9]{1,4}) (?:actors|ranks|workers|processes) (?:per|on each|on a|on this) (?:node|host)\b"
)
_LOAD = re.compile(r"\bload average: {0,3}(?P<one>[0-9]{1,6}\.[0-9]{2}), {0,3}(?P<five>[0-9]{1,6}\.[0-9]{2})")
_IN_THE_KERNEL = re.compile(r"blocked for more than|not responding|\bD[sl+<N]{0,3}\s|\bD state|uninterruptible")
"""Tasks that wait in the kernel count into the load, and want no core."""
_PERIODS = re.compile(r"\bnr_(?P<which>periods|throttled)\s{1,4}(?P<many>[0-9]{1,15})\s*$")


_ALERT = re.compile(r"\b(?P<share>[0-9]{1,3})(?:\.[0-9]{1,4})? ?% throttling of CPU\b")
"""kubernetes-mixin, alerts/resource_alerts.libsonnet (CPUThrottlingHigh)."""


@dataclass(slots=True)
class _Said:
    """A number with the line that says it."""

    many: float
    number: int
    line: str


class CrowdedCores(Telling):
    """Whether the numbers of a text show more threads than cores, or a container that is held back."""

    kind = "crowded-cores"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 10
    a_piece = "numbers of threads and cores that stand in one text"

    def recognises(self, head: str) -> bool:
        if not any(word in head for word in _WORDS):
            return False
        return next(_crowded(list(enumerate(head.split("\n")[:MAX_LINES], 1))), None) is not None

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        lines = list(blob.lines())[:MAX_LINES]
        parsed.lines = len(lines)
        parsed.records = [
            event(f"{TOLD_OF}cpu-crowded", words, blob, said.number, said.line) for words, said in _crowded(lines)
        ]
        return parsed


def _crowded(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, _Said]]:
    cut = [(number, line[:MAX_LINE]) for number, line in lines]
    cores = _cores(cut)
    if cores is not None and cores.many > 0:
        yield from _pools(cut, cores)
        yield from _loads(cut, cores)
    yield from _held_back(cut)


def _cores(lines: Sequence[tuple[int, str]]) -> _Said | None:
    """The cores of the host, as the first line gives them that does."""
    asked = False
    for number, line in lines:
        bare = _BARE.match(line) if asked else None
        asked = _PROMPT.match(line) is not None
        if bare is not None:
            return _Said(int(bare["many"]), number, line)
        found = _CORES.search(line)
        if found is not None:
            return _Said(int(found["many"] or found["lscpu"] or found["nproc"]), number, line)
    return None


def _pools(lines: Sequence[tuple[int, str]], cores: _Said) -> Iterator[tuple[str, _Said]]:
    """Processes that open a pool of threads for all cores each."""
    each = next((found for _, line in lines if (found := _EACH.search(line)) is not None), None)
    if each is None:
        return
    processes = int(each["each"] or each["launched"] or each["run"])
    for at, (number, line) in enumerate(lines):
        found = _POOL.search(line)
        if found is None:
            continue
        below = next((bare for _, later in lines[at + 1 : at + 3] if (bare := _BARE.match(later)) is not None), None)
        threads = int(found["here"] or (below["many"] if below is not None else 0))
        if processes > 1 and threads * processes >= CROWDED * cores.many:
            words = f"{processes} processes with {threads} threads each on {cores.many:.0f} cores (OMP_NUM_THREADS)"
            yield words, _Said(threads, number, line)
            return


def _loads(lines: Sequence[tuple[int, str]], cores: _Said) -> Iterator[tuple[str, _Said]]:
    if any(_IN_THE_KERNEL.search(line) is not None for _, line in lines):
        return
    for number, line in lines:
        found = _LOAD.search(line)
        if found is not None and min(float(found["one"]), float(found["five"])) >= CROWDED * cores.many:
            words = f"a load of {found['one']} on {cores.many:.0f} cores: tasks wait for a core, or in the kernel"
            yield words, _Said(float(found["one"]), number, line)
            return


def _held_back(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, _Said]]:
    periods = 0
    for number, line in lines:
        alert = _ALERT.search(line)
        if alert is not None and int(alert["share"]) >= ALERT:
            words = f"the CPU limit of the container cut {percent(int(alert['share']) / 100)} of its periods short"
            yield words, _Said(int(alert["share"]), number, line)
            return
        found = _PERIODS.search(line)
        if found is None:
            continue
        many = int(found["many"])
        if found["which"] == "periods":
            periods = many
        elif periods >= FEWEST_PERIODS and many >= HELD_BACK * periods:
            words = f"the CPU limit of the container cut {many} of {periods} periods short (cpu.max)"
            yield words, _Said(many, number, line)
            return
