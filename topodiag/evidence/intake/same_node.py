"""Of which host a text of a node's tools is: by what it says itself, never by guessing.

Which texts are of one host: the same name or serial joins them, what a node says only once parts them.

What the names of files say of the nodes that their texts are of.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from topodiag.evidence.intake.pieces import Piece
from topodiag.evidence.interface import Blob
from topodiag.evidence.signatures.wrappers import of_one_host
from topodiag.lazy import dataclass, regex
from topodiag.words.hosts import short_name
from topodiag.words.joined import Sets
from topodiag.words.own_data import own_data, patterns

_HOSTS = tuple(patterns("evidence/intake/hosts", "host", re.M).values())
_SERIALS = tuple(
    (row["kind"], row["holds"], regex(row["pattern"], re.M)) for row in own_data("evidence/intake/hosts")["serial"]
)
_NOBODY = {"localhost", "localhost.localdomain", "host", "node", "ubuntu", "(none)", "error", "warning", "note"}
_MOST_IDS = 400
BOARD = "board "
"""The label of the name of a machine's kind: others have it, too."""


def host_of_text(blob: Blob) -> str:
    """The host that a text names as its own, "" where it names none or several."""
    text = blob.text
    label, _ = of_one_host(text)
    if label and not label.isdecimal():
        return label
    names = {match[1] for pattern in _HOSTS for match in pattern.finditer(text)}
    named = {name for name in names if name.lower() not in _NOBODY}
    short = {name.split(".", 1)[0] for name in named}
    return min(named, key=len) if len(short) == 1 else ""


def host_of_log(head: bytes) -> str:
    """The host of the first record of NCCL's log, "" without one."""
    from topodiag.evidence.nccl_log.grammar.prefix import RECORD  # noqa: PLC0415 - where there is such a log

    match = RECORD.search(head.decode("utf-8", "replace"))
    return match[1] if match else ""


def ids_of_text(text: str) -> frozenset[tuple[str, str]]:
    """What only one machine has, as (device, serial): UUIDs of its GPUs, GUIDs of its adapters; so many of each kind.
    Two texts that share a serial are of one host; two that give one device different serials are not. That of the board
    is the name of its kind: it only parts."""
    ids: set[tuple[str, str]] = set()
    for kind, literal, pattern in _SERIALS:
        for match in pattern.finditer(text) if literal in text else ():
            serial = match[2].removeprefix("0x").replace(":", "").lower()
            ids.add((f"{kind} {match[1].lower()}" if kind else "", serial))
            if len(ids) >= _MOST_IDS:
                break
    return frozenset(ids)


_TABLES = own_data("evidence/intake/names")
SUBJECTS, _COMMANDS = (frozenset(_TABLES[name]) for name in ("subjects", "commands"))
_WORDS = patterns("evidence/intake/names", "words")
ENDS = "._ \t"
"""Where a word of a file's name ends; hosts have dashes."""


def owner_of_log(piece: Piece) -> str:
    """The host that a kernel log is named for (`gpu-h07.txt`), or "" where its name is that of a tool or says nothing:
    dmesg and the journal of one node lie together, logs of two hosts must not become one node."""
    stem = os.path.basename(piece.name).split(".", 1)[0].lower()
    return "" if _WORDS["log"].search(stem) or not any(letter.isdigit() for letter in stem) else stem


def owner_of_smi(piece: Piece) -> str:
    """The host that a report of nvidia-smi is named for (`w01-nvidia-smi.txt`), or "" where its name says nothing."""
    stem = os.path.basename(piece.name).split(".", 1)[0].lower()
    word = _WORDS["smi"].sub("", stem).strip("-_ ")
    mixed = any(letter.isdigit() for letter in word) and any(letter.isalpha() for letter in word)
    return word if mixed and not _WORDS["moment"].match(word) else ""


def is_named_for_a_command(piece: Piece) -> bool:
    """Whether a file has the name of what printed it and of nothing else: `topo_m.txt`, `nvidia-smi-q.xml`."""
    words = re.split(r"[^a-z0-9]{1,8}", os.path.basename(piece.name).lower())
    return all(word in _COMMANDS for word in words if word)


def shared(one: str, other: str) -> int:
    """How many characters two words begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


_WHOLE = frozenset({"nvml", "nvidia-smi-xml", "nvidia-smi-q", "nvidia-smi-topo", "nccl-xml", "hwloc-xml", "sys-pci"})
"""Sources whose one text describes all of a node: a second one is another's where its host is not known, unless both
are named for the commands that printed them (`topo_m.txt`, `topo_mp.txt`)."""
_BY_COMMAND = "by command"
_OF_MOMENTS = frozenset({"nvidia-smi", "nvidia-smi-dmon", "nvidia-smi-query"})
"""Sources that are asked of one node several times, and whose texts say no host: their files' names may."""


@dataclass(slots=True)
class Group:
    """Texts that are of one host by what they say. `separate`: something shows that another group is not."""

    pieces: list[Piece]
    separate: bool = False


def groups_of(pieces: Sequence[Piece]) -> list[Group]:
    """Texts by host: those that name the same host or share a serial are together. A single group where nothing says
    that any two are of different nodes."""
    roots = _roots(pieces)
    numbers = _contradicting(pieces, roots)
    if len(numbers) < 2:
        return [Group(list(pieces))]
    groups: dict[int, Group] = {}
    for root, piece in zip(roots, pieces, strict=True):
        groups.setdefault(root, Group([], root in numbers)).pieces.append(piece)
    return list(groups.values())


def _roots(pieces: Sequence[Piece]) -> list[int]:
    """By piece, the number of one of those that it is together with, the same for all of them."""
    sets = Sets[int]()
    first: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        serials = [f"id {serial}" for label, serial in piece.ids if label != BOARD]
        for key in ([f"host {short_name(piece.host)}"] if piece.host else []) + serials:
            sets.join(number, first.setdefault(key, number))
    return [sets.root(number) for number in range(len(pieces))]


def _contradicting(pieces: Sequence[Piece], roots: Sequence[int]) -> set[int]:
    """Those of whose texts another's says something else that a node has once."""
    by_name: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for root, piece in zip(roots, pieces, strict=True):
        for what, value in _said_once(piece):
            by_name[what][str(root) if value is None else value].add(root)
    return {
        number
        for values in by_name.values()
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
