"""Which pieces are of one node: bundles by themselves, loose texts by their folder and by what they say.

Merging two nodes makes one phantom whose faults hide behind the other's health, so texts are merged only where they lie
together and nothing in them speaks against it: another host, another GUID for the same device, a second matrix.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from topodiag.evidence.intake.bundle import Evidence, from_bytes, from_files, open_evidence
from topodiag.evidence.intake.one_file import MAX_FILE_BYTES, MAX_TOTAL_BYTES
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, SkippedFile, read_piece
from topodiag.evidence.intake.same_node import ENDS, SUBJECTS, Group, groups_of, owner_of_log, shared
from topodiag.evidence.intake.watched import watch
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import NODE_KINDS, Kind
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.words.hosts import short_name
from topodiag.words.units import first_of, grouped, spell_bytes

_FRAMES = frozenset({"shell"})
"""Sources that say in what a text came, and nothing of a node's parts."""
_BY_HAND = frozenset({"sys-pci", "sys-infiniband", "sys-net", "sys-cpu", "os-state", "settings"})
"""Sources of single values that a person reads beside what a tool prints."""


@dataclass(frozen=True, slots=True)
class Capture:
    """The evidence of one node. `name` is where it lies, `host` whose it is by what it says, "" where nothing says it;
    `label` tells captures of one host apart, or stands for a host that is not known."""

    name: str
    pieces: tuple[Piece, ...]
    host: str = ""
    label: str = ""

    @property
    def is_bundle(self) -> bool:
        return self.pieces[0].kind is Kind.BUNDLE


@dataclass(frozen=True, slots=True)
class Captures:
    """Captures by name. `aside` is what belongs to none of them, `notes` say how they were told apart."""

    captures: tuple[Capture, ...] = ()
    aside: tuple[SkippedFile, ...] = ()
    notes: tuple[str, ...] = ()


def captures(intake: Intake) -> Captures:
    """The nodes in what was gathered. Never raises: what belongs to no node is left aside with the reason."""
    bundled, copies = _bundles(intake)
    texts = [piece for piece in intake.pieces if piece.is_any(NODE_KINDS) and piece.kind is not Kind.BUNDLE]
    unknown = [piece for piece in intake.pieces if piece.kinds == (Kind.TEXT,)]
    loose, aside, notes = _loose(texts, unknown)
    bundled += loose
    taken = {piece.name for capture in bundled for piece in capture.pieces} | {
        left_out.path for left_out in (*aside, *copies)
    }
    rest = [left_out for left_out in intake.beside(*NODE_KINDS) if left_out.path not in taken]
    bundled = _supplemented(bundled, intake)
    told_apart, same_host = _told_apart(sorted(bundled, key=lambda capture: capture.name))
    return Captures(tuple(told_apart), (*copies, *aside, *rest), (*intake.notes, *notes, *same_host))


def evidence_of(capture: Capture, intake: Intake) -> Evidence:
    """The evidence of one capture, for the reader of nodes. Raises InputError for what cannot be read."""
    watch().opened(*(piece.name for piece in capture.pieces))
    first = capture.pieces[0]
    if not capture.is_bundle:
        from topodiag.evidence.intake.survey import OF_LINES  # noqa: PLC0415 - not for bundles: it knows every text

        evidence = Evidence(capture.name, host=capture.label or capture.host)
        total = 0
        for piece in capture.pieces:
            blob = read_piece(intake, piece, MAX_FILE_BYTES)
            total += len(blob.data)
            if total > MAX_TOTAL_BYTES:
                hint = "give the folder of one capture, without others beside it"
                raise InputError(capture.name, f"holds more than {spell_bytes(MAX_TOTAL_BYTES)} of one node", hint=hint)
            known = not piece.member and set(piece.kinds) <= OF_LINES
            evidence.blobs.append(replace(blob, sources=piece.sources) if known else blob)
        return evidence
    if first.path == STDIN:
        evidence = from_bytes(first.name, read_piece(intake, replace(first, coding=()), MAX_TOTAL_BYTES).data)
    elif first.member or first.coding not in ((), ("gzip",)):
        from topodiag.evidence.intake.archives import read_members  # noqa: PLC0415 - where there is one

        evidence = from_files(first.name, read_members(first.path, first.member, MAX_FILE_BYTES, []))
    else:
        evidence = open_evidence(first.path)
    evidence.blobs.extend(read_piece(intake, piece, MAX_FILE_BYTES) for piece in capture.pieces[1:])
    return replace(evidence, host=capture.label) if capture.label else evidence


