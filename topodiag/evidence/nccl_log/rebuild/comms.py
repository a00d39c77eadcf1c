"""What a communicator's members said of it: channels, rings, trees, transports, NCCL's print, choices, operations.
Beside it the rows of connections with the world ranks and hosts of both ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.grammar.ends import facts_of
from topodiag.evidence.nccl_log.grammar.system_print import Print, read_print
from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints, by_owner, groups, in_pieces, once
from topodiag.evidence.nccl_log.rebuild.process import network_named
from topodiag.evidence.nccl_log.tables.facts import TAIL, Table, distinct
from topodiag.evidence.nccl_log.tables.saved import SMALL_BYTES, Columns, narrowest
from topodiag.model.connections import COLUMNS, Connections, no_connections, summed, transport_label, unique_rows
from topodiag.model.job import PHASES, Channels, Choice, Job, Message, Operations
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data

_HALF, _LOW = 32, (1 << 32) - 1
"""Two ranks in one number: the upper is shifted, the lower not negative."""

_TYPE_BYTES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
"""By NCCL's number of a datatype (nccl.h): int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16,
fp8e4m3, fp8e5m2."""

_OF_COMMUNICATORS = own_data("evidence/nccl_log/rebuild/printed")["of_communicators"]
_TAIL = ("op_count", "func", "elements", "dtype", "redop", "root")


K = TypeVar("K")
Tail = tuple[tuple[int, str, int, int, int, int], ...]
"""As in Operations."""


class FieldCollector:
    """Collects what was said, table by table. `member` columns hold the member of each row. `fields` are those of each
    model.job.Communicator, by name, that its members' rows fill."""

    def __init__(
        self, frame: Frame, comm_of: Ints, rank_of: Ints, nranks: Sequence[int], host_of: Sequence[str]
    ) -> None:
        self.frame, self.comm_of, self.rank_of, self.nranks, self.host_of = frame, comm_of, rank_of, nranks, host_of
        self.fields: list[dict[str, Any]] = [{} for _ in nranks]

    def channels(self, member: Ints) -> None:
        rows = self.frame["channels"]
        columns = [rows[name] for name in ("coll", "collnet", "nvls", "p2p", "per_peer")]
        first, which = unique_rows(columns)
        counts = [Channels(*value) for value in zip(*(column[first].tolist() for column in columns), strict=True)]
        ranks = self.rank_of[member]
        for number, own in groups(self.comm_of[member]):
            count_of = dict(zip(ranks[own].tolist(), which[own].tolist(), strict=True))
            common = Counter(count_of.values()).most_common(1)[0][0]
            others = {rank: counts[value] for rank, value in sorted(count_of.items()) if value != common}
            self.fields[number] |= {"channels": counts[common], "channels_by_rank": others}

    def rings(self, member: Ints, order_member: Ints) -> None:
        rows = self.frame["ring"]
        shared: dict[bytes, tuple[int, ...]] = {}  # channels and communicators have few rings between them
        for number, own in groups(self.comm_of[member]):
            size, masks = max(self.nranks[number], 0), rows["channels"][own]
            before, rank, after = (rows[name][own] for name in ("prev", "rank", "next"))
            # Each line says two hops; what a later line says of a rank counts.
            here, there = np.stack((before, rank), 1), np.stack((rank, after), 1)
            good = (here >= 0) & (here < size) & (there >= 0) & (there < size)
            rings: dict[int, tuple[int, ...]] = {}
            for channels, rows_of in _by_channels(masks):
                chosen = good & rows_of[:, None]
                link = np.full(size, -1, np.int64)
                link[here[chosen]] = there[chosen]
                key = link.tobytes()
                if key not in shared:
                    shared[key] = _closed(link.tolist())
                if shared[key]:
                    rings |= dict.fromkeys(channels, shared[key])
            self.fields[number]["rings"] = dict(sorted(rings.items()))
        orders = self.frame["order"]
        comm = self.comm_of[order_member]
        whole = np.flatnonzero(~orders["cut"] & (comm >= 0))
        for _, number, channel, code in in_pieces(whole, comm, orders["channel"], orders["ranks"]):
            if ring := _order(orders.words["ranks"][code], self.nranks[number]):
                self.fields[number].setdefault("rings", {}).setdefault(channel, ring)

    def trees(self, member: Ints) -> None:
        rows = self.frame["tree"]
        shared: dict[bytes, tuple[tuple[int, int], ...]] = {}  # channels and communicators have few trees between them
        comm, rank = np.where(rows["second"] == 0, self.comm_of[member], -1), rows["rank"].astype(np.int64)
        for number, own in groups(comm):
            trees: dict[int, tuple[tuple[int, int], ...]] = {}
            above = own[rows["up"][own] >= 0]
            pairs, masks = (rank[above] << _HALF) + rows["up"][above], rows["channels"][above]
            if len(distinct(rank[own])) < self.nranks[number]:
                # Of ranks that left no line their parents tell: each names its children.
                for down in ("d0", "d1", "d2"):
                    below = own[rows[down][own] >= 0]
                    pairs = np.append(pairs, (rows[down][below].astype(np.int64) << _HALF) + rank[below])
                    masks = np.append(masks, rows["channels"][below])
            for channels, rows_of in _by_channels(masks):
                there = distinct(pairs[rows_of])
                key = there.tobytes()
                if key not in shared:
                    shared[key] = tuple((pair >> _HALF, pair & _LOW) for pair in there.tolist())
                trees |= dict.fromkeys(channels, shared[key])
            self.fields[number]["trees"] = dict(sorted(trees.items()))

    def prints(self, member: Ints) -> None:
        comm = self.comm_of[member]
        order, _, _ = by_owner(np.lexsort((self.frame["print"]["offset"], self.rank_of[member])), comm)
        owned = ((row, (number, self.host_of[which])) for row, number, which in in_pieces(order, comm, member))
        for (number, host), view in first_prints(self.frame, owned).items():
            fields = self.fields[number]
            if view.system is not None:
                fields.setdefault("systems", {})[host] = view.system
            if view.graphs:
                fields.setdefault("graphs", {})[host] = view.graphs
            if view.tuning:
                fields.setdefault("tuning", view.tuning)

    def choices(self, member: Ints) -> None:
        """Those of the member of lowest rank: the others' are the same."""
        rows = self.frame["choice"]
        words = [rows.words[name] for name in ("func", "algo", "proto")]
        func, algo, proto, size, low, high, offset, times = (
            rows[name] for name in ("func", "algo", "proto", "bytes", "lo", "hi", "offset", "count")
        )
        for number, own in groups(self.comm_of[member]):
            ranks = self.rank_of[member[own]]
            own = own[ranks == ranks.min()]
            own, counts = once(own[np.argsort(offset[own], kind="stable")], (func, size, algo, proto, low, high), times)
            self.fields[number]["choices"] = tuple(
                Choice(words[0][of], amount, words[1][by], words[2][over], count, (first, last))
                for (_, of, by, over, amount, first, last), count in zip(
                    in_pieces(own, func, algo, proto, size, low, high), counts, strict=True
                )
            )

    def operations(self, member: Ints, tails: Mapping[int, Tail]) -> None:
        """Members of a communicator call the same: equal tails and sums are one object, or a large job's take half a
        gigabyte."""
        rows = self.frame["op"]
        order, owners, starts = by_owner(np.argsort(rows["offset"], kind="stable"), member)
        table = _table(rows, ("func", "elements", "dtype", "count"), order)
        columns = (
            owners, self.comm_of[owners], self.rank_of[owners], np.maximum.reduceat(rows["last"][order], starts),
            rows["thread"][order[starts]], rows["line"][order[starts]],
        )  # fmt: skip
        bounds = pairwise([*starts.tolist(), len(order)])
        shared: dict[bytes, tuple[dict[str, int], dict[str, int], int]] = {}
        for (start, end), owner, number, rank, last, thread, line in zip(
            bounds, *(column.tolist() for column in columns), strict=True
        ):
            own = table[start:end]
            key = own.tobytes()
            if key not in shared:
                volume, calls = _sums(rows.words["func"], own.tolist())
                shared[key] = volume, calls, sum(calls.values())
            volume, calls, total = shared[key]
            self.fields[number].setdefault("operations", {})[rank] = Operations(
                last=last, calls=total, bytes_by_collective=volume, calls_by_collective=calls,
                tail=tails.get(owner, ()), origin=Origin(self.frame.file_of(thread), line),
            )  # fmt: skip

    def tails(self, member: Ints) -> dict[int, Tail]:
        """The last operations by member; equal ones are the same object."""
        rows = self.frame["tail"]
        order, owners, starts = by_owner(np.argsort(rows["offset"], kind="stable"), member)
        files = self.frame["threads"]["file"]
        funcs = rows.words["func"]
        table, file = _table(rows, _TAIL, order), files[rows["thread"][order]]
        one_file = np.minimum.reduceat(file, starts) == np.maximum.reduceat(file, starts)
        bounds = pairwise([*starts.tolist(), len(order)])
        shared: dict[bytes, Tail] = {}
        tail_of: dict[int, Tail] = {}
        for owner, (start, end), is_last in zip(owners.tolist(), bounds, one_file.tolist(), strict=True):
            if not is_last:
                continue  # which of the files came last is not told
            # One tail per thread and context that printed for the member: only their last ones leave no gap.
            last = table[max(start, end - TAIL) : end]
            key = last.tobytes()
            if key not in shared:
                shared[key] = tuple((op_count, funcs[code], *rest) for op_count, code, *rest in last.tolist())
            tail_of[owner] = shared[key]
        return tail_of

    def timings(self, member: Ints) -> None:
        rows = self.frame["timing"]
        for number, own in groups(self.comm_of[member]):
            size = max(self.nranks[number], 0)
            seconds: dict[str, npt.NDArray[np.float64]] = {}
            for name in ("total", *PHASES):
                values, ranks = rows[name][own], self.rank_of[member[own]]
                known = ~np.isnan(values)
                if known.any():
                    column = seconds[name] = np.full(size, np.nan)
                    known &= (ranks >= 0) & (ranks < size)
                    column[ranks[known]] = values[known]
            total = seconds.pop("total", None)
            self.fields[number] |= {"phases_s": seconds} | ({"init_s": total} if total is not None else {})

    def texts(self, member: Ints) -> None:
        rows = self.frame["text"]
        comm = np.where(rows.is_word("kind", *_OF_COMMUNICATORS), self.comm_of[member], -1)  # few of very many
        kept: dict[int, list[Message]] = {}
        for number, kind, text, file, line, count in owned_texts(self.frame, comm, np.arange(len(rows))):
            if kind == "network":
                self.fields[number]["network"] = self.fields[number].get("network") or network_named(text)
            message = Message(kind, text, Origin(file, line, text), count, facts_of(text, kind))
            kept.setdefault(number, []).append(message)
        for number, messages in kept.items():
            self.fields[number]["messages"] = tuple(messages)


