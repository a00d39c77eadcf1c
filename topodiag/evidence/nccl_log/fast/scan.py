"""The extractor of logs: their facts from blocks of bytes, with vector operations.

Nine lines of ten are connections, printed by records whose heads repeat. Fronts of lines are looked up by their bytes.
Connections that differ in the channel only are put together, and one of each is read, by arithmetic on its bytes; so
are rings, operations and inits. Other messages are looked up by their bytes, and meet the grammar once per text.
Whatever is not exactly one INFO record on its line (warnings, applications, torn or glued records, carriage returns,
colours), and whatever is written otherwise than the forms that are known here, goes through `slow.rows_of_line`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.fast import forms as scan_forms
from topodiag.evidence.nccl_log.fast.bytes import MASKS, PAD, Block, word
from topodiag.evidence.nccl_log.fast.heads import Heads
from topodiag.evidence.nccl_log.fast.shard import UNDECIDED, Shard
from topodiag.evidence.nccl_log.grammar.grammar import START
from topodiag.evidence.nccl_log.grammar.spoken import SPEAKS, speaking
from topodiag.evidence.nccl_log.tables.facts import Facts, Flags, Positions
from topodiag.evidence.nccl_log.tables.resolve import resolve
from topodiag.words.colours import without_colours

BLOCK = 3 << 20
"""Bytes looked at together: small enough for a core's caches, large enough that numpy's calls cost nothing."""

_NCCL, _INFO = word(b" NCCL IN"), word(b"FO \0\0\0\0\0")
_ANCHOR_BYTES = 11
_ANCHOR = np.uint64(int.from_bytes(b" NCCL \xff\xff", "little") & ((1 << 48) - 1))
_ANCHOR_MASK = np.uint64((1 << 48) - 1)
_NEWLINE, _SPACE = 10, 32
_MOST_TEXT = 240
_TORN = (b"\x1b", b"\0")
"""What may stand inside of words, and is taken out of a line before it is read."""
_TAKEN_OUT = np.frombuffer(b"\x1b\0\r", dtype=np.uint8)
"""The same, and what may stand at the end of a line."""
_KUBE_EVENTS = (b"  Warning ", b"  Normal ")
"""How a line of the events of `kubectl describe` begins: the head of its section names the object, not the line."""
_LENGTHS = np.array([len(part) for part in SPEAKS])


def extract(data: bytes | memoryview, file: int, base: int) -> Facts:
    """Facts of whole lines of a file, equal ones as one; `base` is the offset of `data` in the file."""
    return resolve(extract_several([(data, file, base)]))


def extract_several(parts: Sequence[tuple[bytes | memoryview, int, int]]) -> Facts:
    """Facts of whole lines of several files, each as `extract` takes it; `resolve` makes equal ones one."""
    shard = Shard()
    for data, file, base in parts:
        shard.begin_file(file, base)
        shard.end_file(len(data), _take(shard, data if isinstance(data, bytes) else bytes(data), base))
    return shard.facts()


def _take(shard: Shard, data: bytes, base: int) -> int:
    """Reads a file's lines; returns how many it did not need to look at."""
    is_loud = data.find(SPEAKS[0], 0, BLOCK) >= 0 or speaking().any(data)  # the database of all of them is dear
    if not is_loud and not any(text in data for text in _TORN):
        return data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    heads = Heads(shard.thread_of)
    done = 0
    while done < len(data):
        end = _cut(data, done)
        block, begins = Block(memoryview(data)[done:end]), None
        if len(block.rare) and np.isin(block.at[block.rare], _TAKEN_OUT).any():
            block, begins = _cleaned(data[done:end])
        _Scan(shard, heads, block, base + done, begins).run()
        done = end
    return 0


def _cleaned(text: bytes) -> tuple[Block, Positions]:
    """These lines as `prefix.clean` leaves them, without colours, zeros and carriage returns at their ends; and where
    each of them began."""
    newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE)
    begins = np.append(0, newlines + 1)[: len(newlines) + (text[-1:] != b"\n")]
    return Block(without_colours(text).replace(b"\r\n", b"\n")), begins


def _cut(data: bytes, start: int) -> int:
    """End of the block that begins at `start`: behind the last newline in reach, else behind the next one."""
    size, reach = len(data), BLOCK
    while start + reach < size:
        newline = data.rfind(b"\n", start, start + reach)
        if newline >= 0:
            return newline + 1
        reach *= 4
    return size


