"""From what the user named to pieces of evidence: files, folders, archives, patterns, `fixture:NAME`, standard input.

Only first and last bytes are read here. Nothing that would wait or act is opened: no pipe, no socket, no device.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, BinaryIO

from topodiag.evidence.intake import collected
from topodiag.evidence.intake.bundle import MANIFEST, is_bundle
from topodiag.evidence.intake.collected import is_copy, missing, resolve, text_of_copy, without_bookkeeping
from topodiag.evidence.intake.genre import without_papers
from topodiag.evidence.intake.one_file import COPY_IT, HEAD_BYTES, Rewound, why_emptied
from topodiag.evidence.intake.pieces import STDIN, STDIN_NAME, Intake, Piece, SkippedFile
from topodiag.evidence.intake.same_node import host_of_log, host_of_text, ids_of_text
from topodiag.evidence.intake.watched import watch
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import NODE_KINDS, Kind
from topodiag.evidence.registry import ASKED_LAST
from topodiag.lazy import dataclass, regex
from topodiag.model.errors import InputError

if TYPE_CHECKING:
    from topodiag.evidence.intake.archives import Member
    from topodiag.evidence.intake.kind_of_file import FileKind

NOT_EVIDENCE = frozenset({Kind.EMPTY, Kind.BLANK, Kind.BINARY, Kind.PICKLE})
"""Kinds that no command reads, whatever is asked."""
MOST_SHARED = 8 << 20
"""Bytes of a text that is looked through for what several hosts printed."""
_OF_HOSTS = NODE_KINDS | {Kind.TEXT, Kind.JOB_OUTPUT, Kind.CLUSTER}
"""Kinds of a text that may hold what the tools of several nodes print."""
_HOST = regex(rb'"host": {0,4}"([^"\\\x00-\x1f]{1,200})"')
_DIGESTED = 1 << 15
"""Bytes of a manifest that tell it from any other: it names the host, the time, and how long each command took."""
_SWEEP = ("plan-1.json", "results.jsonl")
_SWEPT = regex(r"plan-[1-9]\d{0,3}\.json|results\.jsonl", re.ASCII)


@dataclass(slots=True)
class _Met:
    """What was met on the way. `real` are paths without links, so that nothing is taken twice."""

    quick: bool
    pieces: dict[str, Piece] = field(default_factory=dict)
    real: set[str] = field(default_factory=set)
    aside: list[SkippedFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def take(self, piece: Piece) -> None:
        self.pieces[piece.name] = piece

    def leave(self, path: str, why: str, *, hint: str = "", named: bool = False, broken: bool = False) -> None:
        self.aside.append(SkippedFile(path, why, hint=hint, refused=named, unreadable=broken))


def gather(paths: Sequence[str], *, stdin: BinaryIO | None = None, quick: bool = False) -> Intake:
    """The pieces of evidence at these paths. Raises InputError for a path that is not there and a pattern without a
    match; what cannot be read otherwise is left aside with the reason.
    `stdin` is the stream behind `-`. `quick`: of a text with NCCL's records nothing else is asked, which is enough for
    who reads logs alone."""
    if not paths:
        raise InputError("''", "names no file", hint="give files, folders, or - for standard input")
    met = _Met(quick)
    folders: list[tuple[str, str]] = []
    # Files named one by one come first: the same file met again in a folder is then still one that was named.
    for path in sorted(set(paths) - {STDIN}):
        for place in _expanded(path):
            if os.path.isdir(place):
                folders.append((place, path))
                if path.startswith(collected.PREFIX):
                    met.real.add(os.path.realpath(os.path.join(place, collected.ANSWER)))
            else:
                _take_readable(place, path, met, named=True)
    for folder, path in folders:
        _walk(folder, path, met)
    stream = _take_stdin(stdin, met) if STDIN in paths else None
    pieces, papers = without_papers([met.pieces[name] for name in sorted(met.pieces)])
    met.aside += papers
    return Intake(
        tuple(paths),
        tuple(pieces),
        tuple(sorted(met.aside, key=lambda left_out: (left_out.path, left_out.why))),
        tuple(dict.fromkeys(sorted(met.notes))),
        stream,
    )


def _expanded(path: str) -> list[str]:
    """The path itself, or what a pattern matches that the shell left as it is (quoted, or passed by a program)."""
    if not path:
        raise InputError("''", "names no file", hint="give a file, a folder, or - for standard input")
    if "\0" in path:
        raise InputError(path.replace("\0", "?"), "is not a path")
    if path.startswith(collected.PREFIX):
        return [resolve(path)]
    if os.path.lexists(path) or not glob.has_magic(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise InputError(path, "matches no file", hint="check the pattern and the folder")
    return matches


def _take_readable(path: str, root: str, met: _Met, *, named: bool, real: str = "") -> None:
    """Takes a file; one that cannot be read is left aside. Raises InputError for one that was named and is gone.
    `real` is its path without links to folders, "" where that is not known."""
    try:
        _take(path, real if real and not os.path.islink(path) else os.path.realpath(path), root, met, named=named)
    except FileNotFoundError:
        if named:
            raise missing(path) from None
        met.leave(path, "a link to nowhere", broken=True)
    except OSError as error:
        why = f"cannot be read: {(error.strerror or str(error)).lower()}"
        met.leave(path, why, hint="check its mode and owner", named=named, broken=True)


def _walk(top: str, root: str, met: _Met) -> None:
    def failed(error: OSError) -> None:
        why = f"folder not read: {error.strerror or error}"
        met.leave(str(error.filename or top), why, named=error.filename == top, broken=True)

    for here, folders, names in os.walk(top, onerror=failed, followlinks=True):
        real = os.path.realpath(here)
        if real in met.real:  # a link to a folder above, or a folder that was given twice
            folders.clear()
            continue
        met.real.add(real)
        manifest = _manifest(here, names)
        if manifest is not None and (here == top or is_bundle(manifest)):
            met.take(_as_bundle(Piece(here, (), named=here == top, root=root), manifest))
            folders.clear()
            continue
        if is_copy(here, folders):
            _take_copy(here, root, met, named=here == top)
            folders.clear()
            continue
        for hidden in [name for name in folders if name.startswith(".")]:
            # Snapshots of a filer, .git: copies of the same evidence, or none.
            folders.remove(hidden)
            met.notes.append(f"{os.path.join(here, hidden)}: hidden folder, not read")
        for link in [name for name in folders if _leaves(os.path.join(here, name), top)]:
            folders.remove(link)
            met.notes.append(f"{os.path.join(here, link)}: a link to a folder elsewhere, not read: give that folder")
        folders.sort()
        if all(name in names for name in _SWEEP):
            met.take(Piece(here, (Kind.SWEEP,), named=here == top, root=root))
            names = [name for name in names if not _SWEPT.fullmatch(name)]
        names = without_bookkeeping(here, names, met.notes)
        for name in sorted(names):
            _take_readable(os.path.join(here, name), root, met, named=False, real=os.path.join(real, name))


def _take_copy(folder: str, root: str, met: _Met, *, named: bool) -> None:
    from topodiag.evidence.intake.survey import sources_in  # noqa: PLC0415 - as below

    text = text_of_copy(folder)
    sources = sources_in(Blob(folder, text), ())
    kind = Kind.NODE_TEXT if sources else Kind.TEXT
    met.take(Piece(folder, (kind,), len(text), sources=sources, named=named, root=root, held=text))


def _leaves(path: str, top: str) -> bool:
    """Whether a folder is a link to one that does not lie below `top`."""
    if not os.path.islink(path):
        return False
    real, own = os.path.realpath(path), os.path.realpath(top)
    return os.path.commonpath((real, own)) != own


def _manifest(folder: str, names: Sequence[str]) -> bytes | None:
    """The first bytes of a folder's manifest.json, None without one."""
    if MANIFEST not in names:
        return None
    path = os.path.join(folder, MANIFEST)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        return _first(path, HEAD_BYTES)
    except OSError:
        return None


