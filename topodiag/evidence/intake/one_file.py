"""One file of text as a blob, or standard input: larger than any capture of one node, and bounded still."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from topodiag.evidence.intake.collected import missing
from topodiag.evidence.interface import Blob
from topodiag.evidence.nccl_log.input.streams import Reading, packer_of, text_of
from topodiag.model.errors import InputError
from topodiag.words.units import spell_bytes

HEAD_BYTES = 1 << 16
"""How much of a file's beginning and end is looked at before anything is read."""
MAX_FILE_BYTES = 64 * 2**20
MAX_TOTAL_BYTES = 256 * 2**20
"""Unpacked size of one bundle: a 72-GPU capture is under 16 MiB, so this is generous."""
MAX_BYTES = 512 << 20
"""`kubectl get nodes -o json` writes about 15 KB per node: 250 MB for 16,000 nodes."""
_EMPTIED = frozenset({"kmsg", "trace_pipe", "trace_pipe_raw"})
"""Files of the kernel from which a line that was read is gone, for every other reader too. They have no end."""
COPY_IT = "copy what is to be read into a file"
_ZIP = b"PK\x03\x04"


def why_emptied(path: str) -> str:
    """Why a regular file that says it has no size, as the kernel's do, is not read; "" for any other. Raises
    OSError."""
    is_emptied = os.stat(path).st_size == 0 and os.path.basename(os.path.realpath(path)) in _EMPTIED
    return "is emptied by being read" if is_emptied else ""


def is_packed(data: bytes) -> bool:
    """Whether the first bytes are those of an archive, or of anything packed."""
    return bool(packer_of(data)) or data.startswith(_ZIP) or data[257:262] == b"ustar"


def open_blob(path: str, stdin: BinaryIO | None = None) -> Blob:
    """The content of a file, unpacked where it is packed. Raises InputError for what cannot be read."""
    if path == "-":
        name, data = "<stdin>", (stdin or io.BytesIO()).read(MAX_BYTES + 1)
    else:
        name, data = path, read_small(path, MAX_BYTES)
    packer, reading = packer_of(data), Reading()
    if packer:
        data = text_within(name, text_of(io.BytesIO(data), (packer,), reading), MAX_BYTES)
    if reading.notes:
        raise InputError(name, f"is a broken {packer} file", hint="was the copy interrupted?")
    if len(data) > MAX_BYTES:
        raise too_large(name, MAX_BYTES)
    if not data or data.isspace():
        raise InputError(name, "is empty")
    return Blob(name, data)


def text_within(name: str, blocks: Iterator[bytes], most: int) -> bytes:
    """All blocks of a text; one alone is not copied. Raises InputError for more than `most` bytes."""
    text = io.BytesIO(next(blocks, b""))
    text.seek(0, io.SEEK_END)
    while text.tell() <= most:
        block = next(blocks, None)
        if block is None:
            return text.getvalue()  # the buffer itself: a copy would take as much memory again
        text.write(block)
    raise too_large(name, most)


def too_large(name: str, most: int) -> InputError:
    return InputError(name, f"is larger than {spell_bytes(most)}", hint="is it the right file?")


def read_small(path: str, most: int) -> bytes:
    """The content of a plain file of at most `most` bytes. Raises InputError."""
    if not path:
        raise InputError("''", "names no file")
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(path, "is a folder", hint="give a file")
        if not stat.S_ISREG(mode):
            raise InputError(path, "is no plain file", hint="a pipe goes in as -")
        if why := why_emptied(path):
            raise InputError(path, why, hint=COPY_IT)
        with open(path, "rb") as stream:
            data = stream.read(most + 1)
    except FileNotFoundError:
        raise missing(path) from None
    except PermissionError:
        raise InputError(path, "permission denied", hint="check its mode and owner") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(path.replace("\0", "?"), f"is not a path: {error}") from None
    if len(data) > most:
        raise too_large(path, most)
    return data


class Blocks(io.RawIOBase):
    """A stream of its first bytes, and of the blocks that `following` gives for at most so many bytes."""

    def __init__(self, first: bytes, following: Callable[[int], bytes]) -> None:
        super().__init__()
        self._block, self._following = first, following

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = len(buffer)
        whole = self._block or self._following(room)
        block, self._block = whole[:room], whole[room:]
        buffer[: len(block)] = block
        return len(block)


class Rewound(Blocks):
    """A stream with its first bytes put back. It closes the rest where that is its own."""

    def __init__(self, head: bytes, rest: Any, *, owned: bool = False) -> None:
        # A pipe gives what is there; waiting for a full block would hold back what it already said.
        super().__init__(head, getattr(rest, "read1", rest.read))
        self._rest, self._owned = rest, owned

    def close(self) -> None:
        if self._owned:
            self._rest.close()
        super().close()
