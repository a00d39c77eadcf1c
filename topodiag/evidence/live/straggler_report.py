"""Reports of straggler detectors: the least and the most of all ranks, scores of ranks, or their times by section.

    MnRtt/Rnk: 2391.22ms/3 | MxRtt/Rnk: 4393.06ms/11       Megatron-LM; MinRoundTripTime/Rank in Composer
    Rank=9 Node=h2 Score=0.41                              NVIDIA's resiliency extension
    Min: 9.17ms, Max: 10.12ms, Avg: 9.55ms, Slowdown: 1.10x    and rows of ranks: FlagScale

A report is printed by jobs that are well, too: a rank is told where it is far behind the others.

SOURCE: Megatron-LM megatron/core/utils.py (StragglerDetector); composer callbacks; nvidia-resiliency-ext straggler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Telling, event
from topodiag.model.system import TOLD_OF, KernelEvent
from topodiag.model.topics import Topic
from topodiag.words.units import in_ms

BEHIND = 1.3
"""Times that the slowest rank must take what the fastest takes."""
LEAST_MS = 20.0
"""And by how much longer: sections of a few milliseconds are noise."""
LOW_SCORE = 0.7
"""The detector's own bar (nvidia-resiliency-ext, gpu_rel_threshold)."""
MAX_LINE = 2000
MOST = 20

_EXTREME = re.compile(
    r"\b(?P<end>Mn|Min|Mx|Max)(?P<name>Rtt|RoundTripTime|Etpt|Throughput)/(?:Rnk|Rank)[\"']?: {0,3}[\"']?"
    r"(?P<value>[0-9]{1,9}(?:\.[0-9]{1,6})?) ?(?:ms|TF)/(?P<rank>[0-9]{1,7})\b"
)
_RATES = frozenset({"Etpt", "Throughput"})
_SCORE = re.compile(r"\bRank=(?P<rank>[0-9]{1,7}) Node=(?P<host>[\w.-]{1,63}) Score=(?P<score>[0-9]\.[0-9]{1,6})\b")
_SECTION = re.compile(
    r"\bMin: {0,3}(?P<least>[0-9]{1,9}\.[0-9]{1,6}) ?ms, {0,3}Max: {0,3}(?P<most>[0-9]{1,9}\.[0-9]{1,6}) ?ms\b.{0,60}"
    r"\bSlowdown: {0,3}[0-9]"
)
_ROW = re.compile(r"\bRank (?P<rank>[0-9]{1,7}): {0,3}(?P<value>[0-9]{1,9}\.[0-9]{1,6}) ?ms\s*$")
_REPORT = re.compile(r"=== Straggler Report\b|\b(?:Worst|Best) performing [0-9]{1,7}/[0-9]{1,7} ranks:")


class StragglerReport(Telling):
    """Which rank a straggler detector's figures show far behind the others."""

    kind = "straggler-report"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 20
    quiet_is_news = True
    a_piece = "it speaks of times of ranks alone"

    def recognises(self, head: str) -> bool:
        return _REPORT.search(head) is not None or _EXTREME.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        ends: dict[tuple[str, bool], float] = {}
        section: tuple[float, float] | None = None
        for number, whole in blob.lines():
            line = whole[:MAX_LINE]
            parsed.lines = number
            found = _SECTION.search(line)
            if found is not None:
                section = float(found["least"]), float(found["most"])
            told = [*_extremes(line, ends), *_scores(line), *_rows(line, section)]
            if told and len(parsed.records) < MOST:
                parsed.records += [event(f"{TOLD_OF}rank-late", words, blob, number, line) for words in told]
        return parsed


def _extremes(line: str, ends: dict[tuple[str, bool], float]) -> Iterator[str]:
    """By the least and the most of one name, which may stand in two lines. `ends` holds the last of each."""
    for found in _EXTREME.finditer(line):
        name, high, value = found["name"], found["end"].startswith(("Mx", "Max")), float(found["value"])
        other = ends.pop((name, not high), None)
        if other is None:
            ends[name, high] = value
            continue
        least, most = (other, value) if high else (value, other)
        if most < BEHIND * least or (name not in _RATES and most - least < LEAST_MS):
            continue
        unit = "TFLOP/s" if name in _RATES else "ms"
        # Of a rate the least is the slowest; the line that is read last names it only where it is that end.
        who = f"rank {found['rank']}: " if high != (name in _RATES) else ""
        yield f"{who}ranks lie between {least:g} and {most:g} {unit}: {' '.join(line.split())[:200]}"


def _scores(line: str) -> Iterator[str]:
    for found in _SCORE.finditer(line):
        if float(found["score"]) < LOW_SCORE:
            yield f"rank {found['rank']} of {found['host']} scores {found['score']} beside the others' 1"


def _rows(line: str, section: tuple[float, float] | None) -> Iterator[str]:
    found = _ROW.search(line) if section is not None else None
    if found is None or section is None:
        return
    least, most = section
    if float(found["value"]) == most >= BEHIND * least and most - least >= LEAST_MS:
        yield f"rank {found['rank']} takes {in_ms(most * 1000)}, the fastest {in_ms(least * 1000)}"
