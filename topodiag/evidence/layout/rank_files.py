"""Which rank runs where: hostfiles of Open MPI, MPICH and Slurm, rankfiles, torchrun's order, a map of topodiag.

A rank's GPU is -1 where the file does not say it: then it is the node's next free one, as launchers number their local
ranks. Formats: Open MPI 5 documentation ("Scheduling processes across hosts", PRRTE's rankfile), MPICH's Hydra guide
(`host:slots`), Slurm's sbatch page (SLURM_HOSTFILE: one host per task, for the arbitrary distribution).

`{"map": [{"rank", "host", "local_rank", "gpu", "groups": {dimension: number}}], "levels": {kind: count}}` is what
`topodiag place` writes as JSON; everything but rank and host may be missing.

Groups of ranks as their owner writes them, in JSON or YAML: who must stay together, and who may span nodes.

    together: [[0, 1, 2, 3], 4-7]        # one node each
    may_span: ["0-28/4", "1-29/4"]       # first-last/step
or with all that is known:
    groups:
      - name: tp
        keep: node                       # or any
        collective: all_reduce
        bytes: 67108864                  # one call, as nccl-tests counts it
        calls: 320                       # in a step
        ranks: [0-7, 8-15]
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from topodiag.evidence.interface import Blob, to_int
from topodiag.evidence.json_values import integer, load
from topodiag.evidence.json_values import text as plain
from topodiag.evidence.page import at_line, bare_lines
from topodiag.evidence.yaml_values import load_yaml, word
from topodiag.lazy import dataclass
from topodiag.model.cluster import Demand, Ints, PlaceMap, RankHosts, ranks_on
from topodiag.model.errors import InputError
from topodiag.words.node_sets import MAX_GPUS, expand, members_of, short
from topodiag.words.own_data import patterns
from topodiag.words.units import grouped

_T = TypeVar("_T")
MAX_RANKS = 1 << 22
MAX_MAP = 512 << 20
"""Bytes of a map: 100,000 ranks take some 30 MB."""
_LIKE = patterns("evidence/layout/lines", "ranks")


def read_hostfile(blob: Blob) -> RankHosts:
    """`host slots=8` (Open MPI), `host:8` (MPICH, Intel MPI) or plain hosts: ranks fill the hosts in their order. Hosts
    without any number stand for all their GPUs, unless one is written several times: then each line is one rank."""
    hosts: list[str] = []
    numbers: list[int | None] = []
    for line, text in bare_lines(blob):
        match = _LIKE["slots"].fullmatch(text)
        if match is None:
            raise InputError(blob.name, f"{short(text)!r} is no line of a hostfile", line=line, hint=_HOSTFILE)
        slots = _LIKE["slots_word"].search(match[3])
        hosts.append(match[1])
        numbers.append(int(match[2]) if match[2] else int(slots[1]) if slots else None)
    if all(number is None for number in numbers) and len(set(hosts)) == len(hosts):
        return ranks_on(blob.name, hosts, whole=True)
    counts = [1 if number is None else number for number in numbers]
    if sum(counts) > MAX_RANKS:
        raise InputError(blob.name, f"makes more than {MAX_RANKS} ranks")
    return _repeated(blob.name, hosts, counts)


_HOSTFILE = "write host slots=8, or host:8"


def read_slurm_hostfile(blob: Blob) -> RankHosts:
    """One host per task, in the order of the tasks; `host*8` and node sets stand for several."""
    hosts: list[str] = []
    counts: list[int] = []
    ranks = 0
    known: dict[str, tuple[str, ...]] = {}
    for line, text in bare_lines(blob):
        written, _, count = text.rpartition("*") if text[-1].isdecimal() and "*" in text else (text, "", "1")
        with at_line(blob, line):
            names = known[written] if written in known else known.setdefault(written, expand(written))
        times = to_int(count, low=0, high=MAX_RANKS)
        ranks += len(names) * (times or 0)
        if times is None or ranks > MAX_RANKS:
            raise InputError(blob.name, f"{short(text)!r} is no line of a SLURM_HOSTFILE", line=line)
        hosts += names
        counts += [times] * len(names)
    return _repeated(blob.name, hosts, counts)


def read_rankfile(blob: Blob) -> RankHosts:
    """`rank 0=host slot=0:0-3`. The slots are cores: the GPU is that of the rank's place in its node."""
    return ranks_on(blob.name, _numbered(blob, _LIKE["rank"], "line of a rankfile", "rank", "write rank 0=host slot=0"))


