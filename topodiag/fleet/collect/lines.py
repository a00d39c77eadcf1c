"""The lines of one node put together again: the bundle on disk as it comes, and what became of the node.

The other end is not trusted: sizes are bounded, pieces that are no base64 end it, and nothing that it says becomes part
of a path unless it looks like what it should be.
"""

from __future__ import annotations

import binascii
import hashlib
import os
import re
import secrets
import time
from dataclasses import field
from pathlib import Path

from topodiag.lazy import dataclass, regex
from topodiag.words.units import spell_bytes

MAX_BUNDLE = 64 << 20
"""Bytes of a bundle: of 72 GPUs it has under 16 MiB."""
MAX_NOISE = 1 << 20
"""Bytes of other lines: a banner has hundreds."""
BUFFER = 16 << 10
"""Bytes that wait in memory: one stream may carry ten thousand nodes, more than files can be open."""
MAX_COMPLAINT = 2000
_HELLO = regex(r"(\S{1,200}) ([0-9a-f-]{36}|-) (\S{1,40})", re.ASCII)
_END = regex(r"(\d{1,9}) ([0-9a-f]{64}) ([0-9a-f-]{36}|-) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|-) (.{1,200})", re.ASCII)
_ITEM = regex(r"[\w.-]{1,60}", re.ASCII)


@dataclass(slots=True)
class Receipt:
    """What was heard of one node so far. `place` takes the bundle; `failure` is the node's own word why there is none;
    `broken` why what came is no bundle."""

    place: Path
    began: float = field(default_factory=time.monotonic)
    host: str = ""
    boot_id: str = ""
    time: str = ""
    sha256: str = ""
    size: int = 0
    hello: bool = False
    whole: bool = False
    failure: str = ""
    broken: str = ""
    waited_for: tuple[str, ...] = ()
    complaints: str = ""
    _noise: int = 0
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    _waiting: list[bytes] = field(default_factory=list)
    _bytes: int = 0

    @property
    def over(self) -> bool:
        return self.whole or bool(self.failure or self.broken)

    def take(self, kind: bytes, text: bytes) -> bool:
        """One line behind its mark and node. False: the rest of the stream does not matter."""
        if self.over:
            return False
        match kind:
            case b"data":
                self._data(text)
            case b"hello":
                self._hello(text.decode("utf-8", "replace"))
            case b"busy":
                self.waited_for = tuple(_ITEM.findall(text.decode("utf-8", "replace"))[:20]) if text != b"-" else ()
            case b"fail":
                self.failure = plain(text) or "it did not say why"
            case b"end":
                self._end(text.decode("utf-8", "replace"))
        return not self.over

    def noise(self, line: bytes) -> bool:
        """A line of somebody else. False: too many of them."""
        self._noise += len(line) + 1
        if self._noise > MAX_NOISE:
            self.broken = self.broken or f"more than {spell_bytes(MAX_NOISE)} of other output"
        return not self.over

    def complain(self, line: bytes) -> None:
        """A line of standard error: the last ones say why a node is not reached."""
        self.complaints = (self.complaints + "\n" + plain(line))[-MAX_COMPLAINT:]

    def close(self) -> None:
        """Write what waits; a bundle that is not whole is removed. Raises OSError."""
        self._flush()
        if not self.whole:
            self.place.unlink(missing_ok=True)

    def _hello(self, text: str) -> None:
        match = _HELLO.fullmatch(text)
        self.hello = True
        if match:
            self.host, self.boot_id = match[1], match[2].strip("-")

    def _data(self, text: bytes) -> None:
        try:
            piece = binascii.a2b_base64(text, strict_mode=True)
        except (binascii.Error, ValueError):
            self.broken = f"a line that is no base64, after {self.size} bytes"
            return
        self.size += len(piece)
        if self.size > MAX_BUNDLE:
            self.broken = f"more than {spell_bytes(MAX_BUNDLE)}"
            return
        self._digest.update(piece)
        self._waiting.append(piece)
        self._bytes += len(piece)
        if self._bytes >= BUFFER:
            self._flush()

    def _end(self, text: str) -> None:
        match = _END.fullmatch(text)
        if match is None:
            self.broken = "its last line is no end of a bundle"
            return
        if int(match[1]) != self.size or match[2] != self._digest.hexdigest():
            self.broken = (
                f"{self.size} of {match[1]} bytes came" if int(match[1]) != self.size else "its SHA-256 differs"
            )
            return
        self.sha256, self.boot_id, self.time = match[2], match[3].strip("-"), match[4].strip("-")
        self.host = match[5]
        self._flush()
        self.whole = True

    def _flush(self) -> None:
        if self._waiting and not self.broken:
            with open(self.place, "ab", opener=private) as stream:
                stream.write(b"".join(self._waiting))
        self._waiting.clear()
        self._bytes = 0


def plain(line: bytes) -> str:
    """A line of a foreign program as one harmless line of text."""
    text = line[:1000].decode("utf-8", "replace")
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def part_of(folder: Path, number: int) -> Path:
    """Where a bundle grows until it is whole: hidden, so that no reader takes it."""
    return folder / f".{os.getpid()}-{number}-{secrets.token_hex(8)}.part"


def private(path: str, flags: int) -> int:
    """The `opener` of a file for its owner alone, which follows no link. Raises OSError."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
