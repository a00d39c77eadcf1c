"""What topodiag knows and says that is no code: the data files of the package."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from topodiag.lazy import regex

_PACKAGE = Path(__file__).parents[1]
BUILT = Path(__file__).with_name("own_data.json")
"""All TOML files of the package as JSON, which is read thirty times as fast, with the checksum of the TOML.
`tools/build_own_data.py` writes it."""


@cache
def own_data(name: str) -> dict[str, Any]:
    """The tables of `topodiag/NAME.toml`, such as `verdict/rules`; the head of the file says what its keys mean."""
    text = own_text(f"{name}.toml")
    checksum, built = _built().get(name, (-1, msgspec.Raw()))
    data: dict[str, Any] = msgspec.json.decode(built) if checksum == crc32(text.encode()) else msgspec.toml.decode(text)
    return data


def patterns(name: str, table: str, flags: int | re.RegexFlag = 0) -> dict[str, re.Pattern[str]]:
    """The patterns of one of these tables by their names, each in one piece or in several. `<<part>>` stands for the
    pattern `part` above; one whose name begins with `_` is such a part alone."""
    return {key: regex(text, flags) for key, text in _spelt_out(name, table)}


def byte_patterns(name: str, table: str, flags: int | re.RegexFlag = 0) -> dict[str, re.Pattern[bytes]]:
    """As `patterns`, for bytes."""
    return {key: regex(text.encode(), flags) for key, text in _spelt_out(name, table)}


def _spelt_out(name: str, table: str) -> list[tuple[str, str]]:
    texts: dict[str, str] = {}
    for key, pieces in own_data(name)[table].items():
        text = "".join(pieces)
        for part in texts if "<<" in text else ():
            text = text.replace(f"<<{part}>>", texts[part])
        texts[key] = text
    return [(key, text) for key, text in texts.items() if key[0] != "_"]


def own_text(name: str) -> str:
    """The text of the package's file `topodiag/NAME`, such as `draw/draw.css`."""
    return (_PACKAGE / name).read_text(encoding="utf-8")


@cache
def _built() -> dict[str, tuple[int, Any]]:
    return msgspec.json.decode(BUILT.read_bytes(), type=dict[str, tuple[int, msgspec.Raw]])
