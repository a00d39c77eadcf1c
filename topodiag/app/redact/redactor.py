"""The collector's redactor for reports: it knows sentences of ours, and where in a line a host stands.

`--redact` lets the words of topodiag's own sentences pass, those of the texts in its code, and no others. They are
taken from the code and not from a list, so that a sentence that is written anew needs nothing here. Docstrings are left
out: they may quote evidence.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import topodiag_probes
from topodiag.lazy import regex
from topodiag.words.own_data import patterns
from topodiag_probes.harmless import RUN, is_harmless
from topodiag_probes.redact import Redactor

_LIKE = patterns("app/redact/words", "words")
# Python's own exceptions, such as KeyError.
_RAISED = frozenset(
    name for name, item in vars(builtins).items() if isinstance(item, type) and issubclass(item, BaseException)
)
# The folders of a bundle, in which the collector names the files.
_FOLDERS = ("json/", "trees/", "commands/", "files/", "text/")
# No domain ends so. A file that is called by harmless words is nobody's; by one with digits only where it is a rank's:
# gpu07.log may be called by its host.
_ENDINGS = frozenset({"csv", "err", "json", "log", "out", "tree", "txt", "xml"})


class OfReport(Redactor):
    """The collector's redactor, which also knows sentences of ours."""

    _ours = False

    def prose(self, text: str) -> str:
        """A sentence: as a quote, but for the words of our own texts."""
        if text in self._names.hosts:
            return self.tokens.host(text)
        self._ours = True
        try:
            return self.text(text)
        finally:
            self._ours = False

    def text(self, text: str) -> str:
        return super().text(_LIKE["at_host"].sub(self._known_host, text))

    def _known_host(self, match: re.Match[str]) -> str:
        """A host whose name is a word as well (`gpu1`), where only a host can stand."""
        return self.tokens.host(match[0]) if match[0] in self._names.hosts else match[0]

    def _run(self, match: re.Match[str]) -> str:
        run = match[0]
        stem, _, ending = run.rpartition(".")
        kept = run in _RAISED or (self._ours and is_own(run))
        if ending in _ENDINGS:
            bundled = match.string.endswith(_FOLDERS, 0, match.start()) and is_own(stem)
            plain = (stem.replace("_", "").isalpha() or "rank" in stem) and is_harmless(stem)
            kept |= bundled or (plain and not self._names.hosts & {stem, *stem.split("_")})
        return run if kept and run not in self._bare else super()._run(match)


_RUN = regex(RUN)
_DATA = ("app/**/*.toml", "checks/**/*.toml", "hardware/*.toml", "model/*.toml", "verdict/*.toml", "words/*.toml")


@lru_cache(maxsize=1)
def _words() -> frozenset[str]:
    """All of them in small letters, with # for digits. Takes a second or two, where the code is compiled."""
    top = Path(__file__).parents[2]
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
    return _LIKE["digits"].sub("#", word.lower())


@lru_cache(maxsize=65536)
def is_own(word: str) -> bool:
    """Whether a word, or words that signs join, stand in a text of ours (`GPU3`, `all-reduce`), or a range of one of
    them (`GPU0-7`, `mlx5_0-1`)."""
    range_ = _LIKE["range"].fullmatch(word)
    return (range_ is not None and is_harmless(range_[1])) or _shape(word) in _words()
