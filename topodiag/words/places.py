"""Names files of the evidence relative to what the user gave: short on a terminal, and without the folders of this
machine on a page that is sent on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from os.path import basename, commonpath, dirname, join

from topodiag.lazy import regex

_TYPED = regex(r"\btopodiag(?: [^\s`;:,()]+)* \Z")
"""What stands before the path of a command that is to be typed."""


def base_name(path: str) -> str:
    """The last part of a path, for headlines; `-`, `fixture:NAME` and the like as they are."""
    return path.rstrip("/").rpartition("/")[2] or path


class FileNames:
    """The names of `files`, of which the user named those `given`, or folders, archives and patterns that hold them."""

    def __init__(self, given: Iterable[str], files: Collection[str]) -> None:
        self._root = _root([path for path in given if path != "-"], files)
        self._start = regex(rf"(?<![\w./+=~-]){re.escape(self._root)}(?:/(?=\w)|(?![\w/.-]))")

    def below(self, path: str) -> str:
        """A path below what was given; "" for one that is not there."""
        return path[len(self._root) + 1 :] if self._root and path.startswith(self._root + "/") else ""

    def in_text(self, text: str) -> str:
        """A sentence with the files named; a command that reads one keeps what is to be typed."""
        if "/" not in self._root or self._root not in text:
            return text
        return self._start.sub(lambda match: match[0] if _TYPED.search(text, 0, match.start()) else _short(match), text)

    def sent(self, text: str) -> str:
        """The same for who has other folders, and types other paths."""
        return self._start.sub(_short, text) if "/" in self._root and self._root in text else text


def _short(match: re.Match[str]) -> str:
    """Nothing before the name of a file; the last part of the name of the folder itself."""
    return "" if match[0].endswith("/") else basename(match[0])


def _root(given: Iterable[str], files: Collection[str]) -> str:
    """The folder that holds all that was given; of one folder or archive itself. "" where there is none."""
    files = frozenset(files)
    above = {file[:at] for file in files for at, sign in enumerate(file) if sign == "/"}
    folders = set()
    for path in given:
        whole = path.rstrip("/")
        if path not in files and (signs := [path.find(sign) for sign in "*?[" if sign in path]):
            whole = join(dirname(path[: min(signs)]), "*")
        folders.add(whole if whole == "." or whole in above else dirname(whole))
    try:
        return commonpath(folders).rstrip("/") if folders else ""
    except ValueError:  # absolute and relative paths
        return ""