class _Scan:
    """One block on its way into the shard."""

    def __init__(self, shard: Shard, heads: Heads, block: Block, base: int, begins: Positions | None) -> None:
        self.shard, self.heads, self.block = shard, heads, block
        self.ends = block.ends
        if block.size and block.at[PAD + block.size - 1] != _NEWLINE:
            self.ends = np.append(self.ends, PAD + block.size)
        self.starts: Positions = np.append(PAD, self.ends[:-1] + 1)[: len(self.ends)]
        self.offsets: Positions = (self.starts - PAD if begins is None else begins) + base
        self.odd: Flags = np.zeros(len(self.ends), dtype=np.bool_)
        self.odd[np.searchsorted(self.ends, block.rare)] = True

    def run(self) -> None:
        shard, block = self.shard, self.block
        shard.begin_block(self.offsets)
        line, anchor = self._records()
        begin = self.starts[line]
        thread, head = self.heads.find(block, begin, anchor)
        label = anchor - begin - head
        fine = thread >= 0
        if not fine.all():
            self.odd[line[~fine]] = True
            line, anchor, thread, label = (array[fine] for array in (line, anchor, thread, label))
        self.line, self.thread, self.label = line, thread, label
        self.message, self.end = anchor + _ANCHOR_BYTES, self.ends[line]

        channels = scan_forms.channels_among(block, self.message, self.end)
        rest = np.ones(len(line), dtype=np.bool_)
        rest[channels.lines] = False
        others, kept, kind = self._decided(self._take_calls(np.flatnonzero(rest)))
        codes = self._codes(others)
        self._plain_lines()
        shard.name_contexts()
        shard.add_texts(block.texts(self.message[kept], self.end[kept]), kind, self.line[kept], self.thread[kept])
        own = channels.lines
        left = shard.add_channels(block, channels, self.line[own], self.thread[own]) if len(own) else own
        if len(left):
            others = np.append(others, own[left])
            codes = np.append(codes, self._codes(own[left]))
            self._plain_lines()
        shard.add_messages(codes, self.line[others], self.thread[others])
        shard.end_block(len(self.offsets))

    def _take_calls(self, records: Positions) -> Positions:
        """Take operations and inits among these records; returns the others."""
        shard, block = self.shard, self.block
        message, end = self.message[records], self.end[records]
        rest = np.ones(len(records), dtype=np.bool_)
        for form, lines, event in scan_forms.candidates(block, message, end):
            if not len(lines):
                continue
            read = scan_forms.read(block, message[lines], end[lines], form, shard.names)
            rest[lines[read.lines]] = False
            chosen = records[lines[read.lines]]
            line, thread = self.line[chosen], self.thread[chosen]
            if event:
                shard.add_inits(read, event, line, thread, self._stamps(chosen))
            else:
                shard.add_operations(read, line, thread)
        return records[rest]

    def _decided(self, records: Positions) -> tuple[Positions, Positions, npt.NDArray[np.int64]]:
        """Take those of these records whose kind their beginning decides: the others, those that are kept as they are,
        and the kinds of these."""
        block = self.block
        message = self.message[records]
        length = self.end[records] - message
        chosen = np.flatnonzero((length >= START) & (length < _MOST_TEXT))
        kind = self.shard.messages.kinds(block.rows(message[chosen], START // 8))
        decided = kind != UNDECIDED
        chosen, kind = chosen[decided], kind[decided]
        length = length[chosen]
        wide = int(length.max(initial=START))
        text = block.bytes(message[chosen], wide)
        inside = np.arange(wide, dtype=np.uint8) < length.astype(np.uint8)[:, np.newaxis]
        # Another record's head or label may follow; blanks at the end are not kept.
        last = block.at[message[chosen] + length - 1]
        fine = ~(((text == ord("]")) | (text > 126)) & inside).any(axis=1) & (last != _SPACE) & (last != ord(":"))
        chosen, kind = chosen[fine], kind[fine]
        rest = np.ones(len(records), dtype=np.bool_)
        rest[chosen] = False
        self.shard.count(len(chosen), len(chosen))
        return records[rest], records[chosen[kind >= 0]], kind[kind >= 0]

    def _stamps(self, records: Positions) -> npt.NDArray[np.int64]:
        """Bits of the seconds that stand in front of each of these records."""
        stamps = np.full(len(records), np.float64(nan).view(np.int64))
        labelled = np.flatnonzero(self.label[records] > 0)
        own = records[labelled]
        fronts = self.block.texts(self.starts[self.line[own]], self.message[own] - _ANCHOR_BYTES)
        stamps[labelled] = self.shard.stamps(fronts)
        return stamps

    def _codes(self, records: Positions) -> npt.NDArray[np.int64]:
        """Codes of the messages of these records; lines that have none become odd."""
        codes = self.shard.messages.codes(self.block.texts(self.message[records], self.end[records]))
        self.odd[self.line[records[codes < 0]]] = True
        return codes

    def _records(self) -> tuple[Positions, Positions]:
        """Lines with one ` NCCL INFO ` and no other ` NCCL `, and where it stands. All other lines become odd."""
        block = self.block
        where, line = block.letters - 4, block.lines
        begin, after = block.rows(where, 2)
        records = np.flatnonzero((begin & _ANCHOR_MASK) == _ANCHOR)
        if len(records) < len(where):
            where, line, begin, after = where[records], line[records], begin[records], after[records]
        good = (begin == _NCCL) & ((after & MASKS[3]) == _INFO)
        # A message may begin with the word: `NCCL INFO NCCL version 2.28.9`.
        again = (where[1:] == where[:-1] + _ANCHOR_BYTES - 1) & good[:-1]
        if again.any():
            kept = np.flatnonzero(~np.append(False, again))
            where, line, good = where[kept], line[kept], good[kept]
        self.odd |= np.bincount(line, minlength=len(self.ends)) != 1
        good &= where + _ANCHOR_BYTES <= self.ends[line]
        if not good.all():
            self.odd[line[~good]] = True
        kept = np.flatnonzero(~self.odd[line])
        return (line[kept], where[kept]) if len(kept) < len(line) else (line, where)

    def _plain_lines(self) -> None:
        """Read the lines that are odd by now one by one."""
        lines = np.flatnonzero(self.odd & (self.ends > self.starts))
        lines = lines[self._speak(lines)]
        for text, line in zip(self.block.texts(self.starts[lines], self.ends[lines]), lines.tolist(), strict=True):
            is_listed = text.startswith(_KUBE_EVENTS)
            self.shard.read_line(text, line, _pod_above(self.block.raw, int(self.starts[line])) if is_listed else "")
        self.odd[:] = False

    def _speak(self, lines: Positions) -> Flags:
        """Whether something may stand in each of these lines. What lies together is not taken apart for that."""
        if not len(lines):
            return np.zeros(0, np.bool_)
        begins = np.flatnonzero(np.append(True, np.diff(lines) > 1))
        first, last = self.starts[lines[begins]], self.ends[lines[np.append(begins[1:], len(lines)) - 1]]
        text = b"\n".join(self.block.texts(first, last))
        edges = np.cumsum(self.ends[lines] - self.starts[lines] + 1, dtype=np.int32)
        edges[-1] -= 1  # no newline follows the last one
        return _speaking(text, np.append(np.int32(0), edges))


def _pod_above(text: bytes, at: int) -> str:
    """The pod in whose section of `kubectl describe` a place lies, `pod train-3`; "" for another object, or none."""
    begin = max(text.rfind(edge + b"Name: ", 0, at) for edge in (b"\n", b"\0"))  # zeros stand around a block
    name, _, below = text[begin + 7 : at].partition(b"\n")
    is_pod = begin >= 0 and below.startswith(b"Namespace: ")
    return f"pod {name.strip().decode('utf-8', 'replace')}" if is_pod else ""


def _speaking(text: bytes, edges: npt.NDArray[np.int32]) -> Flags:
    """Whether any of SPEAKS stands between each of these edges and the next one."""
    flags = np.zeros(len(edges) - 1, np.bool_)
    hits = speaking().hits(text)
    if hits:
        begin, number = np.array(hits, np.int64).T
        line = np.searchsorted(edges, begin, "right") - 1
        flags[line[begin + _LENGTHS[number] <= edges[line + 1]]] = True
    return flags
