"""Parts that a line counts as fewer than there should be, in any tool's wording.

    expected 8 GPU NIC networks, found 0              networks of adapters, 0 of 8
    gpu check: 7 of 8 GPUs detected                   GPUs, 7 of 8
    GPU count mismatch: want 8, got 8                 nothing: they are equal

Free GPUs, ranks that have done a step and what a person asks for are counted in such words as well: a line counts where
it says what was expected, or that so many of all were seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PARTS = (
    ("adapters", "port-count",
     r"(?:GPU )?(?:NICs?|HCAs?|RDMA (?:NIC|device|interface|adapter)s?|(?:IB|InfiniBand|RoCE) (?:device|adapter|card)s?"
     r"|EFA (?:device|interface)s?|rails?)(?: networks?)?"),
    ("ports", "port-down", r"(?:(?:IB|InfiniBand|RoCE|NIC|HCA|network) )?(?:ports?|uplinks?)"),
    ("NVLinks", "nvlink", r"nv_?links?"),
    ("GPUs", "gpu-count", r"(?:(?:NVIDIA|CUDA|AMD|visible|healthy) )?(?:GPUs?|GPU devices?|accelerators?)"),
)  # fmt: skip
"""What they are called, the fault in the words of `checks/reported.py`, how tools name them."""
_ANY = "|".join(f"(?P<part{at}>{pattern})" for at, (_, _, pattern) in enumerate(_PARTS))
_WANT = r"(?:expect(?:ed|s|ing)?|want(?:ed|s)?|desired|should (?:be|have|see)|must (?:be|have))"
_SEEN = (
    r"(?:found|got|have|has|had|detected|sees?|seen|saw|only|but|actual(?:ly)?|observed|present|allocatable|available"
    r"|is|are)"
)
_GAP = r"\b[^\d.;,()\n]{1,40}?"
"""Between a word and its number: `expected number of GPUs to be 8`."""
_NUMBER = r"(?P<{}>\b(?:\d{{1,4}}|none|no|zero)\b)(?![.:/-]\d)"
_WANTED, _HAD = _NUMBER.format("wanted"), _NUMBER.format("had")
_GAP_OPEN = r"[^\d\n()]{1,40}\(\s{0,2}"
_STATE = r"(?:up|active|online|found|detected|visible|seen|healthy|present|listed|enumerated)"
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_WANT}{_GAP}{_WANTED}.{{0,60}}?\b{_SEEN}{_GAP}{_HAD}",
        rf"\b{_SEEN}{_GAP}{_HAD}.{{0,40}}?\b{_WANT}{_GAP}{_WANTED}",
        rf"{_HAD}(?=[^\d\n]{{1,40}}\(){_GAP_OPEN}{_WANTED}\s{{1,3}}(?:expected|wanted|required|configured)\b",
        rf"{_HAD}\s{{1,3}}(?:out )?of\s{{1,3}}(?:all )?{_WANTED}(?=\s{{1,3}}(?:[a-z-]{{1,12}} )?(?:{_ANY})\W{{1,3}}"
        rf"(?:(?:is|are|was|were)\s{{1,3}})?{_STATE}\b)",
        rf"(?P<had>(?<![\d/.])\d{{1,4}})\s?/\s?(?P<wanted>\d{{1,4}}(?![\d/.]))"
        rf"(?=\s{{1,3}}(?:[a-z-]{{1,12}} )?(?:{_ANY})\W{{1,3}}(?:(?:is|are|was|were)\s{{1,3}})?{_STATE}\b)",
        rf"{_HAD}.{{0,40}}?\b(?:instead of|rather than)\s{{1,3}}(?:the )?(?:expected |usual |full )?{_WANTED}",
        rf"\b{_WANT}{_GAP}{_WANTED}[^.;\d]{{0,40}}\b{_HAD}(?=\s{{1,3}}(?:(?:is|are|was|were)\s{{1,3}})?{_STATE}\b)",
    )
)
_NAMED = re.compile(rf"(?<![\w-])(?:{_ANY})(?![\w-])", re.IGNORECASE)
_BESIDE = re.compile(r"\s{1,3}(?:(?!(?:on|at|for|in|from|by|of|with|per)\b)[\w-]{1,20}\s{1,2}){0,2}$")
"""What may stand between a number and the noun that it counts."""
_CHEAP = re.compile(r"expect|want|desired|should|must| of |instead|rather|/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Short:
    """Fewer than expected: what is counted, which fault that is, how many there are and should be."""

    part: str
    fault: str
    had: int
    wanted: int

    @property
    def state(self) -> str:
        return f"{self.had} of {self.wanted}"


def short_of(line: str) -> Short | None:
    """What a line says is fewer than it should be; None where it says nothing of the kind."""
    if _CHEAP.search(line) is None:
        return None
    for order in _ORDERS:
        found = order.search(line)
        if found is None:
            continue
        had, wanted = (_count(found[each]) for each in ("had", "wanted"))
        named = _counted(line, found)
        if named is not None and had < wanted:
            at = next(at for at in range(len(_PARTS)) if named[f"part{at}"])
            return Short(*_PARTS[at][:2], had, wanted)
    return None


def _counted(line: str, found: re.Match[str]) -> re.Match[str] | None:
    """The noun that the numbers count: behind one of them, between the word and its number, or before both."""
    ends = (found.end("had"), found.end("wanted"))
    begins = (found.start(), found.start("had"), found.start("wanted"))
    nouns = list(_NAMED.finditer(line, max(0, found.start() - 30)))
    for named in nouns:
        if any(end < named.start() and _BESIDE.fullmatch(line, end, named.start()) for end in ends):
            return named
    return next((named for named in nouns if any(named.end() <= at <= named.end() + 20 for at in begins)), None)


def _count(word: str) -> int:
    return int(word) if word.isdigit() else 0
