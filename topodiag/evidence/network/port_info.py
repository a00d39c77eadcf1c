"""`ibportstate LID PORT` and `smpquery portinfo`: a port and its peer, what they run at and what both may.

    Peer PortInfo:
    LinkWidthActive:.................4X
    LinkSpeedEnabled:................2.5 Gbps or 5.0 Gbps or 10.0 Gbps
    LinkSpeedActive:.................10.0 Gbps

A link below what both ends have enabled is told. One end alone says nothing of what its peer can do; what somebody
disabled is no fault; a link that is not up is for others to judge. `sminfo` that names a master is read as news, too.

SOURCE: infiniband-diags, ibportstate.c (dump_portinfo), sminfo.c; OFED's mad_dump_field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.sentences import Together
from topodiag.words.units import in_gbps

MAX_LINE = 400
_HEAD = re.compile(r"\s{0,4}(Peer )?PortInfo:\s*$")
_FIELD = re.compile(r"\s{0,4}(PhysLinkState|Link(?:Width|Speed|SpeedExt)(?:Enabled|Active)):\.{1,60}(\S.{0,120}?)\s*$")
_WIDTHS = re.compile(r"\b(\d{1,2})X")
_SPEEDS = re.compile(r"\b(\d{1,3}(?:\.\d{1,6})?) ?Gbps")
_ANSWER = re.compile(
    r"^\s{0,4}LinkSpeedActive:\.{3,60}\d"
    r"|^\s{0,4}(?:sminfo: )?sm lid \d{1,6} sm guid 0x[0-9a-f]{1,16}, activity count \d",
    re.MULTILINE,
)
"""What these tools print where they have an answer."""

Block = dict[str, tuple[str, int]]
"""Values of one port by field, each with the number of its line."""


def is_answer(text: str) -> bool:
    """Whether a text is an answer of ibportstate, smpquery or sminfo."""
    return _ANSWER.search(text) is not None


def short_ports(lines: Sequence[str]) -> Iterator[Together]:
    """Of lines numbered from 1: links that run below what both their ends have enabled."""
    own: Block | None = None
    for is_peer, block in _blocks(lines):
        if not is_peer:
            own = block
        elif own is not None:
            yield from _short(own, block)
            own = None


def _blocks(lines: Sequence[str]) -> Iterator[tuple[bool, Block]]:
    block: Block = {}
    is_peer = False
    for number, whole in enumerate(lines, 1):
        line = whole[:MAX_LINE]
        head, field = _HEAD.match(line), _FIELD.match(line) if ":." in line else None
        if head is not None:
            if block:
                yield is_peer, block
            block, is_peer = {}, head[1] is not None
        elif field is not None:
            block.setdefault(field[1], (field[2], number))
    if block:
        yield is_peer, block


def _short(own: Block, peer: Block) -> Iterator[Together]:
    if any(block.get("PhysLinkState", ("", 0))[0] != "LinkUp" for block in (own, peer)):
        return
    for name, unit in (("Width", _WIDTHS), ("Speed", _SPEEDS)):
        now, number = _most(own, f"Link{name}Active", unit), own.get(f"Link{name}Active", ("", 0))[1]
        both = [_most(block, f"Link{name}Enabled", unit) for block in (own, peer)]
        if unit is _SPEEDS:
            now = max(now, _most(own, "LinkSpeedExtActive", unit))
            both = [
                max(had, _most(block, "LinkSpeedExtEnabled", unit))
                for had, block in zip(both, (own, peer), strict=True)
            ]
        if 0 < now < min(both):
            spelt = (f"{now:g}X of {min(both):g}X",) if unit is _WIDTHS else (_lanes(now, min(both)),)
            yield Together("link-slow", number, f"the link runs at {spelt[0]} that both its ends have enabled")


def _lanes(now: float, able: float) -> str:
    return f"{in_gbps(now)} a lane, of {in_gbps(able)}"


def _most(block: Block, field: str, unit: re.Pattern[str]) -> float:
    """The greatest value of a field; 0 where there is none."""
    return max((float(value) for value in unit.findall(block.get(field, ("", 0))[0])), default=0.0)


__all__ = ["is_answer", "short_ports"]
