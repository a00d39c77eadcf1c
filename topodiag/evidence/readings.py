"""Readings: what a source made of one file of a tree, as a typed value with its line, ready to be offered."""

from __future__ import annotations

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.tree import Tree, TreeFile, read_tree
from topodiag.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one subject (`0000:1b:00.0`, `numa 0`, `os`), or why there is none (`value is None`)."""

    subject: str
    name: str
    value: object
    line: int
    text: str
    why: str = ""
    counter: bool = False

    def offer_to(self, entity: Entity, blob: Blob) -> None:
        origin = blob.origin(self.line, self.text)
        if self.value is None:
            entity.unread(self.name, self.why, origin)
        elif self.counter and isinstance(self.value, int):
            entity.count(self.name, self.value, origin)
        else:
            entity.offer(self.name, self.value, origin)


def read_readings(blob: Blob) -> tuple[Tree, Parsed[Reading]]:
    """The tree of a blob, and a `Parsed` for its readings that already knows the lines that are no tree lines."""
    files: Parsed[TreeFile] = Parsed()
    tree = read_tree(blob, files)
    return tree, Parsed(unread=files.unread, unread_count=files.unread_count, partial=files.partial)


def quote(file: TreeFile, text: str | None = None) -> str:
    """A file's path and what it says, for an origin: its line in the tree without the operator.

    `text` picks one line of several, or says what was read out of bytes.
    """
    if file.link is not None:
        return f"{file.path} -> {file.link}"
    if text:
        return f"{file.path}\t{text}"
    if file.data is not None:
        return f"{file.path}\t{file.data[:32].hex()}"
    if file.error is not None and not file.lines:
        return f"{file.path}\t{file.error}"
    return f"{file.path}\t{file.lines[0][1] if file.lines else ''}".rstrip()


def value_line(file: TreeFile) -> tuple[int, str]:
    """The first line of a file and its number; the place of the file and an empty text where it has none."""
    for number, text in file.lines:
        return number, text.strip()
    return file.at, ""


class Notes:
    """Collects readings into a `Parsed`, so that a value costs its caller one line of code."""

    def __init__(self, blob: Blob, parsed: Parsed[Reading]) -> None:
        self._blob = blob
        self.parsed = parsed

    def take(self, subject: str, name: str, value: object, file: TreeFile, at: tuple[int, str] | None = None) -> None:
        """A value that was read, on the given line of the file or on its first."""
        line, text = at if at is not None else value_line(file)
        self.parsed.records.append(Reading(subject, name, value, line, quote(file, text)))

    def count(self, subject: str, name: str, value: int, file: TreeFile, at: tuple[int, str]) -> None:
        """A reading of a cumulative counter."""
        self.parsed.records.append(Reading(subject, name, value, at[0], quote(file, at[1]), counter=True))

    def miss(self, subject: str, name: str, why: str, file: TreeFile, at: tuple[int, str] | None = None) -> None:
        """A value that the machine does not give, and why."""
        line, text = at if at is not None else value_line(file)
        self.parsed.records.append(Reading(subject, name, None, line, quote(file, text), why))

    def reject(self, subject: str, name: str, why: str, file: TreeFile, at: tuple[int, str] | None = None) -> None:
        """A value that is there and makes no sense: unknown, and listed with what could not be read."""
        line, text = at if at is not None else value_line(file)
        self.miss(subject, name, why, file, (line, text))
        self.leave(why, file, (line, text))

    def read(self, subject: str, name: str, value: object, why: str, file: TreeFile) -> None:
        """A value that was read, or why what is there makes no sense where it is None."""
        if value is None:
            self.reject(subject, name, why, file)
        else:
            self.take(subject, name, value, file)

    def leave(self, why: str, file: TreeFile, at: tuple[int, str]) -> None:
        """A line of a file that is of no use, and is no value of anything."""
        self.parsed.leave(self._blob, at[0], quote(file, at[1]), why)


def is_absent(tree: Tree, path: str) -> bool:
    """Whether the capture says that this path, or a folder above it, was looked for and is not there."""
    while path:
        file = tree.files.get(path)
        if file is not None and file.error is not None and file.error.startswith(("ENOENT", "ENOTDIR")):
            return True
        path = path.rpartition("/")[0]
    return False


def is_present(tree: Tree, path: str) -> bool:
    """Whether the capture shows that this path exists (a file that could not be opened does not)."""
    file = tree.files.get(path)
    return file is not None and (bool(file.lines) or file.is_dir or file.link is not None or file.data is not None)
