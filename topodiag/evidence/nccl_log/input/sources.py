"""From what the user named to a plan: which files are read, in which order, in which pieces.

Only first and last bytes are read here. A task is a handful of spans; a span is a range of one file's raw bytes and
stands for the lines that begin in it, so that tasks need not know of each other.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from topodiag.evidence.intake.bundle import MANIFEST
from topodiag.evidence.nccl_log.input.looks import HEAD_BYTES, Looks, is_bundle, looks, wrong_file
from topodiag.evidence.nccl_log.input.streams import Span
from topodiag.model.errors import InputError

CHUNK_BYTES = 30 << 20
"""Raw text per task: some tenths of a second of work, beside which the cost of a task does not show. Less than 32 MiB:
above, glibc maps memory anew for every piece, and page faults take a tenth of the time."""
MAX_SPANS = 64
"""Small files per task: a scheduler's overhead is per task, and one slow file should not hold up hundreds."""
STDIN = "-"
STDIN_NAME = "<stdin>"


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read. `named`: the user gave this very path, rather than a folder with it. Sizes are raw bytes."""

    path: str
    size: int
    coding: tuple[str, ...] = ()
    named: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """Sources in order of their path. `saved` are facts in Parquet, `flight` dumps of torch's flight recorder."""

    sources: tuple[Source, ...] = ()
    saved: tuple[str, ...] = ()
    flight: tuple[str, ...] = ()
    stdin: bool = False
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return sum(source.size for source in self.sources)


@dataclass(slots=True)
class _Found:
    """What was met on the way. `skipped`: paths by why."""

    sources: dict[str, Source] = field(default_factory=dict)
    saved: dict[str, str] = field(default_factory=dict)
    flight: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    refused: list[InputError] = field(default_factory=list)

    def skip(self, why: str, path: str) -> None:
        self.skipped.setdefault(why, []).append(path)


def make_plan(inputs: Sequence[str]) -> Plan:
    """What to read for these paths, folders, patterns and `-`. Raises InputError where nothing is left to read."""
    if not inputs:
        raise InputError("''", "names no log", hint="give files, folders, or - for standard input")
    found = _Found()
    # Files named one by one come first: the same file met again in a folder is then still one that was named.
    paths = sorted(set(inputs) - {STDIN})
    folders = []
    for path in paths:
        for each in _expanded(path):
            if os.path.isdir(each):
                folders.append(each)
            else:
                _take(each, found, named=True)
    for folder in folders:
        _walk(folder, found)
    stdin = STDIN in inputs
    sources = tuple(sorted(found.sources.values(), key=lambda source: source.path))
    flight, saved = tuple(sorted(found.flight.values())), tuple(sorted(found.saved.values()))
    if not (sources or saved or flight or stdin):
        if found.refused:
            raise found.refused[0]
        skipped = "; ".join(_skipped(found))
        raise InputError(
            paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more",
            f"holds no log to read{': ' + skipped if skipped else ''}",
            hint="give the files that NCCL_DEBUG_FILE named, or the output of the job",
        )
    refused = [str(error) for error in found.refused]
    return Plan(sources, saved, flight, stdin, (*refused, *sorted(found.notes), *_skipped(found)))


def _skipped(found: _Found) -> Iterator[str]:
    for why, paths in sorted(found.skipped.items()):
        shown = ", ".join(sorted(paths)[:3]) + (", ..." if len(paths) > 3 else "")
        yield f"{len(paths)} {'file' if len(paths) == 1 else 'files'} not read, {why}: {shown}"


