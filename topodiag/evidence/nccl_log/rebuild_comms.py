"""What a communicator's members said of it: channels, rings, trees, transports, NCCL's print, choices, operations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from topodiag.evidence.nccl_log.facts import TAIL
from topodiag.evidence.nccl_log.rebuild_frame import Frame, Ints, groups
from topodiag.evidence.nccl_log.system_print import Print, read_print
from topodiag.model.job import PHASES, Channels, Choice, Message, Operations
from topodiag.model.nccl_view import Graph, NcclSystem, Tuning

_HALF, _LOW = 32, (1 << 32) - 1
"""Two ranks in one number: the upper is shifted, the lower not negative."""

_TYPE_BYTES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
"""By NCCL's number of a datatype (nccl.h): int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16,
fp8e4m3, fp8e5m2."""

OF_COMMUNICATORS = frozenset({
    "connected", "nvls", "nvls comm", "nvls head", "nvls tree", "mnnvl", "collnet", "config", "p2p type", "chunk size",
    "thresholds", "assigned", "kernel", "split", "network", "search", "devices", "connect time",
})  # fmt: skip
"""Kinds of text that speak of a communicator."""


@dataclass(slots=True)
class Said:
    """The fields of a communicator that its members' rows fill."""

    channels: Channels = field(default_factory=Channels)
    channels_by_rank: dict[int, Channels] = field(default_factory=dict)
    rings: dict[int, tuple[int, ...]] = field(default_factory=dict)
    trees: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    systems: dict[str, NcclSystem] = field(default_factory=dict)
    graphs: dict[str, tuple[Graph, ...]] = field(default_factory=dict)
    tuning: Tuning = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    operations: dict[int, Operations] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()
    name: str = ""
    network: str = ""
    ring_pxn: bool | None = None
    ring_gdr: bool | None = None
    timing: dict[str, dict[int, float]] = field(default_factory=dict)