def first_prints(frame: Frame, owned: Iterable[tuple[int, K]]) -> dict[K, Print]:
    """What each owner prints first of its system. `owned` are rows with their owners, in the order that counts."""
    rows = frame["print"]
    read: dict[int, Print] = {}
    prints: dict[K, Print] = {}
    for row, owner in owned:
        known, code = prints.get(owner, Print()), int(rows["text"][row])
        if known.is_whole:
            continue
        if code not in read:
            read[code] = read_print(rows.words["text"][code], frame.origin(rows, row))
        prints[owner] = known.joined(read[code])
    return prints


def owned_texts(frame: Frame, owner: Ints, order: Ints) -> Iterator[tuple[int, str, str, str, int, int]]:
    """Owner, kind, text, file and line of the different texts of each owner (-1: nobody's), in this order of the rows,
    and how often each stands there."""
    rows = frame["text"]
    kinds, texts = rows.words["kind"], rows.words["text"]
    columns = (owner, rows["kind"], rows["text"])
    order, counts = once(order[owner[order] >= 0], columns, rows["count"])
    pieces = in_pieces(order, *columns, rows["thread"], rows["line"])
    for (_, own, kind, text, thread, line), count in zip(pieces, counts, strict=True):
        yield own, kinds[kind], texts[text], frame.file_of(thread), line, count