# --- bundles ----------------------------------------------------------------------------------------------------


def _bundles(intake: Intake) -> tuple[list[Capture], list[SkippedFile]]:
    """Every bundle is a capture; the same one as a folder and as an archive counts once."""
    listed: list[Capture] = []
    copies: list[SkippedFile] = []
    first: dict[str, Capture] = {}
    for piece in intake.of(Kind.BUNDLE):
        capture = Capture(piece.name, (piece,), piece.host)
        alike = first.setdefault(piece.digest, capture) if piece.digest else capture
        if alike is not capture and (held := _blobs(capture, intake)) and held == _blobs(alike, intake):
            copies.append(SkippedFile(piece.name, f"the same capture as {alike.name}, read once"))
        else:
            listed.append(capture)
    return listed, copies


def _blobs(capture: Capture, intake: Intake) -> list[Blob]:
    """All that a bundle holds; empty for one that cannot be read."""
    try:
        return evidence_of(capture, intake).blobs
    except InputError:
        return []


def _supplemented(captured: Sequence[Capture], intake: Intake) -> list[Capture]:
    """Texts of a host with one bundle go into it where they add what it did not look at: what a person looked up on a
    node is more of that node. What both tell stays apart: each shows another time."""
    named = (capture for capture in captured if capture.host and capture.pieces[0].path != STDIN)
    joined: dict[str, Capture] = {}
    taken: set[str] = set()
    for several in grouped((short_name(capture.host), capture) for capture in named).values():
        bundles = [one for one in several if one.is_bundle]
        texts = [one for one in several if not one.is_bundle]
        if len(bundles) != 1 or not texts:
            continue
        whole = bundles[0]
        known = {blob.item.kind for blob in _blobs(whole, intake) if blob.item is not None}
        for one in texts:
            adds = _sources_of(one.pieces) - _FRAMES
            if known and adds - known and adds & known <= _BY_HAND:
                whole = joined[whole.name] = replace(whole, pieces=(*whole.pieces, *one.pieces))
                taken.add(one.name)
                known |= adds
    return [joined.get(capture.name, capture) for capture in captured if capture.name not in taken]


def _told_apart(captured: Sequence[Capture]) -> tuple[list[Capture], list[str]]:
    """Captures of one host are judged one by one, as `host#1` and `host#2`: neither hides what the other shows."""
    of_host = grouped((capture.host, capture) for capture in captured if capture.host)
    again = {host: several for host, several in sorted(of_host.items()) if len(several) > 1}
    numbers = {one.name: f"{host}#{number}" for host, several in again.items() for number, one in enumerate(several, 1)}
    notes = [
        f"{len(several)} captures of {host}, judged one by one: "
        + first_of([f"{numbers[one.name]} is {one.name}" for one in several], 8)
        for host, several in again.items()
    ]
    return [replace(one, label=numbers.get(one.name, one.label)) for one in captured], notes


# --- loose texts ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Unit:
    """Texts that lie together: a folder, with the folders below it that part one node by subject."""

    folder: str
    texts: list[Piece]
    unknown: list[Piece]


def _sources_of(pieces: Iterable[Piece]) -> set[str]:
    return {source for piece in pieces for source in piece.sources}


def _loose(texts: Sequence[Piece], unknown: Sequence[Piece]) -> tuple[list[Capture], list[SkippedFile], list[str]]:
    units: dict[str, _Unit] = {}
    aside: list[SkippedFile] = []
    for piece in texts:
        if piece.size > MAX_FILE_BYTES:
            aside.append(SkippedFile(piece.name, f"larger than {spell_bytes(MAX_FILE_BYTES)}", piece.command))
            continue
        folder = _folder_of(piece)
        units.setdefault(folder, _Unit(folder, [], [])).texts.append(piece)
    for piece in unknown:
        unit = units.get(_folder_of(piece))
        if unit is not None and piece.size <= MAX_FILE_BYTES:
            unit.unknown.append(piece)
    loose: list[Capture] = []
    notes: list[str] = []
    for unit in _merged(units):
        parts, left = _parted(unit)
        loose += parts
        aside += left
        if len(parts) > 1:
            hosts = first_of([capture.host or capture.label for capture in parts], 4)
            notes.append(f"{unit.folder}: texts of {len(parts)} nodes lie together: {hosts}")
    return loose, aside, notes