class Hearing:
    """Collects what was said, table by table. `member` columns hold the member of each row."""

    def __init__(
        self, frame: Frame, comm_of: Ints, rank_of: Ints, nranks: Sequence[int], host_of: Sequence[str]
    ) -> None:
        self.frame, self.comm_of, self.rank_of, self.nranks, self.host_of = frame, comm_of, rank_of, nranks, host_of
        self.said = [Said() for _ in nranks]

    def _comm(self, member: Ints) -> Ints:
        return np.where(member >= 0, self.comm_of[member], -1) if self.comm_of.size else np.full(len(member), -1)

    def channels(self, member: Ints) -> None:
        rows = self.frame["channels"]
        lists = {name: rows[name].tolist() for name in ("coll", "collnet", "nvls", "p2p", "per_peer")}
        for number, own in groups(self._comm(member)):
            made: dict[int, Channels] = {}
            for row in own.tolist():
                made[int(self.rank_of[member[row]])] = Channels(**{name: lists[name][row] for name in lists})
            common = Counter(made.values()).most_common(1)[0][0]
            self.said[number].channels = common
            self.said[number].channels_by_rank = {
                rank: each for rank, each in sorted(made.items()) if each != common
            }  # fmt: skip

    def rings(self, member: Ints, order_member: Ints) -> None:
        rows = self.frame["ring"]
        for number, own in groups(self._comm(member)):
            size = self.nranks[number]
            links: dict[int, Ints] = {}
            for row in own.tolist():
                mask = int(rows["channels"][row])
                prev, rank, after = int(rows["prev"][row]), int(rows["rank"][row]), int(rows["next"][row])
                while mask:
                    channel = (mask & -mask).bit_length() - 1
                    mask &= mask - 1
                    link = links.get(channel)
                    if link is None:
                        link = links[channel] = np.full(max(size, 0), -1, np.int64)
                    for here, there in ((prev, rank), (rank, after)):
                        if 0 <= here < size and 0 <= there < size:
                            link[here] = there
            for channel, link in sorted(links.items()):
                ring = _closed(link.tolist())
                if ring:
                    self.said[number].rings[channel] = ring
        orders = self.frame["order"]
        for number, own in groups(self._comm(order_member)):
            for row in own.tolist():
                ring = _order(orders.word("ranks", row), self.nranks[number])
                channel = int(orders["channel"][row])
                if ring and not orders["cut"][row]:
                    self.said[number].rings.setdefault(channel, ring)

    def trees(self, member: Ints) -> None:
        rows = self.frame["tree"]
        usable = np.where((rows["second"] == 0) & (rows["up"] >= 0), self._comm(member), -1)
        for number, own in groups(usable):
            masks = rows["channels"][own]
            made: dict[int, tuple[tuple[int, int], ...]] = {}
            pairs = (rows["rank"][own] << _HALF) + rows["up"][own]
            used = int(np.bitwise_or.reduce(masks))
            for channel in range(used.bit_length()):
                if used >> channel & 1:
                    there = np.unique(pairs[(masks >> np.uint64(channel)) & np.uint64(1) == 1]).tolist()
                    made[channel] = tuple((pair >> _HALF, pair & _LOW) for pair in there)
            self.said[number].trees = made

    def prints(self, member: Ints) -> None:
        rows = self.frame["print"]
        read: dict[int, Print] = {}
        for number, own in groups(self._comm(member)):
            said = self.said[number]
            ordered = sorted(own.tolist(), key=lambda row: (int(self.rank_of[member[row]]), int(rows["offset"][row])))
            for row in ordered:
                host = self.host_of[int(member[row])]
                if host in said.systems and host in said.graphs:
                    continue
                code = int(rows["text"][row])
                if code not in read:
                    read[code] = read_print(rows.words["text"][code], self.frame.origin("print", row))
                found = read[code]
                if found.system is not None:
                    said.systems.setdefault(host, found.system)
                if found.graphs:
                    said.graphs.setdefault(host, found.graphs)
                if found.tuning and not said.tuning:
                    said.tuning = found.tuning

    def choices(self, member: Ints) -> None:
        rows = self.frame["choice"]
        for number, own in groups(self._comm(member)):
            lowest = min(int(self.rank_of[member[row]]) for row in own.tolist())
            made: dict[tuple[Any, ...], int] = {}
            for row in sorted(own.tolist(), key=lambda row: int(rows["offset"][row])):
                if int(self.rank_of[member[row]]) != lowest:
                    continue
                key = (rows.word("func", row), int(rows["bytes"][row]), rows.word("algo", row),
                       rows.word("proto", row), int(rows["lo"][row]), int(rows["hi"][row]))  # fmt: skip
                made[key] = made.get(key, 0) + int(rows["count"][row])
            self.said[number].choices = tuple(
                Choice(func, size, algo, proto, count, (low, high))
                for (func, size, algo, proto, low, high), count in made.items()
            )

    def operations(self, member: Ints, tail_member: Ints) -> None:
        rows, tails = self.frame["op"], self.frame["tail"]
        files = self.frame["threads"]["file"]
        ends: dict[int, tuple[tuple[int, str, int, int, int, int], ...]] = {}
        names = ("op_count", "func", "elements", "dtype", "redop", "root")
        funcs = tails.words["func"]
        for owner, own in groups(tail_member):
            file = files[tails["thread"][own]]
            if (file != file[0]).any():
                continue  # which of the files came last is not told
            # One tail per thread and context that printed for the member: only their last ones leave no gap.
            last = own[np.argsort(tails["offset"][own], kind="stable")][-TAIL:]
            columns = [tails[name][last].tolist() for name in names]
            columns[1] = [funcs[code] for code in columns[1]]
            ends[owner] = tuple(zip(*columns, strict=True))
        for owner, own in groups(member):
            volume: dict[str, int] = {}
            calls: dict[str, int] = {}
            for row in own.tolist():
                elements, dtype = int(rows["elements"][row]), int(rows["dtype"][row])
                elements = abs(elements)  # negative where sizes were rounded
                width = _TYPE_BYTES[dtype] if 0 <= dtype < len(_TYPE_BYTES) else 1
                func = rows.word("func", row)
                volume[func] = volume.get(func, 0) + elements * width * int(rows["count"][row])
                calls[func] = calls.get(func, 0) + int(rows["count"][row])
            first = own[np.argmin(rows["offset"][own])]
            made = Operations(
                last=int(rows["last"][own].max()), calls=int(rows["count"][own].sum()),
                digest=int(np.add.reduce(rows["digest"][own])), bytes_by_collective=volume,
                calls_by_collective=calls, tail=ends.get(owner, ()), origin=self.frame.origin("op", int(first)),
            )  # fmt: skip
            self.said[int(self.comm_of[owner])].operations[int(self.rank_of[owner])] = made

    def timings(self, member: Ints) -> None:
        rows = self.frame["timing"]
        for row in np.flatnonzero(member >= 0).tolist():
            said = self.said[int(self.comm_of[member[row]])]
            rank = int(self.rank_of[member[row]])
            for name in ("total", *PHASES):
                value = float(rows[name][row])
                if not math.isnan(value):
                    said.timing.setdefault(name, {})[rank] = value

    def texts(self, member: Ints) -> None:
        rows = self.frame["text"]
        kinds, texts = rows.words["kind"], rows.words["text"]
        wanted = rows.is_word("kind", *OF_COMMUNICATORS)
        for number, own in groups(np.where(wanted, self._comm(member), -1)):
            said = self.said[number]
            made: dict[tuple[int, int], list[int]] = {}
            for row, kind, text, count in zip(
                own.tolist(), rows["kind"][own].tolist(), rows["text"][own].tolist(), rows["count"][own].tolist(),
                strict=True,
            ):  # fmt: skip
                made.setdefault((kind, text), [row, 0])[1] += count
            messages = []
            for (kind, text), (row, count) in made.items():
                self._note(said, kinds[kind], texts[text])
                messages.append(Message(kinds[kind], texts[text], self.frame.origin("text", row, texts[text]), count))
            said.messages = tuple(messages)

    def _note(self, said: Said, kind: str, text: str) -> None:
        if kind == "network":
            said.network = said.network or text.partition("Using network ")[2].strip()
        elif kind == "config" and "Comm name set to " in text:
            said.name = said.name or text.partition("Comm name set to ")[2].strip()
        elif kind == "connected" and "use ring PXN" in text:
            words = text.partition("use ring PXN")[2].split()
            if len(words) >= 3 and words[0] in "01" and words[2] in "01":
                # One member without GDR is a communicator with a channel without it.
                said.ring_pxn = bool(said.ring_pxn) or words[0] == "1"
                said.ring_gdr = words[2] == "1" and said.ring_gdr is not False


def _closed(link: Sequence[int]) -> tuple[int, ...]:
    """The ring from rank 0 when following it comes back after all ranks."""
    made = []
    here = 0
    for _ in link:
        made.append(here)
        here = link[here]
        if here <= 0:
            break
    return tuple(made) if link and here == 0 and len(made) == len(link) else ()


def _order(text: str, size: int) -> tuple[int, ...]:
    words = text.split()
    if len(words) != size or not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        return ()
    ranks = [int(word) for word in words]
    if sorted(ranks) != list(range(size)):
        return ()
    start = ranks.index(0)
    return tuple(ranks[start:] + ranks[:start])


def phases(timing: Mapping[str, Mapping[int, float]], size: int) -> dict[str, Any]:
    made = {}
    for name, values in timing.items():
        column = np.full(max(size, 0), np.nan)
        for rank, value in values.items():
            if 0 <= rank < size:
                column[rank] = value
        made[name] = column
    return made