def _as_bundle(piece: Piece, manifest: bytes) -> Piece:
    """The piece as a bundle, by the first bytes of its manifest."""
    match = _HOST.search(manifest)
    host = match[1].decode("utf-8", "replace") if match else ""
    digest = hashlib.sha256(manifest[:_DIGESTED]).hexdigest() if match else ""
    return replace(piece, kinds=(Kind.BUNDLE,), host=host, digest=digest)


def _take(path: str, real: str, root: str, met: _Met, *, named: bool) -> None:
    watch().found()
    status = os.stat(path)
    mode = status.st_mode
    if not stat.S_ISREG(mode):
        what = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        hint = "a pipe goes in as standard input: - < PIPE" if stat.S_ISFIFO(mode) else ""
        met.leave(path, f"is {what}, not a file" if named else what, hint=hint, named=named)
        return
    if status.st_size == 0:  # as the kernel's files say: in a folder it is empty, or nothing that was meant
        why = why_emptied(path) if named else "it is empty"
        if why:
            met.leave(path, why, hint=COPY_IT if named else "", named=named)
            return
    if real in met.real:
        if named:
            met.notes.append(f"{path}: the same file as another that was given, read once")
        return
    from topodiag.evidence.intake.kind_of_file import kind_of_file  # noqa: PLC0415 - not for bundles: it knows every text there is

    head, tail = _ends(path, status.st_size)
    met.real.add(real)
    seen = kind_of_file(head, tail, name=path, quick=met.quick)
    if not seen.packed and (seen.coding or status.st_size > len(head)) and not met.quick:
        from topodiag.evidence.intake.survey import surveyed  # noqa: PLC0415 - as above

        seen = surveyed(path, seen)
    piece = Piece(path, seen.kinds, status.st_size, seen.coding, seen.sources, named=named, root=root, what=seen.what)
    if seen.packed:
        _take_archive(piece, seen, met)
    elif seen.kind in NOT_EVIDENCE:
        met.leave(path, f"it is {piece.words}", named=named)
    elif not _take_hosts(piece, seen, head, met):
        met.take(_with_identity(piece, seen.head or head, tail))


