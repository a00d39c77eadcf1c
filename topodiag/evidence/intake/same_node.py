"""Which texts are of one host: the same name or serial joins them, what a node says only once parts them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from topodiag.evidence.intake.file_names import is_named_for_a_command, owner_of_log, owner_of_smi
from topodiag.evidence.intake.pieces import Piece
from topodiag.lazy import dataclass
from topodiag.words.hosts import short_name

_WHOLE = frozenset({"nvml", "nvidia-smi-xml", "nvidia-smi-q", "nvidia-smi-topo", "nccl-xml", "hwloc-xml", "sys-pci"})
"""Sources whose one text describes all of a node: a second one is another's where its host is not known, unless both
are named for the commands that printed them (`topo_m.txt`, `topo_mp.txt`)."""
_BY_COMMAND = "by command"
_OF_MOMENTS = frozenset({"nvidia-smi", "nvidia-smi-dmon", "nvidia-smi-query"})
"""Sources that are asked of one node several times, and whose texts say no host: their files' names may."""


@dataclass(slots=True)
class Group:
    """Texts that are of one host by what they say. `apart`: something shows that another group is not."""

    pieces: list[Piece]
    apart: bool = False


def groups_of(pieces: Sequence[Piece]) -> list[Group]:
    """Texts by host: those that name the same host or share a serial are together. A single group where nothing says
    that any two are of different nodes."""
    roots = _joined(pieces)
    apart = _apart(pieces, roots)
    if len(apart) < 2:
        return [Group(list(pieces))]
    made: dict[int, Group] = {}
    for root, piece in zip(roots, pieces, strict=True):
        made.setdefault(root, Group([], root in apart)).pieces.append(piece)
    return list(made.values())


def _joined(pieces: Sequence[Piece]) -> list[int]:
    """By piece, the number of one of those that it is together with, the same for all of them."""
    parent = list(range(len(pieces)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    first: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        for key in ([f"host {short_name(piece.host)}"] if piece.host else []) + [f"id {each[1]}" for each in piece.ids]:
            parent[root(number)] = root(first.setdefault(key, number))
    return [root(number) for number in range(len(pieces))]


def _apart(pieces: Sequence[Piece], roots: Sequence[int]) -> set[int]:
    """Those of whose texts another's says something else that a node has once."""
    said: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for root, piece in zip(roots, pieces, strict=True):
        for what, value in _said_once(piece):
            said[what][str(root) if value is None else value].add(root)
    return {
        number
        for values in said.values()
        if len(set().union(*values.values())) > 1 and len(values) > 1
        for numbers in values.values()
        for number in numbers
    }


def _said_once(piece: Piece) -> Iterator[tuple[str, str | None]]:
    """What cannot be said twice of one node: its name, the serial of a device, all of it (None)."""
    if piece.host:
        yield "host", short_name(piece.host)
    for label, serial in piece.ids:
        if label:
            yield label, serial
    if "kernel-log" in piece.sources and not piece.host and (owner := owner_of_log(piece)):
        yield "kernel log", owner
    if _OF_MOMENTS.intersection(piece.sources) and not piece.host and (owner := owner_of_smi(piece)):
        yield "nvidia-smi", owner
    for source in piece.sources:
        if source in _WHOLE:
            yield f"all by {source}", _BY_COMMAND if is_named_for_a_command(piece) else None
