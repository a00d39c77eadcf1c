"""Archives as the collector writes them, read in one pass: plain files with short names, whole, and nothing else.

The standard library's reader makes an object for each member and takes ten times as long, half of the time of reading a
bundle whose siblings have been read. It has the word on everything that is not as plain as this.
"""

from __future__ import annotations

import zlib

_BLOCK = 512
_FILE, _OLD_FILE, _FOLDER = b"0", b"\0", b"5"
_NOTHING = bytes(_BLOCK)


def plain_members(data: bytes, most_bytes: int, most_members: int) -> dict[str, bytes] | None:
    """The files of a tar archive, packed by gzip or not, by name; None for any other data, and for an archive that is
    damaged, unpacks to more than `most_bytes`, or holds what the collector does not write. Never raises."""
    if data[:2] == b"\x1f\x8b":
        unpacked = _unpacked(data, most_bytes)
        if unpacked is None:
            return None
        data = unpacked
    try:
        return _members(data, most_members) if data[257:262] == b"ustar" and len(data) <= most_bytes else None
    except ValueError:
        return None


def _unpacked(data: bytes, most: int) -> bytes | None:
    """One stream of gzip that is whole."""
    stream = zlib.decompressobj(wbits=31)
    try:
        unpacked = stream.decompress(data, most)
    except zlib.error:
        return None
    return unpacked if stream.eof and not stream.unused_data else None


def _members(data: bytes, most: int) -> dict[str, bytes] | None:
    files: dict[str, bytes] = {}
    at = 0
    while at + _BLOCK <= len(data):
        header = data[at : at + _BLOCK]
        at += _BLOCK
        if header == _NOTHING:
            return files
        size, kind = _number(header[124:136]), header[156:157]
        if size is None or _number(header[148:156]) != sum(header) - sum(header[148:156]) + 8 * 0x20:
            return None
        name = _name(header)
        if name is None or len(files) >= most or at + size > len(data):
            return None
        if kind in (_FILE, _OLD_FILE) and not name.endswith("/"):
            files[name] = data[at : at + size]
        elif kind != _FOLDER or size:
            return None
        at += -(-size // _BLOCK) * _BLOCK
    return None


def _number(field: bytes) -> int | None:
    """An octal number; None for one that is written otherwise."""
    digits = field.rstrip(b" \0")
    return int(digits, 8) if digits.isdigit() else None


def _name(header: bytes) -> str | None:
    """The path of a member; None for one that is not below the archive's top."""
    name = header[:100].partition(b"\0")[0].decode()
    prefix = header[345:500].partition(b"\0")[0].decode()
    path = f"{prefix}/{name}" if prefix else name
    return None if path.startswith("/") or ".." in path.split("/") or not path else path
