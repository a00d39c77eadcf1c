"""The text of a log as a bounded stream, whatever it is packed in: plain, gzip, Zstandard, xz, bzip2, UTF-16, JSON.

Formats: RFC 1952 (gzip, several members), RFC 8878 (Zstandard, several frames and skippable ones), xz and bzip2 with
several streams (the standard library reads them). A damaged or cut archive gives what was readable before the damage,
and a note. Nothing here knows what an NCCL record is.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import field
from typing import Any, BinaryIO

from topodiag.lazy import dataclass

_BLOCK_OF_BZIP2, _END_OF_BZIP2 = b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"
_MAGIC = {
    "gzip": (b"\x1f\x8b",),
    "zstd": (b"\x28\xb5\x2f\xfd", *(b"%c\x2a\x4d\x18" % kind for kind in range(0x50, 0x60))),
    "xz": (b"\xfd7zXZ\x00",),
    "bzip2": tuple(b"BZh%d%b" % (n, block) for n in range(1, 10) for block in (_BLOCK_OF_BZIP2, _END_OF_BZIP2)),
}
"""How a file of each packer begins; that of pzstd with a frame to be skipped."""

READ_BYTES = 1 << 20
"""How much of a file is read at a time."""
MAX_LINE_BYTES = 1 << 20
"""A longer line is cut: NCCL's own are at most a few KiB, and what has no line ends must not fill the memory."""
_OUT_BYTES = 1 << 20
_STEP = 1 << 11
"""Compressed bytes fed at once. A block of Zstandard of 128 KiB can be 4 bytes long, so this bounds one answer to
64 MiB; those of gzip are 2 MiB at most."""
_UNBOUNDED = frozenset({"xz", "bzip2"})
"""Layers whose answer to so little may be any size, and is asked for in parts."""
_MAX_WINDOW = 1 << 27
"""128 MiB, what `zstd --long` makes at most by default; more is refused instead of allocated. `xz -9` needs 65 MiB."""


@dataclass(slots=True)
class Reading:
    """What is known of one input after it was streamed: raw bytes consumed, and what was wrong with it."""

    raw: int = 0
    notes: list[str] = field(default_factory=list)
    on_raw: Callable[[int], None] | None = None

    def took(self, count: int) -> None:
        self.raw += count
        if self.on_raw is not None:
            self.on_raw(count)


def packer_of(head: bytes) -> str:
    """The outermost layer that packs a file which starts like this, "" for none."""
    return next((packer for packer, begins in _MAGIC.items() if head.startswith(begins)), "")


def text_of(stream: BinaryIO, coding: tuple[str, ...], reading: Reading, most: int = READ_BYTES) -> Iterator[bytes]:
    """Blocks of text from a raw stream. `coding` names the layers from outside in: `gzip`, `zstd`, `utf-16-le`...
    `most` bytes are read at a time."""
    blocks = _raw(stream, reading, most)
    for layer in coding:
        if layer in _MAGIC:
            blocks = _unpacked(blocks, layer, reading)
        elif layer.startswith("utf-"):
            blocks = _decode(blocks, layer)
        else:
            from topodiag.evidence.nccl_log.input.wrapped_lines import undressed  # noqa: PLC0415 - knows records of NCCL

            blocks = undressed(blocks, layer)
    return blocks


def _raw(stream: BinaryIO, reading: Reading, most: int) -> Iterator[bytes]:
    while True:
        try:
            # A pipe gives what is there; waiting for a full block would hold back what it already said.
            block = stream.read1(most) if hasattr(stream, "read1") else stream.read(most)
        except OSError as error:
            reading.notes.append(f"could not be read to its end: {error.strerror or error}")
            return
        if not block:
            return
        reading.took(len(block))
        yield block


def _opened(layer: str) -> Any:
    """What unpacks one member, frame or stream of a layer."""
    if layer == "gzip":
        return zlib.decompressobj(wbits=31)
    if layer == "zstd":
        import zstandard  # noqa: PLC0415 - only for .zst

        return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
    import bz2  # noqa: PLC0415 - only for .xz and .bz2
    import lzma  # noqa: PLC0415

    return lzma.LZMADecompressor(memlimit=_MAX_WINDOW) if layer == "xz" else bz2.BZ2Decompressor()


