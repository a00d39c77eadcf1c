"""Reads evidence from wherever it lies: a bundle (folder or archive), a plain folder, one text, standard input.

A bundle from elsewhere is hostile until proven otherwise: nothing is unpacked to disk, members outside the target, too
many or too large ones and newer schemas are refused with one clear line, and links and devices are not read.
"""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Any

from topodiag.evidence.intake.one_file import MAX_FILE_BYTES, MAX_TOTAL_BYTES, is_packed, read_small
from topodiag.evidence.intake.plain_tar import plain_members
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.json_values import number, objects
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.result import UnreadLine
from topodiag.words.units import spell_bytes

SCHEMA_MAJOR = 1
MAX_FILES = 20_000
MANIFEST = "manifest.json"
MAX_SECONDS = 1e7


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
    if os.path.isdir(path):
        return _from_folder(path, Path(path))
    return from_bytes(path, read_small(path, MAX_TOTAL_BYTES))


def from_memory(path: str, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> Evidence:
    """The evidence of a capture by its manifest and its files, such as the live scan's, which never was on disk. Raises
    InputError."""
    _check_schema(path, manifest.get("schema"))
    evidence = Evidence(
        path,
        host=_text(manifest.get("host")),
        time=_text(manifest.get("time")),
        boot=_text(manifest.get("boot_id")),
        is_bundle=True,
    )
    for _, sample in objects(manifest.get("samples"), MAX_FILES):
        if type(sample.get("number")) is int:
            evidence.intervals_s[sample["number"]] = number(sample.get("interval_s"), MAX_SECONDS) or 0.0
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


def from_files(path: str, files: Mapping[str, bytes]) -> Evidence:
    """The evidence of a bundle whose files have been read, by their names below it. Raises InputError."""
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
    return from_memory(path, manifest, files)


def from_bytes(path: str, data: bytes) -> Evidence:
    """The evidence of a bundle, or of one text, that came as bytes. Raises InputError."""
    files = plain_members(data, MAX_FILE_BYTES, MAX_FILES)
    notes: list[str] = []
    if files is None and is_packed(data):
        from topodiag.evidence.intake.archives import read_members  # noqa: PLC0415 - most bundles are plain archives

        files = read_members(path, "", MAX_FILE_BYTES, notes, io.BytesIO(data))
    if files is None:
        if not data.strip():
            raise InputError(path, "is empty", hint="was the capture interrupted?")
        return Evidence(path, blobs=[Blob(path, data)])
    evidence = from_files(path, _without_top_folder(files))
    evidence.unread += (UnreadLine(path, None, "", note.removeprefix(f"{path}/")) for note in notes)
    return evidence


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
            try:
                status = file.lstat()
                if leaf.startswith(".") or not stat.S_ISREG(status.st_mode):
                    continue
                total += status.st_size
                if len(files) >= MAX_FILES or total > MAX_TOTAL_BYTES:
                    limits = f"holds more than {MAX_FILES} files or {spell_bytes(MAX_TOTAL_BYTES)}"
                    raise InputError(path, limits, hint="give the folder of one capture, without others beside it")
                files[file.relative_to(place).as_posix()] = file.read_bytes()
            except OSError as error:
                failed(error)
    if not files:
        raise InputError(path, "is a folder without files", hint="give a bundle, or a folder of captured text")
    return from_files(path, files)


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


def _text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""


def _item(entry: object) -> Item | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        return None
    argv = entry.get("argv")
    sample = entry.get("sample")
    return Item(
        id=entry["id"],
        kind=_text(entry.get("kind")),
        file=str(PurePosixPath(entry["file"])) if isinstance(entry.get("file"), str) and entry["file"] else "",
        status=_text(entry.get("status")) or "ok",
        why=_text(entry.get("why")),
        argv=tuple(str(word) for word in argv) if isinstance(argv, list) else (),
        duration_s=number(entry.get("duration_s"), MAX_SECONDS) or 0.0,
        needs_root=entry.get("needs_root") is True,
        sample=sample if type(sample) is int and 0 <= sample < 10 else 0,
    )