def read_torchrun(blob: Blob) -> RankHosts:
    """The nodes in the order of their node ranks, one per line (`host`, or `3 host`): each runs a process per GPU."""
    hosts = _numbered(blob, _LIKE["torchrun"], "node", "node rank", "write one host per line")
    if len(set(hosts)) < len(hosts):
        hint = "one line per node; for one per rank use --slurm-hostfile"
        raise InputError(blob.name, "names a node twice", hint=hint)
    return ranks_on(blob.name, hosts, whole=True)


def _numbered(blob: Blob, pattern: re.Pattern[str], line_is: str, name: str, hint: str) -> list[str]:
    """The hosts of lines that number them, in order; a line without a number has the next one. Raises InputError."""
    by_rank: dict[int, str] = {}
    for line, text in bare_lines(blob):
        match = pattern.fullmatch(text)
        if match is None:
            raise InputError(blob.name, f"{short(text)!r} is no {line_is}", line=line, hint=hint)
        number = int(match[1]) if match[1] else len(by_rank)
        if number in by_rank:
            raise InputError(blob.name, f"names {name} {number} twice", line=line)
        by_rank[number] = match[2]
    return _in_order(blob, by_rank)


def read_map(blob: Blob) -> RankHosts:
    """The map that `topodiag place` writes as JSON: `{"map": [{"rank", "host", "gpu"}]}`. Raises InputError."""
    return _ranks_of(blob, _map_of(blob)[1])


def _map_of(blob: Blob) -> tuple[dict[str, Any], list[Any]]:
    """The document, and the rows of its map. Raises InputError."""
    document, why = load(blob, MAX_MAP)
    rows = document.get("map") if isinstance(document, dict) else document
    if why or not isinstance(rows, list):
        raise InputError(blob.name, why or "has no map", hint='{"map": [{"rank": 0, "host": "node1", "gpu": 0}]}')
    return document if isinstance(document, dict) else {}, rows


def _ranks_of(blob: Blob, rows: list[Any]) -> RankHosts:
    by_rank: dict[int, tuple[str, int]] = {}
    for place, row in enumerate(rows):
        entry = row if isinstance(row, dict) else {}
        rank, host = integer(entry.get("rank"), 0, MAX_RANKS), plain(entry.get("host"))
        gpu = integer(entry.get("gpu", -1), -1, MAX_GPUS)
        if rank is None or host is None or gpu is None:
            raise InputError(blob.name, f"entry {place} of the map lacks a rank, a host or a GPU")
        if rank in by_rank:
            raise InputError(blob.name, f"names rank {rank} twice")
        by_rank[rank] = host, gpu
    return _placed(blob, by_rank)


def _placed(blob: Blob, by_rank: Mapping[int, tuple[str, int]]) -> RankHosts:
    """Host and GPU of each rank. Raises InputError for a gap."""
    both = _in_order(blob, by_rank)
    return ranks_on(blob.name, [host for host, _ in both], [gpu for _, gpu in both])


def _repeated(name: str, hosts: list[str], counts: list[int]) -> RankHosts:
    """So many ranks on each host, in their order: millions cost no list. Raises InputError for none at all."""
    filled = [(host, count) for host, count in zip(hosts, counts, strict=True) if count]
    once = ranks_on(name, [host for host, _ in filled])
    times = np.asarray([count for _, count in filled], np.int64)
    return replace(once, host=np.repeat(once.host, times), gpu=np.repeat(once.gpu, times))


