"""Reads evidence from wherever it lies: a bundle (folder or .tar.gz), a plain folder, one file, standard input.

A bundle from elsewhere is hostile until proven otherwise: nothing is unpacked to disk, and members outside the
target, links, devices, too many or too large members and newer schemas are refused with one clear line.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from topodiag.evidence.intake.collected import missing
from topodiag.evidence.intake.one_file import COPY_IT, why_endless
from topodiag.evidence.intake.plain_tar import plain_members
from topodiag.evidence.intake.rewound import Rewound
from topodiag.evidence.interface import Blob, Item
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.result import UnreadLine
from topodiag.words.units import spell_bytes

SCHEMA_MAJOR = 1
MAX_TOTAL_BYTES = 256 * 2**20
"""Unpacked size of one bundle: a 72-GPU capture is under 16 MiB, so this is generous."""
MAX_FILE_BYTES = 64 * 2**20
MAX_FILES = 20_000
MAX_HEADER_BYTES = 64 * 2**10
"""PAX headers and long names of one member: paths are at most 4 KiB."""
MANIFEST = "manifest.json"
HEAD_BYTES = 1 << 16
"""How much of a file's beginning and end is looked at before anything is read."""
TOO_LARGE = "refused: a capture of topodiag is far smaller"


def is_bundle(manifest: bytes) -> bool:
    """Whether the first bytes of a folder's manifest.json are those of a bundle, whose files are its own."""
    return b'"topodiag-probe' in manifest[:4096] or (b'"schema"' in manifest[:4096] and b'"items"' in manifest[:4096])


@dataclass(slots=True)
class Evidence:
    """What one input held: its files in order, the manifest's facts, and items that were tried and gave nothing."""

    path: str
    blobs: list[Blob] = field(default_factory=list)
    missing: list[Item] = field(default_factory=list)
    unread: list[UnreadLine] = field(default_factory=list)
    host: str = ""
    time: str = ""
    boot: str = ""
    intervals_s: dict[int, float] = field(default_factory=dict)
    is_bundle: bool = False


def open_evidence(path: str) -> Evidence:
    """Read one input. Raises InputError for what cannot be read at all."""
    if not path:
        raise InputError("''", "names no file", hint="give a bundle, a folder or a text file")
    place = Path(path)
    try:
        mode = place.stat().st_mode
        if stat.S_ISDIR(mode):
            return _from_folder(path, place)
        if not stat.S_ISREG(mode):
            raise InputError(
                path,
                "is neither a file nor a folder",
                hint="give a bundle, a folder or a text file; a pipe goes in as -",
            )
        if place.stat().st_size > MAX_TOTAL_BYTES:
            raise InputError(path, f"is larger than {spell_bytes(MAX_TOTAL_BYTES)}", hint="is it the right file?")
        if why := why_endless(path):
            raise InputError(path, why, hint=COPY_IT)
        data = place.read_bytes()
    except FileNotFoundError:
        raise missing(path) from None
    except PermissionError:
        raise InputError(path, "permission denied", hint="check its mode and owner") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}", hint="is it the right file?") from None
    except ValueError as error:
        raise InputError(path.replace("\0", "?"), f"is not a path: {error}") from None
    return _from_bytes(path, data)


