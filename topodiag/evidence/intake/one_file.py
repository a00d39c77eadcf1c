"""One file of text as a blob, or standard input: larger than any capture of one node, and bounded still."""

from __future__ import annotations

import gzip
import io
import os
import stat
import time
import zlib
from pathlib import Path
from typing import BinaryIO

from topodiag.evidence.interface import Blob
from topodiag.model.errors import InputError
from topodiag.words.units import spell_bytes

MAX_BYTES = 512 << 20
"""`kubectl get nodes -o json` writes about 15 KB per node: 250 MB for 16,000 nodes."""
_EMPTIED = frozenset({"kmsg", "trace_pipe"})
"""Files of the kernel from which a line that was read is gone, for every other reader too."""
_TRIAL_S, _TRIAL_BYTES, _BLOCK = 5.0, 8 << 20, 1 << 16
"""What a file without a size has to end in."""
COPY_IT = "copy what is to be read into a file"


def why_endless(path: str) -> str:
    """Why a regular file that says it has no size, as the kernel's do, cannot be read: that empties it, or it has no
    end. "" for any other. Raises OSError."""
    if os.stat(path).st_size:
        return ""
    if os.path.basename(os.path.realpath(path)) in _EMPTIED:
        return "is emptied by being read"
    end, left = time.monotonic() + _TRIAL_S, _TRIAL_BYTES
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        while left > 0 and time.monotonic() < end:
            block = os.read(handle, _BLOCK)
            if not block:
                return ""
            left -= len(block)
    except BlockingIOError:
        pass
    finally:
        os.close(handle)
    return "has no end"


def open_blob(path: str, stdin: BinaryIO | None = None) -> Blob:
    """The content of a file, unpacked if it is gzip. Raises InputError for what cannot be read."""
    if path == "-":
        name, data = "<stdin>", (stdin or io.BytesIO()).read(MAX_BYTES + 1)
    else:
        name, data = path, _read(path)
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                data = stream.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error):
            raise InputError(name, "is a broken gzip file", hint="was the copy interrupted?") from None
    if len(data) > MAX_BYTES:
        raise InputError(name, f"is larger than {spell_bytes(MAX_BYTES)}", hint="is it the right file?")
    if not data or data.isspace():
        raise InputError(name, "is empty")
    return Blob(name, data)


def read_small(path: str, most: int) -> bytes:
    """The content of a plain file of at most `most` bytes. Raises InputError."""
    data = _read(path, most)
    if len(data) > most:
        raise InputError(path, f"is larger than {most / 1e6:.0f} MB", hint="is it the right file?")
    return data


def _read(path: str, most: int = MAX_BYTES) -> bytes:
    if not path:
        raise InputError("''", "names no file")
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(path, "is a folder", hint="give a file")
        if not stat.S_ISREG(mode):
            raise InputError(path, "is no plain file", hint="a pipe goes in as -")
        if why := why_endless(path):
            raise InputError(path, why, hint=COPY_IT)
        with open(path, "rb") as stream:
            return stream.read(most + 1)
    except FileNotFoundError:
        raise InputError(path, "no such file") from None
    except PermissionError:
        raise InputError(path, "permission denied", hint="check its mode and owner") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(path.replace("\0", "?"), f"is not a path: {error}") from None