def _first(path: str, most: int) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(most)


def _take_hosts(renamed: Piece, seen: FileKind, head: bytes, met: _Met) -> bool:
    """Takes a text that holds what several hosts print as a piece of each; False where it is of one, or none says
    which. A job's records are of all its hosts. `head` is all of a short text."""
    from topodiag.evidence.intake.fanout import LEAST_HOSTS, parts_of  # noqa: PLC0415 - as above
    from topodiag.evidence.intake.kind_of_file import kind_of_file  # noqa: PLC0415 - as above

    if met.quick or seen.coding or renamed.size > MOST_SHARED or not set(seen.kinds) <= _OF_HOSTS:
        return False
    whole = head if renamed.size <= len(head) else _first(renamed.path, MOST_SHARED)
    parts = [(host, text.encode()) for host, text in parts_of(Blob(renamed.name, whole).text).items()]
    rows = [(host, text, kind_of_file(text.lstrip(b"\n")[:HEAD_BYTES], name=renamed.name)) for host, text in parts]
    of_nodes = [kind for *_, kind in rows if not set(kind.kinds).isdisjoint(NODE_KINDS)]
    if len(of_nodes) < LEAST_HOSTS or not all(set(kind.kinds) <= _OF_HOSTS for kind in of_nodes):
        return False
    if set(seen.sources).difference((ASKED_LAST, "shell"), *(kind.sources for kind in of_nodes)):
        return False  # a reader that compares the hosts of one text sees what none of their parts shows
    for host, text, own in rows:
        piece = replace(renamed, kinds=own.kinds, size=len(text), sources=own.sources, member=host, held=text)
        if piece.is_any(NODE_KINDS):
            met.take(replace(_with_identity(piece, text.lstrip(b"\n")), host=host))
        else:
            met.leave(piece.name, "unknown file type")
    return True


def _ends(path: str, size: int) -> tuple[bytes, bytes]:
    """The first and the last bytes; a short file is its first bytes alone."""
    with open(path, "rb") as stream:
        if size <= 2 * HEAD_BYTES:
            return stream.read(size or 2 * HEAD_BYTES), b""  # the kernel's files have no size
        head = stream.read(HEAD_BYTES)
        stream.seek(size - HEAD_BYTES)
        return head, stream.read(HEAD_BYTES)


def _with_identity(piece: Piece, head: bytes, tail: bytes = b"") -> Piece:
    """The piece with the host that it names, and with what only one machine has."""
    if piece.sources:
        blob = Blob(piece.name, head[:HEAD_BYTES])
        host = host_of_text(blob)
        # A journal begins with the name of the initial RAM disk, before the machine takes its own.
        later = host_of_text(Blob(piece.name, tail)) if host and tail else ""
        return replace(piece, host=later or host, ids=ids_of_text(blob.text))
    return replace(piece, host=host_of_log(head)) if piece.kind is Kind.NCCL_LOG else piece


