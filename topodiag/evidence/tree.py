r"""Tree files: many small files of /sys and /proc in one text, as the collector writes them.

One line per line of content, `OP PATH<TAB>TEXT`, paths without a leading slash:

    = sys/bus/pci/devices/0000:1b:00.0/class<TAB>0x030200      a line of text (repeated for several lines)
    > sys/bus/pci/devices/0000:1b:00.0<TAB>../../../devices/…  a symbolic link and its target
    x sys/bus/pci/devices/0000:1b:00.0/config<TAB>de103023…    bytes, in hexadecimal
    ! sys/class/net/eth0/speed<TAB>EINVAL Invalid argument     a file that is there and could not be read
    d sys/class/infiniband<TAB>                                a folder that is there (perhaps empty)

Backslash escapes: `\t`, `\n`, `\\` in paths; `\r`, `\n`, `\\` in text. Readable, greppable, and a fact's origin
is a file and a line.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

from topodiag.evidence.interface import ESCAPED, Blob, Parsed
from topodiag.evidence.pasted_files import shown_files
from topodiag.lazy import dataclass, regex

_TREE_LINE = regex(r"^[=>x!d] /?[A-Za-z0-9_][^\t\n]{0,400}\t", re.MULTILINE)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


@dataclass(slots=True)
class TreeFile:
    """One captured file: its lines with their line numbers in the tree file, or a link, bytes, or an error."""

    path: str
    lines: list[tuple[int, str]] = field(default_factory=list)
    link: str | None = None
    data: bytes | None = None
    error: str | None = None
    is_dir: bool = False
    at: int = 0

    @property
    def text(self) -> str | None:
        """The content stripped of outer blanks, or None where there is none to read."""
        return "\n".join(line for _, line in self.lines).strip() if self.lines else None


def _unescape(text: str) -> str:
    return ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[0]), text) if "\\" in text else text


def read_tree(blob: Blob, parsed: Parsed[Any]) -> dict[str, TreeFile]:
    """The files of a tree by their paths; lines of another shape are left in `parsed.unread`.

    A paste that shows files as a shell does (evidence/pasted_files.py) is read as the tree that it shows.
    """
    files: dict[str, TreeFile] = {}
    if blob.item is None and _TREE_LINE.search(blob.text) is None:
        parsed.partial = True
        for number, op, path, text in shown_files(blob.text):
            _put(_file(files, path, number), op, text, number)
        return files
    for number, line in blob.lines():
        if not line or line.startswith("#"):
            continue
        path, _tab, text = line[2:].partition("\t")
        if line[1:2] != " " or line[0] not in "=>x!d" or not path:
            parsed.leave(blob, number, line, "not a line of a tree file")
            continue
        file = _file(files, _unescape(path).lstrip("/"), number)
        if not _put(file, line[0], _unescape(text), number):
            parsed.leave(blob, number, line, "not hexadecimal")
    return files


def _file(files: dict[str, TreeFile], path: str, number: int) -> TreeFile:
    if path not in files:
        files[path] = TreeFile(path, at=number)
    return files[path]


def _put(file: TreeFile, op: str, text: str, number: int) -> bool:
    """Keep what a line says of a file; False for bytes that are not hexadecimal."""
    if op == "=":
        file.lines.append((number, text))
    elif op == ">":
        file.link = text
    elif op == "!":
        file.error = text
    elif op == "d":
        file.is_dir = True
    else:
        try:
            file.data = bytes.fromhex(text)
        except ValueError:
            return False
    return True
