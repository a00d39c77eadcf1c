"""`gpu_burn`: what each GPU calculates, side by side, and which of them makes errors.

    100.0%  proc'd: 5120 (49210 Gflop/s) - 1811 (17432 Gflop/s) - 5118 (49101 Gflop/s)   errors: 0 - 0 - 0   temps: 71 C - 89 C - 70 C
    GPU 1: FAULTY

The last line of a run counts. A GPU far below the others, all of them under the same load, fell short in a test. Format:
wilicc/gpu-burn, gpu_burn-drv.cpp.
"""  # noqa: E501 - the tool's line is that long

from __future__ import annotations

import re
from statistics import median

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.nvidia.dcgm import FAILED
from topodiag.lazy import dataclass, regex
from topodiag.model.topics import Topic

MAX_GPUS = 256
MAX_LINE = 20_000
FEWEST = 3
"""GPUs that show what one of them would reach."""
SHARE = 0.7
"""Part of the others' pace below which one fell short: cards of a kind differ by a tenth."""
_PROGRESS = regex(r"\d{1,3}\.\d%\s{1,8}proc'd: ")
_PACE = regex(r"\((\d{1,9}) Gflop/s\)")
_ERRORS = regex(r"errors: (\d{1,12}(?: {1,3}(?:\(WARNING!\))? ?- \d{1,12}){0,255})")
_FAULTY = regex(r"\s{0,8}GPU (\d{1,3}): FAULTY\s*\Z")


@dataclass(frozen=True, slots=True)
class BurnedGpu:
    """A GPU that fell short, and in what."""

    index: int
    words: str
    line: int
    text: str


class GpuBurn(Source[BurnedGpu]):
    """GPUs that are slow or wrong under gpu_burn."""

    kind = "gpu-burn"
    speaks_of = frozenset({Topic.GPUS})
    trust = 50
    a_piece = "GPUs that did well are not named"

    def recognises(self, head: str) -> bool:
        return _PROGRESS.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[BurnedGpu]:
        parsed: Parsed[BurnedGpu] = Parsed(partial=True)
        last: tuple[int, str] | None = None
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE]
            faulty = _FAULTY.match(line)
            if faulty is not None and int(faulty[1]) < MAX_GPUS:
                parsed.records.append(BurnedGpu(int(faulty[1]), "gpu_burn calls it faulty", number, line))
            elif (at := _last_of(line)) is not None:
                last = number, at
        if last is not None:
            parsed.records += _of_progress(*last)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[BurnedGpu], draft: NodeDraft) -> None:
        for record in parsed.records:
            draft.gpu(index=record.index).offer(FAILED, (record.words,), blob.origin(record.line, record.text))


def _last_of(line: str) -> str | None:
    """The newest state on a line: the tool writes each over the one before."""
    begins = [found.start() for found in _PROGRESS.finditer(line)]
    return line[begins[-1] :] if begins else None


def _of_progress(number: int, text: str) -> list[BurnedGpu]:
    paces = [int(each) for each in _PACE.findall(text)][:MAX_GPUS]
    errors = _ERRORS.search(text)
    wrong = [int(each) for each in re.findall(r"\d{1,12}", errors[1])] if errors is not None else []
    made = [
        BurnedGpu(at, f"gpu_burn: {count} wrong results", number, text)
        for at, count in enumerate(wrong[:MAX_GPUS])
        if count
    ]
    if len(paces) >= FEWEST and (usual := median(paces)) > 0:
        made += [
            BurnedGpu(at, f"gpu_burn: {pace} Gflop/s, {usual:.0f} on its siblings", number, text)
            for at, pace in enumerate(paces)
            if pace < SHARE * usual
        ]
    return made


__all__ = ["BurnedGpu", "GpuBurn"]