def _in_order(blob: Blob, by_rank: Mapping[int, _T]) -> list[_T]:
    """What each rank has. Raises InputError for a gap."""
    for expected, rank in enumerate(sorted(by_rank)):
        if rank != expected:
            raise InputError(blob.name, f"has no rank {expected}, but one beyond it")
    return [by_rank[rank] for rank in range(len(by_rank))]


MAX_DIMENSIONS = 64
MAX_LEVELS = 16


def read_place_map(blob: Blob) -> PlaceMap:
    """The whole map. Raises InputError for what is none."""
    document, rows = _map_of(blob)
    ranks = _ranks_of(blob, rows)
    groups: dict[str, Ints] = {}
    rail = np.full(ranks.ranks, -1, np.int64)
    for row in rows:
        rank, nic, numbers = int(row["rank"]), integer(row.get("nic"), 0, MAX_RANKS), row.get("groups")
        rail[rank] = -1 if nic is None else nic
        for name, value in list(numbers.items())[:MAX_DIMENSIONS] if isinstance(numbers, dict) else ():
            number = integer(value, 0, MAX_RANKS)
            if number is None or (name not in groups and len(groups) >= MAX_DIMENSIONS):
                continue
            if name not in groups:
                groups[name] = np.full(ranks.ranks, -1, np.int64)
            groups[name][rank] = number
    levels = document.get("levels")
    pairs = list(levels.items())[:MAX_LEVELS] if isinstance(levels, dict) else []
    counts = [(kind, integer(count, 1, MAX_RANKS)) for kind, count in pairs]
    known = tuple((kind, count) for kind, count in counts if count is not None)
    rails = rail if (rail >= 0).any() else np.zeros(0, np.int64)
    return PlaceMap(ranks.hosts, ranks.host, ranks.gpu, groups, known, rails)


READERS: Mapping[str, Callable[[Blob], RankHosts]] = {
    "hostfile": read_hostfile,
    "rankfile": read_rankfile,
    "slurm_hostfile": read_slurm_hostfile,
    "torchrun": read_torchrun,
    "map": read_map,
}
"""The options that name a file of where ranks sit, each with its reader."""


MAX_MEMBERS = 1 << 24
"""Members of all groups of a file together: each of the ranks in four families."""
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send_recv")
_KNOWN = ("name", "keep", "collective", "bytes", "calls", "ranks", "exposed")


@dataclass(slots=True)
class _File:
    """The file that is read, and how many members it may still name."""

    blob: Blob
    left: int

    def take(self, name: str, count: int) -> None:
        """Take so many members off those that the file may still name. Raises InputError where it names more."""
        self.left -= count
        if self.left < 0:
            raise InputError(self.blob.name, f"{name}: the groups have more than {MAX_MEMBERS} members together")


def read_groups(blob: Blob) -> tuple[Demand, ...]:
    """One demand per family and size of its groups; bytes 0 where the file says none. Raises InputError for what is no
    such file, for a rank twice in one family, and for groups of less than two."""
    document = load_yaml(blob)
    if not isinstance(document, Mapping) or not document:
        raise InputError(blob.name, "is no file of groups", hint="together: [[0, 1], [2, 3]]")
    file = _File(blob, MAX_MEMBERS)
    demands: list[Demand] = []
    for key, value in document.items():
        if key in ("together", "may_span"):
            name = "together" if key == "together" else "may span"
            demands += _family(file, name, value, keep=key == "together", entry={})
        elif key == "groups" and isinstance(value, list):
            for place, entry in enumerate(value):
                demands += _entry(file, place, entry)
        else:
            raise InputError(blob.name, f"{word(key)!r} is no key of a file of groups",
                             hint="together, may_span or groups")  # fmt: skip
    if not demands:
        raise InputError(blob.name, "names no groups")
    return tuple(demands)