def from_memory(path: str, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> Evidence:
    """The evidence of a capture that was never written to disk: the live scan."""
    return _with_manifest(path, dict(manifest), dict(files))


def from_files(path: str, files: Mapping[str, bytes]) -> Evidence:
    """The evidence of a bundle whose files have been read, by their names below it. Raises InputError."""
    return _assembled(path, dict(files))


def from_bytes(path: str, data: bytes) -> Evidence:
    """The evidence of a bundle, or of one text, that came as bytes. Raises InputError."""
    return _from_bytes(path, data)


def _bounded(path: str, data: bytes) -> bytes:
    if len(data) > MAX_FILE_BYTES:
        raise InputError(path, f"is larger than {spell_bytes(MAX_FILE_BYTES)}", hint="is it the right file?")
    return data


def _from_bytes(path: str, data: bytes) -> Evidence:
    files = plain_members(data, min(MAX_FILE_BYTES, MAX_TOTAL_BYTES), MAX_FILES)
    if files is not None:
        return _assembled(path, _without_top_folder({_clean(name): member for name, member in files.items()}))
    if data[:2] == b"\x1f\x8b":
        return _from_archive(path, gzip.GzipFile(fileobj=io.BytesIO(data)))
    if data[257:262] == b"ustar":
        return _from_archive(path, io.BytesIO(data))
    if not data.strip():
        raise InputError(path, "is empty", hint="was the capture interrupted?")
    return Evidence(path, blobs=[Blob(path, _bounded(path, data))])


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


class Limited(io.RawIOBase):
    """A reader that stops an archive from unpacking to more than it may; `hint` is the remedy."""

    def __init__(self, path: str, raw: Any, hint: str = TOO_LARGE) -> None:
        super().__init__()
        self._path, self._hint = path, hint
        self._raw = raw
        self._left = MAX_TOTAL_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = self._left + 1 if size < 0 else size
        pieces = []
        while wanted > 0:
            piece = self._raw.read(min(wanted, 1 << 20))
            if not piece:
                break
            self._left -= len(piece)
            wanted -= len(piece)
            if self._left < 0:
                raise InputError(self._path, f"unpacks to more than {spell_bytes(MAX_TOTAL_BYTES)}", hint=self._hint)
            pieces.append(piece)
        return b"".join(pieces)


def _from_archive(path: str, raw: BinaryIO | gzip.GzipFile) -> Evidence:
    files: dict[str, bytes] = {}
    limited = Limited(path, raw)
    try:
        first = limited.read(512)
        if first[257:262] != b"ustar":
            # One compressed text, not an archive.
            return Evidence(path, blobs=[Blob(path, _bounded(path, first + limited.read()))])
        whole = io.BufferedReader(Rewound(first, limited))
        with tarfile.open(fileobj=whole, mode="r|", tarinfo=BoundedTarInfo) as archive:
            for count, member in enumerate(archive):
                _refuse(path, member, count)
                if member.isfile():
                    stream = archive.extractfile(member)
                    files[_clean(member.name)] = stream.read() if stream else b""
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(path, f"is a damaged archive: {error}", hint="was the copy cut short?") from None
    return _assembled(path, _without_top_folder(files))


@lru_cache(maxsize=4096)
def _clean(name: str) -> str:
    return str(PurePosixPath(name))


def _refuse(path: str, member: tarfile.TarInfo, count: int) -> None:
    name = member.name[:120]
    if member.name.startswith("/") or ".." in member.name.split("/") or "\0" in member.name:
        raise InputError(path, f"member {name!r} lies outside the bundle", hint="refused: not made by topodiag")
    if member.issym() or member.islnk():
        raise InputError(path, f"member {name!r} is a link", hint="refused: bundles hold plain files only")
    if member.issparse():
        # Its holes take no room in the archive and all of it in memory: 5 KiB can claim any size.
        raise InputError(path, f"member {name!r} is a sparse file", hint="refused: pack it again without tar -S")
    if not (member.isfile() or member.isdir()):
        raise InputError(path, f"member {name!r} is a device or pipe", hint="refused: bundles hold plain files only")
    if member.size > MAX_FILE_BYTES:
        raise InputError(path, f"member {name!r} is larger than {spell_bytes(MAX_FILE_BYTES)}", hint=TOO_LARGE)
    if count >= MAX_FILES:
        raise InputError(path, f"holds more than {MAX_FILES} members", hint="refused: is it a bundle?")


def _without_top_folder(files: dict[str, bytes]) -> dict[str, bytes]:
    """`tar czf b.tar.gz folder/` puts everything below one folder: look through it."""
    tops = {name.split("/", 1)[0] for name in files}
    if MANIFEST not in files and len(tops) == 1 and all("/" in name for name in files):
        return {name.split("/", 1)[1]: data for name, data in files.items()}
    return files


def _from_folder(path: str, place: Path) -> Evidence:
    files: dict[str, bytes] = {}
    total = 0

    def failed(error: OSError) -> None:
        raise InputError(str(error.filename or path), error.strerror or str(error), hint="check its mode and owner")

    for folder, names, leaves in os.walk(place, onerror=failed):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for leaf in sorted(leaves):
            file = Path(folder, leaf)
            status = file.lstat()
            if leaf.startswith(".") or not stat.S_ISREG(status.st_mode):
                continue
            total += status.st_size
            if len(files) >= MAX_FILES or total > MAX_TOTAL_BYTES:
                limits = f"holds more than {MAX_FILES} files or {spell_bytes(MAX_TOTAL_BYTES)}"
                raise InputError(path, limits, hint="give the folder of one capture, without others beside it")
            try:
                files[file.relative_to(place).as_posix()] = file.read_bytes()
            except OSError as error:
                failed(error)
    if not files:
        raise InputError(path, "is a folder without files", hint="give a bundle, or a folder of captured text")
    return _assembled(path, files)


def _assembled(path: str, files: dict[str, bytes]) -> Evidence:
    if MANIFEST not in files:
        blobs = [Blob(f"{path}/{name}", data) for name, data in sorted(files.items()) if data.strip()]
        return Evidence(path, blobs=blobs)
    try:
        manifest = json.loads(files[MANIFEST].decode("utf-8", errors="replace"))
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, json.JSONDecodeError) else "too deep, or a number too long"
        raise InputError(f"{path}/{MANIFEST}", f"is not JSON: {why}", hint="is the bundle whole?") from None
    if not isinstance(manifest, dict):
        raise InputError(f"{path}/{MANIFEST}", "is not a manifest", hint="is it a topodiag bundle?")
    return _with_manifest(path, manifest, files)