def _take_archive(piece: Piece, seen: FileKind, met: _Met) -> None:
    """A bundle that begins with its manifest, as the collector writes it, or what a look through the archive finds."""
    if seen.first == MANIFEST:
        met.take(_as_bundle(piece, seen.head[512 : 512 + _tar_size(seen.head)]))
        return
    from topodiag.evidence.intake.archives import members  # noqa: PLC0415 - where there is one

    try:
        packed, notes = members(piece.path)
    except InputError as error:
        why = error.message.removeprefix(f"{piece.path}: ")
        met.leave(piece.path, why, hint=error.hint, named=piece.named, broken=True)
        return
    met.notes += notes
    bundles = {
        one.name.removesuffix(MANIFEST).rstrip("/"): one
        for one in packed
        if one.name.rpartition("/")[2] == MANIFEST and is_bundle(one.head)
    }
    coding = piece.coding if seen.packed == "tar" else ("zip",)
    for folder, listed in bundles.items():
        met.take(_as_bundle(replace(piece, member=folder, coding=coding), listed.head))
    beside = [
        member
        for member in packed
        if not any(member.name.startswith(f"{folder}/" if folder else "") for folder in bundles)
    ]
    known = _seen_members(piece.path, beside, quick=met.quick)
    taken = len(bundles) + sum(_take_member(piece, member, known[member.name], met) for member in beside)
    if not taken:
        met.leave(piece.path, "an archive without evidence in it", hint=next(iter(notes), ""), named=piece.named)


def _tar_size(header: bytes) -> int:
    """The size that a tar header gives, in octal; all of the head where it cannot be read."""
    digits = header[124:136].strip(b"\0 ")
    return min(int(digits, 8), HEAD_BYTES) if digits and not digits.translate(None, b"01234567") else HEAD_BYTES


def _seen_members(path: str, packed: Sequence[Member], *, quick: bool) -> dict[str, FileKind]:
    """What these members of an archive are, by name: a long text by all of it, as a plain file. Raises InputError."""
    from topodiag.evidence.intake.archives import files_of  # noqa: PLC0415 - as above
    from topodiag.evidence.intake.kind_of_file import kind_of_file  # noqa: PLC0415 - as above
    from topodiag.evidence.intake.survey import survey_of  # noqa: PLC0415 - as above

    known = {member.name: kind_of_file(member.head, name=member.name, quick=quick) for member in packed}
    long = {member.name for member in packed if member.size > len(member.head) and not known[member.name].packed}
    if long and not quick:
        with files_of(path, []) as files:
            for name, _, stream in files:
                if name in long and stream is not None:
                    known[name] = survey_of(stream, name, known[name])
    return known


def _take_member(archive: Piece, member: Member, seen: FileKind, met: _Met) -> bool:
    piece = replace(archive, kinds=seen.kinds, size=member.size, coding=seen.coding, member=member.name)
    piece = replace(piece, sources=seen.sources, what=seen.what)
    if seen.packed:
        met.leave(piece.name, "an archive in an archive, not read", hint="unpack the outer one")
    elif seen.kind in NOT_EVIDENCE:
        met.leave(piece.name, f"it is {piece.words}")
    else:
        met.take(_with_identity(piece, seen.head or member.head))
        return True
    return False


def _take_stdin(stdin: BinaryIO | None, met: _Met) -> BinaryIO:
    from topodiag.evidence.intake.kind_of_file import kind_of_file  # noqa: PLC0415 - as above
    from topodiag.evidence.intake.survey import surveyed_stream  # noqa: PLC0415 - as above

    stream = stdin if stdin is not None else io.BytesIO()
    head = b""
    try:
        while len(head) < HEAD_BYTES and (block := stream.read(HEAD_BYTES - len(head))):
            head += block
    except OSError as error:
        raise InputError(STDIN_NAME, f"cannot be read: {error.strerror or error}") from None
    seen = kind_of_file(head, name=STDIN_NAME, quick=met.quick)
    is_long = len(head) >= HEAD_BYTES
    held = head if not is_long else None  # all of it: whoever asks reads it, as a file can be read twice
    reader = Rewound(head, stream)
    if is_long and not seen.packed and not met.quick:
        reader, seen = surveyed_stream(reader, seen)
    piece = Piece(STDIN, seen.kinds, -1, seen.coding, seen.sources, root=STDIN, what=seen.what, held=held)
    if seen.packed and seen.first == MANIFEST:
        met.take(replace(piece, kinds=(Kind.BUNDLE,)))
    elif seen.kind in NOT_EVIDENCE:
        hint = "did the command before the pipe print anything?" if seen.kind is Kind.EMPTY else ""
        met.leave(STDIN_NAME, f"is {piece.words}", hint=hint, named=True)
    elif seen.packed:
        met.take(piece)
    elif is_long or not _take_hosts(replace(piece, size=len(head)), seen, head, met):
        met.take(_with_identity(piece, seen.head or head))
    return io.BufferedReader(reader)
