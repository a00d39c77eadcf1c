"""Who talks to whom as a matrix that fits a page: hosts whose ranks talk alike are one block with their count.

Two hosts are alike where the same ranks inside talk to each other in the same way, and where each rank says of itself
that it sends and receives over the same transport and NIC. Which host is at the other end does not count: in a ring and
in a tree each host has other neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Bools, Ints
from topodiag.model.connections import Connections, distinct, packed
from topodiag.model.job import Job
from topodiag.model.job_rings import is_net, uses_gdr
from topodiag.model.maker import dialect_of
from topodiag.words.hosts import short_names
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_hosts, grouped

MOST_RANKS, MOST_HOSTS = 64, 8
"""Jobs up to this size are drawn rank by rank."""
MOST_KINDS = 8
"""Kinds of hosts that are drawn; of more the most frequent and the rarest."""
ODD_SHARE, LEAST_ALIKE = 0.25, 3
"""A kind of host stands out where it has at most this share of the hosts of the most frequent one, and that one has at
least so many."""

SORTS = tuple(own_data("draw/palette")["transports"])
"""Transports from the fastest on; a cell with several shows the last of them."""


@dataclass(frozen=True, slots=True)
class Band:
    """Ranks that stand together: one host, or all hosts of a kind. `names` are the labels of its ranks."""

    title: str
    names: tuple[str, ...]
    hosts: int = 1
    outlier: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """What a pair of ranks talks over: place in SORTS, the NIC where there is one, whether there are several sorts."""

    sort: int
    nic: int = -1
    several: bool = False


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows send, columns receive. `cells` by (row, column), counted over the ranks of all bands. `left_out` are kinds
    of hosts that are not drawn."""

    rows: tuple[Band, ...]
    columns: tuple[Band, ...]
    cells: Mapping[tuple[int, int], Cell]
    folded: bool = False
    left_out: int = 0
    links: str = "NVLink"
    """What joins the GPUs of a node."""