def _check_schema(path: str, schema: object) -> None:
    major = str(schema).split(".", 1)[0]
    if not (major.isascii() and major.isdigit() and len(major) < 9):
        raise InputError(f"{path}/{MANIFEST}", "has no schema version", hint="is it a topodiag bundle?")
    if int(major) > SCHEMA_MAJOR:
        raise InputError(
            f"{path}/{MANIFEST}",
            f"has schema {schema}, newer than this program's {SCHEMA_MAJOR}.x",
            hint="upgrade topodiag on this machine",
        )


def _with_manifest(path: str, manifest: dict[str, Any], files: dict[str, bytes]) -> Evidence:
    _check_schema(path, manifest.get("schema"))
    evidence = Evidence(
        path,
        host=_text(manifest.get("host")),
        time=_text(manifest.get("time")),
        boot=_text(manifest.get("boot_id")),
        is_bundle=True,
    )
    samples = manifest.get("samples")
    for sample in samples if isinstance(samples, list) else []:
        if isinstance(sample, dict) and type(sample.get("number")) is int:
            evidence.intervals_s[sample["number"]] = _seconds(sample.get("interval_s"))
    items = manifest.get("items")
    for place, entry in enumerate(items if isinstance(items, list) else []):
        item = _item(entry)
        if item is None:
            evidence.unread.append(UnreadLine(f"{path}/{MANIFEST}", None, f"items[{place}]", "not a manifest item"))
            continue
        data = files.get(item.file) if item.file else None
        if item.status != "ok":
            evidence.missing.append(item)
        elif data is None:
            evidence.unread.append(UnreadLine(f"{path}/{MANIFEST}", None, item.id, f"{item.file} is not in the bundle"))
        if data:
            evidence.blobs.append(Blob(item.file, data, item))
    return evidence


def _text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e7:
        return 0.0
    return float(value)


def _item(entry: object) -> Item | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        return None
    argv = entry.get("argv")
    rc = entry.get("rc")
    sample = entry.get("sample")
    return Item(
        id=entry["id"],
        kind=_text(entry.get("kind")),
        file=_clean(entry["file"]) if isinstance(entry.get("file"), str) and entry["file"] else "",
        status=_text(entry.get("status")) or "ok",
        why=_text(entry.get("why")),
        argv=tuple(str(word) for word in argv) if isinstance(argv, list) else (),
        rc=rc if type(rc) is int else None,
        stderr=_text(entry.get("stderr")),
        duration_s=_seconds(entry.get("duration_s")),
        truncated=entry.get("truncated") is True,
        needs_root=entry.get("needs_root") is True,
        sample=sample if type(sample) is int and 0 <= sample < 10 else 0,
    )
