"""Files that appear whole or not at all, and a refusal before the work where they cannot."""

from __future__ import annotations

import fcntl
import glob
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from topodiag.model.errors import InputError


def check_writable(path: str) -> None:
    """Fail now rather than after the work: the folder must take a new file, and the file be no folder. A folder that is
    missing is made."""
    place = Path(path)
    if not path:
        raise InputError("''", "names no file to write to")
    if os.path.isdir(path):
        raise InputError(path, "is a folder, not a file to write to", hint="name a file in it")
    _check_place(path, place)


def check_apart(path: str, inputs: Iterable[str]) -> None:
    """Refuse to write over what is read: the same file by any name or link, one in a folder that is given or that a
    link in it leads to, and the file that standard input (`-`) comes from. `inputs` are files, folders and patterns;
    what does not exist (`fixture:NAME`) is no file to lose. Raises InputError."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return  # what cannot be looked at is judged where it is opened
    if not stat.S_ISREG(status.st_mode):
        return
    own = status.st_dev, status.st_ino
    for given in inputs:
        if given == "-":
            known = "standard input" if _identity(0) == own else ""
        else:
            paths = (given,) if os.path.lexists(given) else glob.iglob(given, recursive=True)
            known = next((part for path in paths for part in _part(own, path)), "")
        if known:
            raise InputError(path, f"would be written over: it is read as {known}", hint="name another file")


def check_distinct(paths: Iterable[str]) -> None:
    """Refuse two outputs in one file, by any name or link: the later one would be all that is left. Raises
    InputError."""
    seen: set[object] = set()
    for path in paths:
        if os.path.exists(path) and not os.path.isfile(path):
            continue  # a device or a pipe takes both
        key = _identity(path) or os.path.realpath(path)
        if key in seen:
            raise InputError(path, "is named for two outputs", hint="name a file for each")
        seen.add(key)


def _identity(file: str | int) -> tuple[int, int] | None:
    """Device and inode; None for what is not there."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _part(own: tuple[int, int], given: str) -> Iterator[str]:
    """The names in a path to read, itself or what lies below it, that are the file with this identity."""
    if _identity(given) == own:
        yield given
    if not os.path.isdir(given):
        return
    for folder, _, names in os.walk(given):
        yield from (place for name in names if _identity(place := os.path.join(folder, name)) == own)


def check_new_folder(path: str) -> None:
    """The same of a folder to be filled: what is in it already would mix with what is to come."""
    place = Path(path)
    if os.path.lexists(path) and not os.path.isdir(path):
        raise InputError(
            path,
            "is a file, or a link to nothing, not a folder to write to",
            hint="for a bundle in one file: NAME.tar.gz",
        )
    _check_place(path, place)
    with suppress(OSError):  # a folder that one may write to and not list
        if place.is_dir() and any(place.iterdir()):
            raise InputError(path, "is a folder with something in it", hint="name a new or an empty folder")


def _check_place(path: str, place: Path) -> None:
    if "\0" in path:
        raise InputError(path, "cannot be written: a name holds no zero byte", hint="name a place that takes new files")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"cannot be written: its folder cannot be made: {error.strerror or error}"
        raise InputError(path, why, hint="name a place that takes new files") from None
    if not os.access(place if os.path.exists(place) else place.parent, os.W_OK):
        raise InputError(path, "cannot be written: permission denied", hint="name a place that you may write to")
    if os.path.exists(place) and not os.path.isdir(place) and not os.path.isfile(place):
        return  # a device or a pipe: written where it is
    # Rights are not all: a name may be too long, root may write to /proc, and a file system may be full or read-only.
    trial = _temporary_name(place / "new" if os.path.isdir(place) else place)
    try:
        with suppress(FileNotFoundError):
            os.stat(place)  # a link that leads to itself
        _new_file(trial).close()
    except OSError as error:
        raise InputError(
            path, f"cannot be written: {error.strerror or error}", hint="name a place that takes new files"
        ) from None
    finally:
        with suppress(OSError):
            trial.unlink(missing_ok=True)


def _temporary_name(place: Path) -> Path:
    """A new name in the same folder that nobody can guess, short enough for any name beside it."""
    return place.with_name(f".{place.name[:80]}.{os.urandom(8).hex()}.tmp")


def _new_file(place: Path) -> BinaryIO:
    """A file of one's own that was not there before. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(place, flags, 0o600), "wb")


def _mode_of(place: Path, private: bool) -> int:
    """The mode of a file that is there, else one's own alone or what the user's mask leaves."""
    with suppress(OSError):
        return stat.S_IMODE(place.stat().st_mode) & 0o777
    if private:
        return 0o600
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def replacing(path: str, *, private: bool = False) -> Iterator[BinaryIO]:
    """The stream to write to. A regular file is written beside its place and then moved there, as the textfile
    collector of node_exporter asks; a device or a pipe is written directly, a link is written through. `private`: a new
    file is for its owner alone. Raises InputError."""
    place = Path(path)
    try:
        if place.is_symlink() and (place.is_file() or not place.exists()):  # a link to a pipe has no name of its own
            place = place.resolve()
        if place.exists() and not place.is_file():
            with place.open("wb") as stream:
                yield stream
            return
        fresh = _temporary_name(place)
        try:
            with _new_file(fresh) as stream:
                yield stream
            fresh.chmod(_mode_of(place, private))
            fresh.replace(place)
        finally:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}", hint="nothing was kept") from None


@contextmanager
def new_folder(path: str) -> Iterator[str]:
    """A folder to fill, for its owner alone, which appears under its name when all is written, and not at all
    otherwise. Raises InputError."""
    place = Path(path)
    fresh = _temporary_name(place)
    try:
        fresh.mkdir(mode=0o700)
        yield str(fresh)
        if place.is_dir():
            place.rmdir()  # an empty one: check_new_folder has seen to it
        fresh.rename(place)
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}", hint="nothing was kept") from None
    finally:
        _remove(fresh)


_SCRATCH, _HELD = "topodiag-", ".held"


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder below TMPDIR for the time of some work, for its owner alone. What runs of this user left that were
    killed is removed first. Raises OSError."""
    import tempfile  # noqa: PLC0415 - few runs write much

    for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*/{_HELD}"):
        with suppress(OSError):
            if left.lstat().st_uid == os.getuid() and left.parent.lstat().st_uid == os.getuid():
                _remove_unheld(left)
    folder = tempfile.mkdtemp(prefix=_SCRATCH)
    try:
        with _new_file(Path(folder, _HELD)) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield folder
    finally:
        _remove(folder)


def _remove_unheld(left: Path) -> None:
    """Remove the folder of a lock that no process holds: pids would say nothing of another container's. Raises
    OSError."""
    handle = os.open(left, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(left.parent)
    finally:
        os.close(handle)


def _remove(folder: str | Path) -> None:
    import shutil  # noqa: PLC0415 - few runs make a folder

    shutil.rmtree(folder, ignore_errors=True)
