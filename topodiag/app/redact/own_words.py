"""The words of topodiag's own sentences: those of the texts in its code. `--redact` lets them pass, and no others.

They are taken from the code and not from a list, so that a sentence that is written anew needs nothing here. Docstrings
are left out: they may quote evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import topodiag_probes
from topodiag.lazy import regex
from topodiag_probes.harmless import RUN, is_harmless

_RUN = regex(RUN)
_DIGITS = regex(r"[0-9]+")
_RANGE = regex(r"([A-Za-z0-9_]{1,40}[0-9]{1,4})-[0-9]{1,4}")
_DATA = ("checks/**/*.toml", "hardware/*.toml", "verdict/*.toml", "words/*.toml")


@lru_cache(maxsize=1)
def _words() -> frozenset[str]:
    """All of them in small letters, with # for digits. Takes a second or two, where the code is compiled."""
    top = Path(__file__).parents[1]
    words: set[str] = set()
    for path in sorted([*top.rglob("*.py"), *Path(topodiag_probes.__file__).parent.rglob("*.py")]):
        code = SourceFileLoader("", str(path)).get_code("")
        for text in _texts(code) if code is not None else ():
            words.update(_shape(word) for word in _RUN.findall(text))
    for pattern in _DATA:
        for path in sorted(top.glob(pattern)):
            words.update(_shape(word) for word in _RUN.findall(path.read_text(encoding="utf-8")))
    return frozenset(words)


def _texts(code: CodeType) -> Iterator[str]:
    for place, constant in enumerate(code.co_consts):
        if isinstance(constant, CodeType):
            yield from _texts(constant)
        elif isinstance(constant, str) and place:  # the first one is the docstring, where there is one
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from (word for word in constant if isinstance(word, str))


def _shape(word: str) -> str:
    return _DIGITS.sub("#", word.lower())


@lru_cache(maxsize=65536)
def is_own(word: str) -> bool:
    """Whether a word, or words that signs join, stand in a text of ours (`GPU3`, `all-reduce`), or a range of one of
    them (`GPU0-7`, `mlx5_0-1`)."""
    range_ = _RANGE.fullmatch(word)
    if range_ is not None and is_harmless(range_[1]):
        return True
    return _shape(word) in _words()