def _expanded(path: str) -> list[str]:
    """The path itself, or what a pattern matches that the shell left as it is (quoted, or passed by a program)."""
    if not path:
        raise InputError("''", "names no file", hint="give a log, a folder, or - for standard input")
    if "\0" in path:
        raise InputError(path.replace("\0", "?"), "is not a path")
    if os.path.lexists(path) or not glob.has_magic(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise InputError(path, "matches no file", hint="check the pattern and the folder")
    return matches


def _walk(folder: str, found: _Found) -> None:
    seen: set[tuple[int, int]] = set()

    def failed(error: OSError) -> None:
        found.notes.append(f"{error.filename}: folder not read: {error.strerror or error}")

    for here, folders, names in os.walk(folder, onerror=failed, followlinks=True):
        try:
            status = os.stat(here)
        except OSError as error:
            failed(error)
            folders.clear()
            continue
        if (status.st_dev, status.st_ino) in seen:  # a link to a folder above
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        if _holds_bundle(here, names):
            what = "a bundle of topodiag"
            if here == folder:
                found.refused.append(
                    InputError(here, f"is no NCCL log: it is {what}", hint=f"topodiag scan --from {here}")
                )
            else:
                found.skip(what, here)
            folders.clear()
            continue
        for hidden in [name for name in folders if name.startswith(".")]:
            # Snapshots of a filer, .git: copies of the same logs, or none.
            folders.remove(hidden)
            found.notes.append(f"{os.path.join(here, hidden)}: hidden folder, not read")
        folders.sort()
        for name in sorted(names):
            _take(os.path.join(here, name), found, named=False)


def _holds_bundle(folder: str, names: Sequence[str]) -> bool:
    if MANIFEST not in names:
        return False
    try:
        with open(os.path.join(folder, MANIFEST), "rb") as stream:
            return is_bundle(stream.read(HEAD_BYTES))
    except OSError:
        return False


def _take(path: str, found: _Found, *, named: bool) -> None:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            _irregular(path, status.st_mode, found, named=named)
            return
        real = os.path.realpath(path)
        if real in found.sources or real in found.saved or real in found.flight:
            if named:
                found.notes.append(f"{path}: the same file as another that was given, read once")
            return
        head, tail = _ends(path, status.st_size)
    except FileNotFoundError:
        if named:
            raise InputError(path, "no such file or folder") from None
        found.skip("a link to nowhere", path)
        return
    except OSError as error:
        if named:
            found.refused.append(InputError(path, f"cannot be read: {error.strerror or error}", hint="check its mode"))
        else:
            found.skip(error.strerror or str(error), path)
        return
    _file(path, real, status.st_size, looks(head, tail), found, named=named)


def _irregular(path: str, mode: int, found: _Found, *, named: bool) -> None:
    what = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    if named:
        hint = "feed a pipe in as standard input: topodiag logs - < PIPE" if stat.S_ISFIFO(mode) else ""
        found.refused.append(InputError(path, f"is {what}, not a file", hint=hint))
    else:
        found.skip(what, path)


def _ends(path: str, size: int) -> tuple[bytes, bytes]:
    with open(path, "rb") as stream:
        head = stream.read(HEAD_BYTES)
        if size <= 2 * HEAD_BYTES:
            return head + stream.read(HEAD_BYTES), b""
        stream.seek(size - HEAD_BYTES)
        return head, stream.read(HEAD_BYTES)


def _file(path: str, real: str, size: int, seen: Looks, found: _Found, *, named: bool) -> None:
    if seen.kind == "log":
        found.sources[real] = Source(path, size, seen.coding, named)
    elif seen.kind == "flight":
        found.flight[real] = path
    elif seen.kind == "parquet" and (named or path.endswith(".parquet")):
        found.saved[real] = path
    elif named:
        hint = f"topodiag {seen.command} {path}" if seen.command else ""
        found.refused.append(InputError(path, f"is no NCCL log: it is {seen.what}", hint=hint))
    else:
        found.skip(seen.what, path)


def make_tasks(plan: Plan, chunk: int = CHUNK_BYTES) -> Iterator[tuple[Span, ...]]:
    """Spans for one call of the extractor's worker each: about `chunk` raw bytes, of one large or many small files."""
    packed: list[Span] = []
    filled = 0
    for number, source in enumerate(plan.sources):
        if source.size > chunk and not source.coding:
            for start in range(0, source.size, chunk):
                yield (Span(number, source.path, start, min(start + chunk, source.size)),)
            continue
        if packed and (filled + source.size > chunk or len(packed) == MAX_SPANS):
            yield tuple(packed)
            packed, filled = [], 0
        packed.append(Span(number, source.path, 0, source.size, source.coding))
        # A packed text is some ten times larger than its archive.
        filled += source.size * 10 if source.coding else source.size
    if packed:
        yield tuple(packed)


def complaint(path: str, coding: tuple[str, ...] = (), head: bytes | None = None) -> InputError:
    """Why a file without any NCCL record is not the right one, in one line."""
    if head is None:
        try:
            with open(path, "rb") as stream:
                head = stream.read(HEAD_BYTES)
        except OSError:
            head = b""
    what, command = wrong_file(head, coding)
    if command:
        return InputError(path, f"is no NCCL log: it looks like {what}", hint=f"topodiag {command} {path} reads it")
    if what == "blank":
        return InputError(path, "holds nothing but blanks", hint="did the job run with NCCL_DEBUG=INFO?")
    if what:
        return InputError(path, f"holds no NCCL record: it looks like {what}", hint="give the log of the job")
    return InputError(path, "holds no NCCL record", hint="run the job with NCCL_DEBUG=INFO and give its output")


def complaint_of_several(first: InputError, more: int) -> InputError:
    """The same of several files, by the first of them."""
    what = first.message.partition("it looks like ")[2]
    return InputError(
        f"{first.path} and {more} more",
        "hold no NCCL record" + (f": the first looks like {what}" if what else ""),
        hint=first.hint if what else "run the job with NCCL_DEBUG=INFO and give its output",
    )
