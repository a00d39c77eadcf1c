"""What steers a terminal, taken out of foreign text: one place for all readers."""

from __future__ import annotations

from typing import AnyStr

from topodiag.lazy import regex

_SEQUENCE = r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[()][A-Z0-9])|\x00+"
"""Colours and movements, titles of windows, sets of characters; NULs, of which a hole of copytruncate has millions."""
_IN_TEXT, _IN_BYTES = regex(_SEQUENCE), regex(_SEQUENCE.encode())


def without_colours(text: AnyStr) -> AnyStr:
    """The text without sequences of terminals and without NULs. Its lines stay."""
    if isinstance(text, bytes):
        return _IN_BYTES.sub(b"", text) if b"\x1b" in text or b"\0" in text else text
    return _IN_TEXT.sub("", text) if "\x1b" in text or "\0" in text else text
