"""Files that appear whole or not at all, and a refusal before the work where they cannot."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from topodiag.model.errors import InputError


def check_writable(path: str) -> None:
    """Fail now rather than after the work: the folder must take a new file, and the file be no folder. A folder that is
    missing is made."""
    place = Path(path)
    if place.is_dir():
        raise InputError(path, "is a folder, not a file to write to", hint="name a file in it")
    _check_place(path, place)


def check_apart(path: str, inputs: Iterable[str]) -> None:
    """Refuse to write over what is read: the same file by any name or link, or a file in a folder that is given.
    `inputs` are files, folders and patterns; what does not exist (`-`, `fixture:NAME`) is no file to lose. Raises
    InputError."""
    for given in inputs:
        for each in (given,) if os.path.lexists(given) else glob.iglob(given, recursive=True):
            if _is_part(path, each):
                raise InputError(path, f"would be written over: it is read as {each}", hint="name another file")


def _is_part(path: str, given: str) -> bool:
    """Whether a file that is there is a given one, or lies in a given folder."""
    place = Path(path)
    try:
        if not place.is_file():
            return False
        return place.samefile(given) or (os.path.isdir(given) and place.resolve().is_relative_to(Path(given).resolve()))
    except (OSError, ValueError):
        return False  # what cannot be looked at is judged where it is opened


def check_new_folder(path: str) -> None:
    """The same of a folder to be filled: what is in it already would mix with what is to come."""
    place = Path(path)
    if place.exists() and not place.is_dir():
        raise InputError(path, "is a file, not a folder to write to", hint="for a bundle in one file: NAME.tar.gz")
    _check_place(path, place)
    with suppress(OSError):  # a folder that one may write to and not list
        if place.is_dir() and any(place.iterdir()):
            raise InputError(path, "is a folder with something in it", hint="name a new or an empty folder")


def _check_place(path: str, place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"cannot be written: its folder cannot be made: {error.strerror or error}"
        raise InputError(path, why, hint="name a place that takes new files") from None
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise InputError(path, "cannot be written: permission denied", hint="name a place that you may write to")
    if place.exists() and not place.is_dir() and not place.is_file():
        return  # a device or a pipe: written where it is
    # Rights do not tell all: root may write to /proc, and a file system may be full or read-only.
    trial = _beside(place / "new" if place.is_dir() else place)
    try:
        trial.touch(exist_ok=False)
    except OSError as error:
        raise InputError(
            path, f"cannot be written: {error.strerror or error}", hint="name a place that takes new files"
        ) from None
    finally:
        with suppress(OSError):
            trial.unlink(missing_ok=True)


def _beside(place: Path) -> Path:
    return place.with_name(f".{place.name}.{os.getpid()}.tmp")


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """The stream to write to. A regular file is written beside its place and then moved there, as the textfile
    collector of node_exporter asks; a device or a pipe is written directly, a link is written through. Raises
    InputError."""
    place = Path(path)
    try:
        if place.is_symlink() and (place.is_file() or not place.exists()):  # a link to a pipe has no name of its own
            place = place.resolve()
        if place.exists() and not place.is_file():
            with place.open("wb") as stream:
                yield stream
            return
        fresh = _beside(place)
        try:
            with fresh.open("wb") as stream:
                yield stream
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
    """A folder to fill, which appears under its name when all is written, and not at all otherwise. Raises
    InputError."""
    place = Path(path)
    fresh = _beside(place)
    try:
        fresh.mkdir()
        yield str(fresh)
        if place.is_dir():
            place.rmdir()  # an empty one: check_new_folder has seen to it
        fresh.rename(place)
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}", hint="nothing was kept") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