def _entry(file: _File, place: int, entry: object) -> Iterator[Demand]:
    blob = file.blob
    if not isinstance(entry, Mapping) or "ranks" not in entry:
        raise InputError(blob.name, f"group {place} has no ranks", hint="- name: tp, keep: node, ranks: [0-7, 8-15]")
    unknown = next((key for key in entry if key not in _KNOWN), None)
    if unknown is not None:
        raise InputError(blob.name, f"group {place}: {word(unknown)!r} is no key", hint=", ".join(_KNOWN))
    keep = entry.get("keep", "any")
    if keep not in ("node", "any"):
        raise InputError(blob.name, f"group {place}: keep is node or any, not {word(keep)!r}")
    name = entry.get("name")
    yield from _family(file, name if isinstance(name, str) and name else f"group {place}", entry["ranks"],
                       keep=keep == "node", entry=entry)  # fmt: skip


def _family(file: _File, name: str, value: object, *, keep: bool, entry: Mapping[str, Any]) -> Iterator[Demand]:
    blob, name = file.blob, short(name)
    if isinstance(value, str | int):
        value = [value]
    if not isinstance(value, list):
        raise InputError(blob.name, f"{name}: {word(value)!r} is no list of groups")
    if value and all(isinstance(item, int) for item in value):
        value = [value]  # one group, written flat
    rows = [_ranks(file, name, item) for item in value]
    _check_apart(blob, name, rows)
    collective = entry.get("collective", "all_reduce")
    if collective not in COLLECTIVES:
        raise InputError(blob.name, f"{name}: {word(collective)!r} is no collective", hint=", ".join(COLLECTIVES))
    size, calls = _number(blob, name, entry, "bytes", 0.0), _number(blob, name, entry, "calls", 1.0)
    exposed = _number(blob, name, entry, "exposed", 1.0)
    if exposed > 1:
        raise InputError(blob.name, f"{name}: exposed is a share from 0 to 1")
    for _, alike in sorted(grouped((len(row), row) for row in rows).items()):
        yield Demand(
            name, np.stack(alike), collective, size, calls, exposed, keep_together=keep, why=f"as {blob.name} says"
        )


def _check_apart(blob: Blob, name: str, rows: Sequence[Ints]) -> None:
    """Raises InputError for a group of one and for a rank that stands twice."""
    for row in rows:
        if len(row) < 2:
            raise InputError(blob.name, f"{name}: a group of {len(row)} talks to nobody")
    members = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    met, first = np.unique(members, return_index=True)
    if len(met) < len(members):
        again = np.ones(len(members), bool)
        again[first] = False
        raise InputError(blob.name, f"{name}: groups overlap: rank {members[again][0]} is in two places")


def _ranks(file: _File, name: str, value: object) -> Ints:
    """The members of one group. Raises InputError where they would be too many."""
    ranks: list[Ints] = []
    singles: list[int] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, bool) or not isinstance(item, int | str):
            raise InputError(file.blob.name, f"{name}: {word(item)!r} is no rank")
        for part in str(item).split(","):
            members = members_of(part, MAX_RANKS)
            if not members:
                raise InputError(file.blob.name, f"{name}: {short(part)!r} is no rank", hint="write 3, 0-7 or 0-28/4")
            file.take(name, len(members))
            if len(members) == 1:
                singles.append(members.start)
                continue
            ranks += [np.asarray(singles, np.int64), np.arange(members.start, members.stop, members.step)]
            singles = []
    return np.concatenate([*ranks, np.asarray(singles, np.int64)])


def _number(blob: Blob, name: str, values: Mapping[str, Any], key: str, default: float) -> float:
    value = values.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e18 or math.isnan(value):
        raise InputError(blob.name, f"{name}: {word(value)!r} is no number of {key}")
    return float(value)
