"""The fast extractor: what `plain.extract_plain` gives, from blocks of bytes with vector operations.

Nine lines of ten are connections, printed by records whose heads repeat. Heads and tails of those meet the grammar once
per text; their numbers are read for all lines of a block together. Other messages are looked up by their bytes, and
meet the grammar once per text too. Whatever is not exactly one INFO record on its line (warnings, applications, torn or
glued records, carriage returns, colours), and whatever needs its line's label or time, goes through `plain.read_line`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log import plain, scan_conn
from topodiag.evidence.nccl_log.facts import Facts
from topodiag.evidence.nccl_log.scan_bytes import PAD, Block, Flags, Positions, bytes_behind_last, window, word
from topodiag.evidence.nccl_log.scan_shard import Shard

BLOCK = 2 << 20
"""Bytes looked at together: small enough for a core's caches, large enough that numpy's calls cost nothing."""

_NCCL, _INFO = word(b" NCCL IN"), word(b"CL INFO ")
_ANCHOR = np.uint64(int.from_bytes(b" NCCL \xff\xff", "little") & ((1 << 48) - 1))
_ANCHOR_MASK = np.uint64((1 << 48) - 1)
_NEWLINE, _SPACE = 10, 32
_MOST_HEAD = 88
_SPEAKS = (b"NCCL", b"INFO", b"nccl", b"CCL ", b" version ", b"|", b"atchdog", b"last enqueued", b"Duplicate")
"""A line without a record in which none of these stands says nothing to `prefix.application`."""


def extract(data: bytes | memoryview, file: int, base: int) -> Facts:
    """Facts of whole lines of a file; `base` is the offset of `data` in the file."""
    view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)
    shard = Shard(file, base)
    done = 0
    while done < len(view):
        end = _cut(view, done)
        _Scan(shard, Block(view[done:end]), done).run()
        done = end
    return shard.facts(len(view))


def _cut(view: memoryview, start: int) -> int:
    """End of the block that begins at `start`: behind the last newline in reach, else behind the next one."""
    size, reach = len(view), BLOCK
    while start + reach < size:
        newline = bytes(view[start : start + reach]).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        reach *= 4
    return size


class _Scan:
    """One block on its way into the shard."""

    def __init__(self, shard: Shard, block: Block, place: int) -> None:
        self.shard = shard
        self.block = block
        self.shift = shard.base + place - PAD
        inside = block.at[PAD : PAD + block.size]
        self.ends: Positions = np.flatnonzero(inside == _NEWLINE) + PAD
        if block.size and inside[-1] != _NEWLINE:
            self.ends = np.append(self.ends, PAD + block.size)
        self.starts: Positions = np.empty_like(self.ends)
        self.starts[:1] = PAD
        self.starts[1:] = self.ends[:-1] + 1
        self.odd: Flags = np.zeros(len(self.ends), dtype=np.bool_)
        self.odd[self._lines_of(np.flatnonzero((inside < _SPACE) & (inside != _NEWLINE)) + PAD)] = True
        for old in (b"] INFO ", b"] WARN "):  # records of 2.2 and before, maybe glued to a later one
            at = block.raw.find(old)
            while at >= 0:
                self.odd[self._lines_of(np.array([at]))] = True
                at = block.raw.find(old, at + 1)

    def run(self) -> None:
        shard, block = self.shard, self.block
        shard.begin_block(self.starts + self.shift)
        line, anchor = self._records()
        thread = self._threads(line, anchor)
        self.odd[line[thread < 0]] = True
        kept = np.flatnonzero(~self.odd[line])
        line, message, thread = line[kept], anchor[kept] + 11, thread[kept]
        end = self.ends[line]

        connections = scan_conn.read(block, message, end)
        tail = shard.tails(connections.tail)
        rest = np.ones(len(line), dtype=np.bool_)
        rest[connections.lines[tail >= 0]] = False
        shard.add_connections(connections, tail, line[connections.lines], thread[connections.lines])

        rings = scan_conn.read_rings(block, message, end)
        rest[rings.lines] = False
        shard.add_rings(rings, line[rings.lines], thread[rings.lines])

        others = np.flatnonzero(rest)
        raw = block.raw
        codes = []
        for index, a, b in zip(others.tolist(), message[others].tolist(), end[others].tolist(), strict=True):
            if raw.find(b": opCount ", a, min(a + 50, b)) >= 0:
                codes.append(shard.operation(raw[a:b], int(line[index]), int(thread[index])))
            else:
                codes.append(shard.message(raw[a:b]))
        coded = np.array(codes, dtype=np.int64)
        shard.add_messages(coded, line[others], thread[others])
        self.odd[line[others[coded == -1]]] = True
        self._plain_lines()
        shard.end_block(len(self.ends))

    def _lines_of(self, where: Positions) -> Positions:
        return np.searchsorted(self.ends, where)

    def _records(self) -> tuple[Positions, Positions]:
        """Lines with one ` NCCL INFO ` and no other ` NCCL `, and where it stands. All other lines become odd."""
        block = self.block
        where = np.flatnonzero(block.at == ord("L")) - 4
        words = block.words[where]
        where = where[(words & _ANCHOR_MASK) == _ANCHOR]
        line = self._lines_of(where)
        records = np.bincount(line, minlength=len(self.ends))
        self.odd |= records != 1
        good = (block.words[where] == _NCCL) & (block.words[where + 3] == _INFO) & (where + 11 <= self.ends[line])
        self.odd[line[~good]] = True
        kept = np.flatnonzero(~self.odd[line])
        return line[kept], where[kept]

    def _threads(self, line: Positions, anchor: Positions) -> npt.NDArray[np.int64]:
        """Who prints, -1 where the head must be looked at: the text from a blank over `host:pid:tid [dev]` on."""
        block = self.block
        begin = self.starts[line]
        bracket = anchor - 2
        for _ in range(4):
            bracket = np.where(block.at[bracket] == ord("["), bracket, bracket - 1)
        blank = bracket - 1
        fine = (block.at[anchor - 1] == ord("]")) & (block.at[bracket] == ord("[")) & (block.at[blank] == _SPACE)
        fine &= blank > begin
        length = np.zeros(len(line), dtype=np.int64)
        open_: Positions = np.flatnonzero(fine)
        for _ in range(8):
            if not len(open_):
                break
            step = bytes_behind_last(block.words[blank[open_] - length[open_] - 8], _SPACE)
            length[open_] += step
            open_ = open_[(step == 8) & (length[open_] < (blank - begin)[open_])]
        fine[open_] = False
        start = np.maximum(blank - length, begin)
        length = anchor - start
        fine &= length < _MOST_HEAD
        thread = np.full(len(line), -1, dtype=np.int64)
        kept = np.flatnonzero(fine)
        thread[kept] = self.shard.threads_of(window(block, start[kept], length[kept]))
        return thread

    def _plain_lines(self) -> None:
        raw, collector = self.block.raw, self.shard.slow
        lines = np.flatnonzero(self.odd & (self.ends > self.starts))
        starts, ends = self.starts[lines].tolist(), self.ends[lines].tolist()
        for line, start, end in zip(lines.tolist(), starts, ends, strict=True):
            text = raw[start:end]
            if any(part in text for part in _SPEAKS):
                plain.read_line(collector, text, start + self.shift, line)