def _by_channels(masks: npt.NDArray[np.uint64]) -> Iterator[tuple[list[int], npt.NDArray[np.bool_]]]:
    """Channels that are in the masks of the same rows, and which rows these are."""
    different = distinct(masks).tolist()
    sharing: dict[tuple[int, ...], list[int]] = {}
    for channel in range(max(different, default=0).bit_length()):
        which = tuple(mask >> channel & 1 for mask in different)
        if any(which):
            sharing.setdefault(which, []).append(channel)
    for channels in sharing.values():
        yield channels, (masks >> np.uint64(channels[0])) & np.uint64(1) == 1


def _table(rows: Table, names: Sequence[str], order: Ints) -> npt.NDArray[Any]:
    """These columns side by side, in this order of the rows."""
    table = np.empty(len(order), [(name, rows[name].dtype) for name in names])
    for name in names:
        table[name] = rows[name][order]
    return table


def _sums(funcs: Sequence[str], rows: Sequence[tuple[int, int, int, int]]) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes and calls by collective, from (function, elements, type, how many)."""
    volume: dict[str, int] = {}
    calls: dict[str, int] = {}
    for code, elements, dtype, count in rows:
        width = _TYPE_BYTES[dtype] if 0 <= dtype < len(_TYPE_BYTES) else 1
        func = funcs[code]
        volume[func] = volume.get(func, 0) + abs(elements) * width * count  # negative where sizes were rounded
        calls[func] = calls.get(func, 0) + count
    return volume, calls


def _closed(link: Sequence[int]) -> tuple[int, ...]:
    """The ring from rank 0 when following it comes back after all ranks."""
    numbers = []
    here = 0
    for _ in link:
        numbers.append(here)
        here = link[here]
        if here <= 0:
            break
    return tuple(numbers) if link and here == 0 and len(numbers) == len(link) else ()


def _order(text: str, size: int) -> tuple[int, ...]:
    """The ring from rank 0 where the words are all ranks, each once."""
    words = text.split()
    if not words or len(words) != size or sorted(words) != sorted(map(str, range(size))):
        return ()
    start = words.index("0")
    return tuple(map(int, words[start:] + words[:start]))


_PRINTED = ("rank", "peer", "channels", "conn", "direction", "via", "net_dev", "proxy", "count", "line")
"""Columns that are as the lines have them."""


class ConnectionCollector:
    """The connections of one job while its rows come. World rank and host of every rank of every communicator stand
    below each other (`world`, `host`), and -1 for those that are unknown behind the last; `base` is where those of each
    communicator begin. They have the types of the columns: wider ones would take more memory."""

    def __init__(self, frame: Frame, job: Job, group: Sequence[int], comms: int, hosts: Sequence[str]) -> None:
        """`group` are the numbers of the job's communicators among the `comms` of all jobs; `hosts` are by process."""
        self.frame, self.hosts = frame, job.hosts
        self.lines: Counter[tuple[int, int, int]] = Counter()
        """How many by communicator of the job, via and device."""
        ranks = [communicator.ranks for communicator in job.communicators]
        world = np.concatenate([*ranks, np.full(1, -1, np.int64)])
        number_of_host = {host: i for i, host in enumerate(job.hosts)}
        host_of_rank = np.full(max((rank.rank for rank in job.ranks), default=-1) + 2, -1, np.int64)
        for rank in job.ranks:
            host_of_rank[rank.rank] = number_of_host.get(rank.host, -1)
        kinds = {name: narrowest(*span) for name, span in frame.connection_spans.items()}
        kinds["channels"], kinds["line"] = np.dtype(np.uint64), np.dtype(np.int32)
        of_ranks, of_hosts = narrowest(-1, int(world.max(initial=-1))), narrowest(-1, len(job.hosts))
        kinds |= dict.fromkeys(("world", "world_peer", "printed_by"), of_ranks)
        kinds |= dict.fromkeys(("host", "peer_host"), of_hosts)
        kinds["comm"], kinds["via"] = narrowest(-1, comms + 1), narrowest(0, len(frame.vias))
        kinds["file"] = narrowest(-1, len(frame.files))
        self.base = np.cumsum([0, *map(len, ranks)])
        self.index = np.full(comms + 1, -1, np.int64)
        """By communicator over all jobs its number in this one, with -1 behind the last."""
        self.index[list(group)] = np.arange(len(group))
        self.world = world.astype(of_ranks)
        self.host = host_of_rank[np.where(world < len(host_of_rank), world, -1)].astype(of_hosts)
        self.host_of_process = np.array([number_of_host.get(name, -1) for name in hosts], of_hosts)
        self.columns = Columns(
            {name: kinds[name] for name in COLUMNS}, frame.connection_rows, SMALL_BYTES, "connections"
        )

    def _places(self, comm: npt.NDArray[Any], rank: npt.NDArray[Any]) -> Ints:
        """Places in `world` and `host` of ranks of the job's communicators."""
        size = np.append(np.diff(self.base), 0)  # behind the last what is of none
        good = (rank >= 0) & (rank < size[comm])
        return np.where(good, self.base[comm] + rank, len(self.world) - 1)

    def add(self, rows: Table, chosen: Ints | slice, comm: Ints, process: Ints) -> None:
        """These rows of a batch; `comm` (over all jobs, -1 unknown) and `process` are of the whole batch."""
        table = {name: rows[name][chosen] for name in _PRINTED}
        table["file"] = self.frame["threads"]["file"][rows["thread"][chosen]]
        table["comm"] = own = self.index[comm[chosen]]
        printer, received = self.host_of_process[process[chosen]], table["direction"] == 2
        place, peer_place = (self._places(own, table[end]) for end in ("rank", "peer"))
        host, peer_host = self.host[place], self.host[peer_place]
        table["host"] = np.where((host < 0) & ~received, printer, host)
        table["peer_host"] = np.where((peer_host < 0) & received, printer, peer_host)
        table["world"], table["world_peer"] = self.world[place], self.world[peer_place]
        table["printed_by"] = np.where(received, table["world_peer"], table["world"])
        self.columns.add(table)
        by_transport, single = (own, table["via"], table["net_dev"]), np.ones(len(own), np.int64)
        sums = summed(by_transport, single, table["count"], np.arange(len(own)))
        for number, transport, device, _, lines, _ in zip(*(column.tolist() for column in sums), strict=True):
            self.lines[number, transport, device] += lines

    def connections(self) -> Connections:
        """All that came, once."""
        columns, maps = self.columns.take()
        if not len(self.columns):
            return no_connections()
        fields: dict[str, Any] = {**columns, "maps": maps}
        return Connections(**fields, vias=self.frame.vias, hosts=self.hosts, files=self.frame.files)

    def transports(self) -> dict[int, dict[str, int]]:
        """Lines by communicator of the job and transport label."""
        counts: dict[int, dict[str, int]] = {}
        for (number, via, device), count in sorted(self.lines.items()):
            own = counts.setdefault(number, {})
            label = transport_label(self.frame.vias[via], device)
            own[label] = own.get(label, 0) + count
        return counts
