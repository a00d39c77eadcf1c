"""What lies in a tar or zip archive, without unpacking it: names, sizes and first bytes, in bounded memory and time."""

from __future__ import annotations

import io
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from topodiag.evidence.intake.one_file import HEAD_BYTES, MAX_TOTAL_BYTES, Blocks, Rewound
from topodiag.evidence.nccl_log.input.streams import Reading, packer_of, text_of
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError, TopodiagError
from topodiag.words.units import spell_bytes

MAX_MEMBERS = 20_000
MAX_LEVEL = 3
"""Archives in one another that are unpacked."""
MAX_HEADER_BYTES = 64 * 2**10
"""PAX headers and long names of one member: paths are at most 4 KiB."""
_ZIP, _TAR_HEAD, _MAGIC = b"PK\x03\x04", 512, 16
_UNPACK = "unpack it, and give the folder"
_TOO_LARGE = "refused: a capture of topodiag is far smaller"
DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError, OverflowError,
    RecursionError, NotImplementedError, RuntimeError,
)  # fmt: skip
"""What the standard library raises for archives that are damaged, cut, encrypted or hostile."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive: its name, its unpacked size, its first bytes."""

    name: str
    size: int
    head: bytes


class BoundedTarInfo(tarfile.TarInfo):
    """A member of an archive whose extended headers are read only where they are of a sane size: the standard library
    takes all of a PAX header into memory, and a kilobyte can claim hundreds of megabytes."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENDED and self.size > MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size} bytes: names and comments are shorter")
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return member


_EXTENDED = frozenset({
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
})  # fmt: skip


def unpacked(path: str, raw: Any, head: bytes) -> Blocks:
    """An archive with its packing taken off, to be read once."""
    blocks = _unpacked(path, raw, packer_of(head))
    return Blocks(b"", lambda _: next(blocks, b""))


def _unpacked(path: str, raw: Any, packer: str) -> Iterator[bytes]:
    """No more than an archive may unpack to, and damage is an error."""
    reading, left = Reading(), MAX_TOTAL_BYTES
    for block in text_of(raw, (packer,) if packer else (), reading):
        left -= len(block)
        if left < 0:
            raise InputError(path, f"unpacks to more than {spell_bytes(MAX_TOTAL_BYTES)}", hint=_UNPACK)
        yield block
    if reading.notes:
        raise tarfile.ReadError(reading.notes[0])


Found = Iterator[tuple[str, int, IO[bytes] | None]]
"""Name, unpacked size and content of each plain file."""


@contextmanager
def files_of(path: str, notes: list[str], held: IO[bytes] | None = None) -> Iterator[Found]:
    """The files of an archive, to be read one after the other; `notes` get what else is there, `held` is the archive
    where it is in memory. Raises InputError, also for what the reader of a damaged one meets."""
    try:
        yield _files(path, notes, held)
    except DAMAGE as error:
        raise InputError(path, f"is a damaged archive: {error}", hint="was the copy cut short?") from None


def members(path: str) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    """The plain files in an archive, in the order of their names, and notes on what else is there.

    Raises InputError for what is damaged, lies outside the archive's folder, or unpacks to too much.
    """
    by_name: dict[str, Member] = {}
    notes: list[str] = []
    with files_of(path, notes) as files:
        for name, size, stream in files:
            by_name[name] = Member(name, size, stream.read(HEAD_BYTES) if stream is not None else b"")
    return tuple(by_name[name] for name in sorted(by_name)), tuple(notes)


def read_members(path: str, folder: str, most: int, notes: list[str], raw: IO[bytes] | None = None) -> dict[str, bytes]:
    """The content of the plain files below a folder of an archive, by their names below it ("" for all of it); `notes`
    get what else is there, `raw` is the archive where it is in memory.

    Raises InputError like `members`, and for a member larger than `most` bytes.
    """
    contents: dict[str, bytes] = {}
    start = f"{folder}/" if folder else ""
    with files_of(path, notes, raw) as files:
        for name, size, stream in files:
            if name.startswith(start) and stream is not None:
                if size > most:
                    raise InputError(path, f"member {name[:120]!r} is larger than {spell_bytes(most)}", hint=_TOO_LARGE)
                contents[name[len(start) :]] = stream.read(most + 1)
    return contents


def copy_members(path: str, places: Mapping[str, str]) -> None:
    """Write files of an archive to `places`, paths by the members' names, in one pass. Of two members of one name the
    later one counts, as in `members`. Raises InputError for the archive, TopodiagError where the disk is full."""
    left = set(places)
    with files_of(path, []) as files:
        for name, _, stream in files:
            if name in places and stream is not None:
                data = stream.read()
                try:  # errors of the disk are told apart from those of the archive, which may be an OSError, too
                    Path(places[name]).write_bytes(data)
                except OSError as error:
                    raise disk_full(path, error) from None
                left.discard(name)
    if left:
        raise InputError(f"{path}/{min(left)}", "is no longer in the archive")


def disk_full(path: str, error: OSError) -> TopodiagError:
    """What an archive holds does not fit into TMPDIR."""
    return TopodiagError(
        f"{tempfile.gettempdir()}: what {path} holds does not fit: {error.strerror or error}",
        hint="set TMPDIR to a folder with room for the unpacked archive",
    )


def read_member(path: str, member: str, most: int) -> bytes:
    """The first `most` bytes of one file in an archive. Raises InputError."""
    with files_of(path, []) as files:
        for name, _, stream in files:
            if name == member and stream is not None:
                return stream.read(most)
    raise InputError(f"{path}/{member}", "is no longer in the archive")


def _files(path: str, notes: list[str], held: IO[bytes] | None = None) -> Found:
    with held or open(path, "rb") as raw:
        head = raw.read(_MAGIC)
        raw.seek(0)
        depth = _Depth()
        for entry in _in_zip(path, raw, notes) if head.startswith(_ZIP) else _in_tar(path, raw, head, notes):
            yield from _deeper(path, entry, notes, depth)


@dataclass(slots=True)
class _Depth:
    """How deep a member lies, and how many bytes all that lies deeper than the first archive may still have."""

    level: int = 0
    left: int = MAX_TOTAL_BYTES


def _deeper(path: str, member: tuple[str, int, IO[bytes] | None], notes: list[str], at: _Depth) -> Found:
    """A member, or the members of the archive that it is: people pack folders with the captures in them. Raises
    InputError where all of them unpack to too much; one that is damaged costs what it holds."""
    name, size, stream = member
    if stream is None or at.level == MAX_LEVEL:
        yield name, size, stream
        return
    head = stream.read(HEAD_BYTES)
    whole = io.BufferedReader(Rewound(head, stream))
    inner = f"{path}/{name}"
    if head.startswith(_ZIP):
        files = _in_zip(inner, io.BytesIO(_counted(inner, whole, at)), notes)
    elif _is_tar(head):
        files = _in_tar(inner, whole, head, notes)
    else:
        yield name, size, whole
        return
    at.level += 1
    try:
        for file, unpacked, content in files:
            held = io.BytesIO(_counted(inner, content, at)) if content is not None else None
            yield from _deeper(path, (f"{name}/{file}", unpacked, held), notes, at)
    except DAMAGE as error:
        notes.append(f"{inner}: is a damaged archive, not read to its end: {error}")
    finally:
        at.level -= 1


def _counted(path: str, stream: Any, at: _Depth) -> bytes:
    """All of a stream, taken from what may still be unpacked."""
    data = bytes(stream.read(at.left + 1))
    at.left -= len(data)
    if at.left < 0:
        raise InputError(path, f"unpacks to more than {spell_bytes(MAX_TOTAL_BYTES)} in archives", hint=_UNPACK)
    return data


def _is_tar(head: bytes) -> bool:
    """Whether the first bytes are those of a tar archive, packed or not."""
    try:
        return io.BufferedReader(unpacked("", io.BytesIO(head), head)).read(_TAR_HEAD)[257:262] == b"ustar"
    except DAMAGE:
        return False


def _in_tar(path: str, raw: IO[bytes], head: bytes, notes: list[str]) -> Found:
    with tarfile.open(fileobj=unpacked(path, raw, head), mode="r|", tarinfo=BoundedTarInfo) as archive:
        for number, member in enumerate(archive):
            name = _inside(path, member.name, number)
            if member.isfile() and not member.issparse():
                yield name, member.size, archive.extractfile(member)
            elif not member.isdir():
                what = "a link" if member.issym() or member.islnk() else "no plain file"
                notes.append(f"{path}/{name}: {what}, not read")


def _in_zip(path: str, raw: IO[bytes], notes: list[str]) -> Found:
    left = MAX_TOTAL_BYTES
    with zipfile.ZipFile(raw) as archive:
        for number, member in enumerate(archive.infolist()):
            name = _inside(path, member.filename, number)
            if member.is_dir():
                continue
            if (member.external_attr >> 16) & 0o170000 not in (0, 0o100000):
                notes.append(f"{path}/{name}: no plain file, not read")
                continue
            left -= member.file_size
            if left < 0:
                raise InputError(path, f"unpacks to more than {spell_bytes(MAX_TOTAL_BYTES)}", hint=_UNPACK)
            with archive.open(member) as stream:
                yield name, member.file_size, stream


def _inside(path: str, name: str, number: int) -> str:
    if number >= MAX_MEMBERS:
        raise InputError(path, f"holds more than {MAX_MEMBERS} members", hint=_UNPACK)
    if name.startswith("/") or ".." in PurePosixPath(name).parts or "\0" in name:
        raise InputError(path, f"member {name[:120]!r} lies outside the archive", hint="refused")
    return str(PurePosixPath(name))
