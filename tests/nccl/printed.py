"""The lines that NCCL prints of rings and trees, as a log holds them: to compare a replay with."""

from collections.abc import Sequence

from benchmarks.nccl_rings import TreePlace

_LINE = 127
"""Characters of a `Channel` line before NCCL cuts it (src/graph/rings.cc, dumpLine)."""
_OLD_WIDTH = 20
"""Ranks of a `Channel` line before NCCL 2.23 (rings.cc)."""


def channel_line(channel: int, channels: int, ring: Sequence[int], nranks: int, minor: int) -> str:
    """The line `Channel 00/16 :  0  7  6 ...` of rank 0, cut where NCCL cuts it."""
    line = f"Channel {channel:02d}/{channels:02d} :"
    if minor < 23:
        return line + " " + "".join(f" {rank:3d}" for rank in ring[:_OLD_WIDTH])
    width = len(str(nranks - 1))
    line += "".join(f" {rank:{width}d}" for rank in ring)
    return line if len(line) <= _LINE else line[: _LINE - 3] + "..."


def trees_text(places: Sequence[TreePlace], rank: int) -> str:
    """What follows `Trees` in a rank's log line; NCCL's buffer cuts it at 1022 characters (src/init.cc)."""
    shown = (f"{'/'.join(map(str, place.down))}->{rank}->{place.up}" for place in places)
    return "".join(f" [{channel}] {text}" for channel, text in enumerate(shown))[:1022]