def _folder_of(piece: Piece) -> str:
    """The folder that stands for the piece's node; standard input is by itself."""
    if piece.path == STDIN:
        return STDIN
    folder, top = os.path.dirname(piece.name), piece.root.rstrip("/")
    while os.path.basename(folder).lower() in SUBJECTS and folder not in (top, "") and not _is_above(folder, top):
        folder = os.path.dirname(folder)
    return folder


def _is_above(folder: str, top: str) -> bool:
    """Whether `top`, what the user named, lies in this folder or is it."""
    return top == folder or top.startswith(f"{folder}/")


def _merged(units: dict[str, _Unit]) -> Iterator[_Unit]:
    """A folder inside one that holds texts itself belongs to it where it adds other sources and nothing speaks against
    it. Folders beside each other are different nodes."""
    for folder in sorted(units):
        above = _nearest_above(folder, units)
        unit = units[folder]
        if above is not None:
            both = [*above.texts, *unit.texts]
            if _sources_of(above.texts).isdisjoint(_sources_of(unit.texts)) and len(groups_of(both)) == 1:
                above.texts += unit.texts
                above.unknown += unit.unknown
                units[folder] = above
    yield from {id(unit): unit for unit in units.values()}.values()


def _nearest_above(folder: str, units: dict[str, _Unit]) -> _Unit | None:
    while folder and folder != STDIN and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        if folder in units:
            return units[folder]
    return None


def _parted(unit: _Unit) -> tuple[list[Capture], list[SkippedFile]]:
    """The captures of a unit: one, or one for each node that its texts show."""
    groups = groups_of(unit.texts)
    if len(groups) == 1:
        return [_single(unit)], []
    named = {number: words for number, group in enumerate(groups) if (words := _name_of(group, groups))}
    pieces = _anchored(groups, named)
    left = [piece for group in groups if not group.separate for piece in group.pieces]
    several = first_of([named.get(number, "?") for number in pieces], 4)
    aside = [SkippedFile(piece.name, f"names no host, and lies among texts of several: {several}") for piece in left]
    aside += [SkippedFile(piece.name, piece.words) for piece in unit.unknown]
    parts = []
    for number, own in pieces.items():
        host = _host_of(own)
        first = own[0].name
        parts.append(Capture(first, tuple(own), host, "" if host else named.get(number, "")))
    return parts, aside


def _single(unit: _Unit) -> Capture:
    """The one capture of a unit all of whose texts may be of one node."""
    pieces = tuple(sorted((*unit.texts, *unit.unknown), key=lambda piece: piece.name))
    name = unit.texts[0].name if len(pieces) == 1 and pieces[0].named else unit.folder or "."
    host = _host_of(unit.texts)
    return Capture(name, pieces, host, "" if host else _owner_of_logs(unit.texts))


def _anchored(groups: Sequence[Group], named: Mapping[int, str]) -> dict[int, list[Piece]]:
    """The texts of each node by the number of its first group. Groups of one word in their files' names are of one
    node: gpu-001.topo.txt, gpu-001.nvlink.txt."""
    pieces: dict[int, list[Piece]] = {}
    for number, group in enumerate(groups):
        if group.separate:
            at = next((place for place in pieces if named.get(place) and named.get(place) == named.get(number)), number)
            pieces.setdefault(at, []).extend(group.pieces)
    return pieces


def _owner_of_logs(pieces: Sequence[Piece]) -> str:
    """The host that kernel logs are named for, where there is nothing else beside them and all are named alike."""
    owners = {owner_of_log(piece) if piece.sources == ("kernel-log",) else "" for piece in pieces}
    return owners.pop() if len(owners) == 1 else ""


def _host_of(pieces: Iterable[Piece]) -> str:
    return next((piece.host for piece in pieces if piece.host), "")


def _name_of(group: Group, groups: Sequence[Group]) -> str:
    """The host that a group names, or the word of its files' names in which they differ from the other groups'."""
    host = _host_of(group.pieces)
    if host:
        return host
    own = os.path.basename(group.pieces[0].name)
    others = [
        os.path.basename(piece.name)
        for other in groups
        if other is not group and other.separate
        for piece in other.pieces
        if set(piece.sources) & set(group.pieces[0].sources)
    ]
    if not others:
        return own.split(".", 1)[0]
    start = max(shared(own, other) for other in others)
    while start and own[start - 1] not in ENDS:
        start -= 1
    end = start
    tails = max(shared(own[::-1], other[::-1]) for other in others)
    while end < len(own) and (own[end] not in f"{ENDS}-" or end < len(own) - tails):
        end += 1
    return own[start:end] or own
