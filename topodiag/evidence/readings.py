"""Files of a captured tree, read into a draft: every value is offered with the line of the file that says it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import NO_READING, Blob, Parsed, Source
from topodiag.evidence.page import Line, Page
from topodiag.evidence.tree import TreeFile, read_tree

MAX_VALUE = 4096
"""Characters of a file that is one value."""


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


def link_name(file: TreeFile) -> str:
    """The last name of what a link leads to, "" without a link."""
    return (file.link or "").rstrip("/").rpartition("/")[2]


class Notes(Page):
    """A tree on its way into a draft. `parsed` records the lines of the tree that said something."""

    def __init__(self, blob: Blob, draft: NodeDraft) -> None:
        super().__init__(blob, draft)
        self.files = read_tree(blob, self.parsed)

    @property
    def system(self) -> Entity:
        return self.draft.single("os")

    def lines_of(self, path: str) -> Iterator[tuple[TreeFile, tuple[int, str]]]:
        """The lines of a file with it; none where it is not there."""
        file = self.files.get(path)
        if file is not None:
            yield from ((file, line) for line in file.lines)

    def below(self, folder: str) -> dict[str, dict[str, TreeFile]]:
        """Files by the first name under a folder: `{"mlx5_0": {"ports/1/state": file, "": link}}`."""
        start = folder + "/"
        groups: dict[str, dict[str, TreeFile]] = {}
        for path, file in self.files.items():
            if path.startswith(start):
                name, _, rest = path[len(start) :].partition("/")
                groups.setdefault(name, {})[rest] = file
        return groups

    def take(
        self,
        entity: Entity,
        name: str,
        value: object,
        file: TreeFile,
        at: tuple[int, str] | None = None,
        *,
        why: str = "",
    ) -> None:
        """A value that was read, on the given line of the file or on its first; None where the machine gives none."""
        line = self.line(file, at)
        self.parsed.records.append(line.number)
        entity.offer(name, value, line.origin, why or "no value")

    def line(self, file: TreeFile, at: tuple[int, str] | None = None) -> Line:
        """A line of a file, its first one unless another is given, with the file's path."""
        number, text = at if at is not None else value_line(file)
        return Line(self, number, quote(file, text))

    def miss(self, entity: Entity, name: str, why: str, file: TreeFile, at: tuple[int, str] | None = None) -> None:
        """A value that the machine does not give, and why."""
        self.take(entity, name, None, file, at, why=why)

    def reject(self, entity: Entity, name: str, why: str, file: TreeFile, at: tuple[int, str] | None = None) -> None:
        """A value that is there and makes no sense: unknown, and listed with what could not be read."""
        self.miss(entity, name, why, file, at)
        self.line(file, at).leave(why)

    def convert(self, entity: Entity, name: str, convert: Callable[[str], object], file: TreeFile) -> None:
        """The content of a file as a value; one that is none is reported unless it stands for no reading."""
        value, why = converted(file, convert, name.replace("_", " "))
        if value is None and file.error is None and not says_nothing(file.text or ""):
            self.reject(entity, name, why, file)
        else:
            self.take(entity, name, value, file, why=why)


class OfTree(Source):
    """A source that reads files of a captured tree."""

    @abstractmethod
    def read_notes(self, notes: Notes) -> None:
        """Offer what the files say."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        notes = Notes(blob, draft)
        self.read_notes(notes)
        return notes.end()


def converted(file: TreeFile, convert: Callable[[str], object], what: str) -> tuple[object, str]:
    """The content of a file as a value; None with the reason where it has none."""
    text = file.text
    if text is None or file.error is not None:
        return None, (file.error or "no content was captured")[:80]
    value = convert(text) if len(text) <= MAX_VALUE else None
    if value is not None:
        return value, ""
    return None, f"the kernel gives none ({text[:40]})" if says_nothing(text) else f"no {what} in {text[:40]!r}"


def says_nothing(text: str) -> bool:
    """Whether a text was understood and is no reading: `N/A`, a speed of -1, a GUID of zeros that nobody has set."""
    cleaned = text.strip().lower()
    return cleaned in NO_READING or cleaned == "-1" or cleaned.startswith("unknown") or not cleaned.strip("0x:")


def is_absent(files: Mapping[str, TreeFile], path: str) -> bool:
    """Whether the capture says that this path, or a folder above it, was looked for and is not there."""
    while path:
        file = files.get(path)
        if file is not None and file.error is not None and file.error.startswith(("ENOENT", "ENOTDIR")):
            return True
        path = path.rpartition("/")[0]
    return False


def is_present(files: Mapping[str, TreeFile], path: str) -> bool:
    """Whether the capture shows that this path exists (a file that could not be opened does not)."""
    file = files.get(path)
    return file is not None and (bool(file.lines) or file.is_dir or file.link is not None or file.data is not None)