@dataclass(frozen=True, slots=True)
class _Hosts:
    """The hosts of a job by number: their names in short, and the ranks of each in order."""

    names: list[str]
    ranks: list[list[int]]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Different pairs of ranks with what they talk over, as columns of one length. `received`: the receiver says it;
    `spare`: the sender says it, too."""

    host: Ints
    local: Ints
    peer_host: Ints
    peer_local: Ints
    sort: Ints
    nic: Ints
    received: Ints
    spare: Bools

    def only(self, wanted: Bools) -> _Pairs:
        return _Pairs(*(getattr(self, field.name)[wanted] for field in fields(self)))


def matrix_of(job: Job) -> Matrix | None:
    """The matrix of a job, None where its logs show no connection between known ranks."""
    names = [host for host in job.hosts if host] or sorted({rank.host for rank in job.ranks})
    ranks = grouped((rank.host, rank.rank) for rank in job.ranks)
    hosts = _Hosts(short_names(names), [sorted(ranks.get(name, ())) for name in names])
    pairs = _pairs(job, hosts)
    if pairs is None:
        return None
    kinds = _kinds(pairs, hosts)
    pairs = pairs.only(~pairs.spare)
    used = [own for own in hosts.ranks if own]
    small = len(used) <= MOST_HOSTS and sum(map(len, used)) <= MOST_RANKS
    matrix = _plain(pairs, hosts, kinds) if small else _folded(pairs, hosts, kinds)
    return replace(matrix, links=dialect_of(job).links)


def sort_of(label: str) -> int:
    """Place in SORTS of a transport as NCCL prints it."""
    if is_net(label):
        word = "Socket" if "Socket" in label else "NET+GDR" if uses_gdr(label) else "NET"
    else:
        word = next((sort for sort in ("P2P", "SHM") if label.startswith(sort)), "other")
    return SORTS.index(word)


def _pairs(job: Job, hosts: _Hosts) -> _Pairs | None:
    columns = _distinct_pairs(job.connections)
    top = max((rank.rank for rank in job.ranks), default=-1) + 1
    if columns is None or not top:
        return None
    host, local = np.full(top, -1, np.int64), np.full(top, -1, np.int64)
    for number, ranks in enumerate(hosts.ranks):
        host[ranks], local[ranks] = number, np.arange(len(ranks))
    world, peer, via, nic, received, spare = columns
    known = (world < top) & (peer < top) & (world != peer)
    known[known] &= (host[world[known]] >= 0) & (host[peer[known]] >= 0)
    world, peer, via, nic, received = (column[known] for column in (world, peer, via, nic, received))
    if not len(world):
        return None
    sorts = np.array([sort_of(label) for label in job.connections.vias] or [0], np.int64)
    return _Pairs(host[world], local[world], host[peer], local[peer], sorts[via], nic, received, spare[known])


def _distinct_pairs(conns: Connections) -> tuple[Ints, Ints, Ints, Ints, Ints, Bools] | None:
    """Sender, receiver, transport, NIC, whether the receiver says it, each row once; whether the sender does, too."""
    parts = []
    for batch in conns.batches():
        known = (batch.world >= 0) & (batch.world_peer >= 0)
        rows = [column[known].astype(np.int64) for column in (batch.world, batch.world_peer, batch.via, batch.net_dev)]
        rows.append((batch.direction[known] == 2).astype(np.int64))
        first, _ = distinct(*rows)
        parts.append([column[first] for column in rows])
    if not parts:
        return None
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    first, _ = distinct(*columns)
    world, peer, via, nic, received = (column[first] for column in columns)
    if not len(world):
        return None
    key, _ = packed((world, peer))
    return world, peer, via, nic, received, (received == 1) & np.isin(key, key[received == 0])


def _kinds(pairs: _Pairs, hosts: _Hosts) -> list[list[int]]:
    """Hosts that are alike, by number, the most frequent kind first; by transport alone where NICs would tell too many
    apart."""
    numbers: list[list[int]] = []
    for nic in (pairs.nic, np.full_like(pairs.nic, -1)):
        numbers = _groups(pairs, nic, hosts)
        if len(numbers) <= MOST_KINDS:
            break
    return numbers


def _groups(pairs: _Pairs, nic: Ints, hosts: _Hosts) -> list[list[int]]:
    same, received = pairs.host == pairs.peer_host, pairs.received == 1
    own, local = np.where(received, pairs.peer_host, pairs.host), np.where(received, pairs.peer_local, pairs.local)
    other = np.where(same, np.where(received, pairs.local, pairs.peer_local), -1)
    rows = (own, local, other, pairs.received, pairs.sort, nic)
    first, _ = distinct(*rows)
    signs: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    for host, *sign in zip(*(column[first].tolist() for column in rows), strict=True):
        signs[host].add(tuple(sign))
    groups = grouped(((len(own), frozenset(signs[number])), number) for number, own in enumerate(hosts.ranks) if own)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0]))


def _is_outlier(group: Sequence[int], kinds: Sequence[Sequence[int]]) -> bool:
    most = len(kinds[0])
    return most >= LEAST_ALIKE and len(group) <= ODD_SHARE * most


def _plain(pairs: _Pairs, hosts: _Hosts, kinds: Sequence[Sequence[int]]) -> Matrix:
    outliers = {number for group in kinds if _is_outlier(group, kinds) for number in group}
    used = [number for number, own in enumerate(hosts.ranks) if own]
    bands = tuple(_host_band(hosts, number, number in outliers) for number in used)
    first = np.full(len(hosts.names), -1, np.int64)
    first[used] = _starts(bands)
    return Matrix(
        bands, bands, _cells(first[pairs.host] + pairs.local, first[pairs.peer_host] + pairs.peer_local, pairs)
    )


def _folded(pairs: _Pairs, hosts: _Hosts, kinds: Sequence[Sequence[int]]) -> Matrix:
    drawn = kinds if len(kinds) <= MOST_KINDS else [kinds[0], *kinds[-(MOST_KINDS - 1) :]]
    rows = tuple(_band(hosts, group, _is_outlier(group, kinds)) for group in drawn)
    inside = Band("same host", tuple(str(number) for number in range(max(len(band.names) for band in rows))))
    columns = (inside, *rows)
    kind = np.full(len(hosts.names), -1, np.int64)
    for number, group in enumerate(drawn):
        kind[list(group)] = number
    row_at, column_at = np.array(_starts(rows)), np.array(_starts(columns))
    shown = (kind[pairs.host] >= 0) & (kind[pairs.peer_host] >= 0)
    some = pairs.only(shown)
    row = row_at[kind[some.host]] + some.local
    away = column_at[1 + kind[some.peer_host]] + some.peer_local
    cells = _cells(row, np.where(some.host == some.peer_host, some.peer_local, away), some)
    return Matrix(rows, columns, cells, True, len(kinds) - len(drawn))


def _host_band(hosts: _Hosts, number: int, outlier: bool) -> Band:
    return Band(hosts.names[number], tuple(map(str, hosts.ranks[number])), 1, outlier)


def _band(hosts: _Hosts, group: Sequence[int], outlier: bool) -> Band:
    if len(group) == 1:
        return _host_band(hosts, group[0], outlier)
    places = range(len(hosts.ranks[group[0]]))
    return Band(fold_hosts([hosts.names[number] for number in group]), tuple(map(str, places)), len(group), outlier)


def _starts(bands: Iterable[Band]) -> list[int]:
    numbers, at = [], 0
    for band in bands:
        numbers.append(at)
        at += len(band.names)
    return numbers


def _cells(row: Ints, column: Ints, pairs: _Pairs) -> dict[tuple[int, int], Cell]:
    first, _ = distinct(row, column, pairs.sort, pairs.nic)
    cells: dict[tuple[int, int], Cell] = {}
    for y, x, sort, nic in zip(*(array[first].tolist() for array in (row, column, pairs.sort, pairs.nic)), strict=True):
        known = cells.get((y, x))
        if known is None:
            cells[y, x] = Cell(sort, nic)
        else:
            several = known.several or known.sort != sort
            cells[y, x] = Cell(max(known.sort, sort), nic if known.nic == nic else -1, several)
    return cells