def _unpacked(blocks: Iterator[bytes], layer: str, reading: Reading) -> Iterator[bytes]:
    """Members, frames or streams one after the other, with padding of zeros between them. Fed in small steps, so that
    damage costs no more than the step in which it is met."""
    unpack, begun, whole = _opened(layer), False, 0
    most = (_OUT_BYTES,) if layer in _UNBOUNDED else ()
    for block in blocks:
        for at in range(0, len(block), _STEP):
            data = block[at : at + _STEP]
            while data or not getattr(unpack, "needs_input", True):
                if not begun:
                    data = data.lstrip(b"\0") if whole else data  # tapes and tools pad archives with zeros
                    if not data:
                        break
                    begun = True
                try:
                    text = unpack.decompress(data, *most)
                except Exception as error:  # noqa: BLE001 - each library raises errors of its own
                    what = f"something that is not {layer} follows the archive" if whole else "the archive is damaged"
                    reading.notes.append(f"{what} ({str(error)[:120]}): what was readable counts")
                    return
                for start in range(0, len(text), _OUT_BYTES):
                    yield text[start : start + _OUT_BYTES]
                data = b""
                if unpack.eof:
                    data = unpack.unused_data
                    unpack, begun = _opened(layer), False
                    whole += 1
    if begun or not whole:
        reading.notes.append("the archive is cut short: what was readable counts")


def _decode(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """UTF-16, as PowerShell's redirection and some editors write, to UTF-8."""
    mark = "\ufeff"
    for text in codecs.iterdecode(blocks, name, errors="replace"):
        yield text.removeprefix(mark).encode("utf-8", "replace")
        mark = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Raw bytes [start, end) of source number `file`; the whole of a packed file. `summed`: the sha256 of the
    file is taken where its beginning is read."""

    file: int
    path: str
    start: int
    end: int
    coding: tuple[str, ...] = ()
    summed: bool = True


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Consecutive text of one file from `base` on. It ends at a line end, at the end of the file, or, `cut`, where a
    line longer than MAX_LINE_BYTES is cut and goes on in the next piece."""

    base: int
    data: bytes
    cut: bool = False


def pieces(blocks: Iterator[bytes], size: int, base: int = 0, stop: int | None = None) -> Iterator[TextPiece]:
    """Whole lines in pieces of about `size` bytes; those lines that begin before the offset `stop`.

    Where a long line is cut depends on that line alone, so any `size` gives the extractor the same lines.
    """
    held: list[bytes] = []
    length = 0
    ended = False
    while not ended:
        block = next(blocks, None)
        ended = block is None
        if block:
            held.append(block)
            length += len(block)
        reached = stop is not None and base + length >= stop
        if length < size and not ended and not reached:
            continue
        text = b"".join(held)
        held = [text]
        at = length if ended else text.rfind(b"\n") + 1
        if stop is not None and reached:
            # The line that holds the byte before `stop` is the last one; it goes with what stands before it.
            last = text.find(b"\n", max(stop - 1 - base, 0))
            if last >= 0:
                at, ended = last + 1, True
            elif not ended and length < max(size, MAX_LINE_BYTES) + 2 * READ_BYTES:
                continue
        if not at and length < max(size, MAX_LINE_BYTES) + 2 * READ_BYTES:
            continue  # a line longer than `size`
        cut = yield from _cut_long_lines(text[: at or length], base, whole=bool(at), ended=ended)
        held = [text[cut:]]
        length -= cut
        base += cut


def _cut_long_lines(data: bytes, base: int, *, whole: bool, ended: bool) -> Generator[TextPiece, None, int]:
    """Pieces of `data`; returns how many bytes were used up. Not `whole`: it is one line whose end is not seen yet."""
    begun = at = 0
    while len(data) - at > MAX_LINE_BYTES:
        line_end = data.rfind(b"\n", at, at + MAX_LINE_BYTES)
        if line_end >= 0:
            at = line_end + 1
            continue
        # Progress bars redraw with \r and end no line: a record may follow the last one.
        redrawn = data.rfind(b"\r", at, at + MAX_LINE_BYTES)
        cut = redrawn + 1 if redrawn > at else at + MAX_LINE_BYTES
        yield TextPiece(base + begun, data[begun:cut], cut=True)
        begun = at = cut
    if not whole:
        return begun
    if begun < len(data):
        yield TextPiece(base + begun, data[begun:], cut=not ended and not data.endswith(b"\n"))
    return len(data)
