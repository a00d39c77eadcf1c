"""Groups of ranks as their owner writes them, in JSON or YAML: who must stay together, and who may span nodes.

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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from topodiag.evidence.interface import Blob
from topodiag.evidence.yaml_values import load_yaml, word
from topodiag.lazy import dataclass, regex
from topodiag.model.cluster import Demand, Ints
from topodiag.model.errors import InputError
from topodiag.words.fold import grouped
from topodiag.words.node_sets import short

MAX_RANK = 1 << 22
MAX_MEMBERS = 1 << 24
"""Members of all groups of a file together: each of the ranks in four families."""
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send_recv")
_RANGE = regex(r"(\d{1,7})(?:-(\d{1,7})(?:/(\d{1,7}))?)?", re.ASCII)
_KNOWN = ("name", "keep", "collective", "bytes", "calls", "ranks", "exposed")


@dataclass(slots=True)
class _File:
    """The file that is read, and how many members it may still name."""

    blob: Blob
    left: int

    def take(self, name: str, count: int) -> None:
        """Count members before they are made. Raises InputError."""
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
    """The members of one group, counted before they are made."""
    ranks: list[Ints] = []
    singles: list[int] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, bool) or not isinstance(item, int | str):
            raise InputError(file.blob.name, f"{name}: {word(item)!r} is no rank")
        for part in str(item).split(","):
            match = _RANGE.fullmatch(part.strip())
            first = int(match[1]) if match else -1
            last = int(match[2] or match[1]) if match else -1
            step = int(match[3] or 1) if match else 1
            if match is None or last < first or last >= MAX_RANK or step < 1:
                raise InputError(file.blob.name, f"{name}: {short(part)!r} is no rank", hint="write 3, 0-7 or 0-28/4")
            members = range(first, last + 1, step)
            file.take(name, len(members))
            if len(members) == 1:
                singles.append(first)
                continue
            ranks += [np.asarray(singles, np.int64), np.arange(first, last + 1, step, dtype=np.int64)]
            singles = []
    return np.concatenate([*ranks, np.asarray(singles, np.int64)])


def _number(blob: Blob, name: str, values: Mapping[str, Any], key: str, default: float) -> float:
    value = values.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e18 or math.isnan(value):
        raise InputError(blob.name, f"{name}: {word(value)!r} is no number of {key}")
    return float(value)
