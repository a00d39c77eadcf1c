"""Takes the folders of this machine off a page: a page is sent on, and its reader has other folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from topodiag.lazy import regex
from topodiag.model.finding import Input

_END = regex(r"[\s\"'(),;&<>\\]|:[0-9]")


def without_folders(inputs: Iterable[Input]) -> Callable[[str], str]:
    """A function of a text that names every input by its path below the folder that all inputs share. Any other path,
    as one that a log quotes, stays as it is."""
    known = {each.path for each in inputs if os.path.isabs(each.path)}
    if not known:
        return lambda text: text
    shared = os.path.commonpath([os.path.dirname(path) for path in known]).rstrip("/") + "/"
    start = regex(re.escape(shared) + r"(?=[^\s\"'])")

    def taken_off(text: str) -> str:
        def below(match: re.Match[str]) -> str:
            end = _END.search(text, match.end())
            path = text[match.start() : end.start() if end else len(text)].rstrip(".:")
            return "" if _is_of(path, known) else match[0]

        return start.sub(below, text)

    return taken_off


def _is_of(path: str, known: set[str]) -> bool:
    """Whether a path is an input, or a member of an input."""
    while len(path) > 1:
        if path in known:
            return True
        path = os.path.dirname(path)
    return False
