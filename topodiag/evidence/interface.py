"""What a source is: it recognises its format, reads typed records from any bytes, and offers facts to the draft.

Adding one is a file with a `Source` subclass and an entry in `sources.toml`. A source never raises on bad content: what
it cannot read becomes an `UnreadLine`, and the rest of the input is kept.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cache, lru_cache
from itertools import pairwise
from sys import intern
from typing import Any, ClassVar, Generic, TypeVar

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.pasted_files import shows
from topodiag.lazy import dataclass, regex
from topodiag.model.provenance import MAX_QUOTE, Origin, Topic
from topodiag.model.result import UnreadLine
from topodiag.words.colours import without_colours
from topodiag.words.dialect import Maker
from topodiag.words.own_data import own_data
from topodiag.words.unfilled import without_unfilled

R = TypeVar("R")

MAX_LINE = 4096
"""Characters of the longest line worth reading: no tool's format comes near it but for the widest tables."""
MAX_GPUS = 256
"""GPUs of one machine, with room: one of a whole rack has 72."""
MAX_UNREAD = 200
"""Unread lines kept per input with their text; the rest is only counted (a wrong file has millions)."""


@lru_cache(maxsize=1024)
def _command_line(argv: tuple[str, ...]) -> str:
    """Kept, as each fact of a capture names its command."""
    return " ".join(argv)


@dataclass(frozen=True, slots=True)
class Item:
    """What the collector's manifest says of one captured item."""

    id: str
    kind: str
    file: str
    status: str = "ok"
    """`ok`, `absent`, `timeout`, `denied`, `error` or `skipped`."""
    why: str = ""
    argv: tuple[str, ...] = ()
    duration_s: float = 0.0
    needs_root: bool = False
    sample: int = 0

    @property
    def command(self) -> str:
        return _command_line(self.argv)


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes of one piece of evidence, its name as the user knows it, and the manifest's word on it if there is one."""

    name: str
    data: bytes
    item: Item | None = None
    later: bool = False
    """Whether a pasted text is the second reading of its counters."""
    sources: tuple[str, ...] = ()
    """The sources that read it, where all of a large text was looked at before."""

    @property
    def sample(self) -> int:
        return self.item.sample if self.item else int(self.later)

    @property
    def text(self) -> str:
        """The `written` text. What nobody captured as a part of a node is a text of anything: format strings in it are
        no messages, and left out."""
        return without_unfilled(self.written) if self.item is None else self.written

    @property
    def written(self) -> str:
        """All lines, with ANSI sequences and NULs removed and line ends unified; bad UTF-8 becomes U+FFFD."""
        raw = self.data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        return without_colours(raw)

    @property
    def plain(self) -> bytes:
        """The bytes of `text`: those of the piece itself where nothing is to be taken out, as they may be many."""
        kept = not any(sign in self.data for sign in (b"\r", b"\x1b", b"\0", b"%"))
        return self.data if kept else self.text.encode("utf-8", "replace")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines, from 1, without their ends."""
        yield from enumerate(self.text.split("\n"), start=1)

    def origin(self, line: int | None = None, text: str = "") -> Origin:
        # Alike nodes quote the same lines: each is kept once, as long as anybody holds it.
        return Origin(self.name, line, intern(text.strip()[:MAX_QUOTE]), self.item.command if self.item else "")

    def quoted(self, most: int) -> Callable[[int], Origin]:
        """Gives lines of a text whose reader knows their numbers alone, 0 for none; without words where there are more
        than so many bytes."""
        lines = self.data.split(b"\n") if len(self.data) < most else []

        def origin(line: int) -> Origin:
            text = lines[line - 1] if 0 < line <= len(lines) else b""
            return self.origin(line or None, text.decode("utf-8", errors="replace"))

        return origin


@dataclass(slots=True)
class Parsed(Generic[R]):
    """What a source read from one blob: records in the order of the text, and what it could not read."""

    records: list[R] = field(default_factory=list)
    unread: list[UnreadLine] = field(default_factory=list)
    unread_count: int = 0
    partial: bool = False
    """Whether the text is a part that somebody chose: what it does not show may be there all the same."""
    topics: frozenset[Topic] | None = None
    """What the text answers for, where that is not what its source does."""

    def leave(self, blob: Blob, line: int | None, text: str, why: str) -> None:
        """Record a line that was not understood."""
        self.unread_count += 1
        if len(self.unread) < MAX_UNREAD:
            self.unread.append(UnreadLine(blob.name, line, text.strip()[:MAX_QUOTE], why))


@cache
def _by_place() -> dict[str, tuple[str, dict[str, Any]]]:
    """The kinds and rows of `sources.toml` by the modules and classes of the sources."""
    rows: dict[str, dict[str, Any]] = own_data("evidence/sources")
    return {row["reads"]: (kind, row) for kind, row in rows.items() if "reads" in row}


class Source(ABC):
    """One format of evidence, by its entry in `sources.toml`. `kind` is its name in manifests and results."""

    kind: ClassVar[str]
    trust: ClassVar[int]
    speaks_of: ClassVar[frozenset[Topic]]
    """What the source answers for. Where it was read and says nothing of it, there is none."""
    a_piece: ClassVar[str]
    """Why its texts are of some things only, whatever stands in them; "" where a text is of all of `speaks_of`."""
    quiet_is_news: ClassVar[bool]
    separate: ClassVar[bool]
    maker: ClassVar[Maker | None]
    measured: ClassVar[re.Pattern[str] | None]
    looks: ClassVar[re.Pattern[str] | None] = None
    shows: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """What `sources.toml` says of the class; its head explains each key."""
        super().__init_subclass__()
        place = f"{cls.__module__.removeprefix('topodiag.evidence.')}:{cls.__name__}"
        if place not in _by_place():
            return
        cls.kind, row = _by_place()[place]
        cls.trust, cls.speaks_of = row["trust"], frozenset(Topic[name] for name in row["topics"])
        cls.a_piece, cls.quiet_is_news = row.get("a_piece", ""), row.get("quiet_is_news", False)
        cls.separate = row.get("separate", False)
        cls.maker = Maker(row["maker"]) if "maker" in row else None
        cls.measured = regex(row["measured"]) if "measured" in row else None
        cls.looks = regex(row["looks"], re.MULTILINE) if "looks" in row else None
        cls.shows = tuple(row.get("shows", ()))

    def told(self, parsed: Parsed[Any]) -> frozenset[Topic]:
        """What this text speaks of: all that the source can, unless the source or the text is of some things only."""
        if parsed.partial or self.a_piece:
            return frozenset()
        return self.speaks_of if parsed.topics is None else parsed.topics

    def recognises(self, head: str) -> bool:
        """Whether text without a manifest is of this format: as sources.toml says (`looks`, `shows`), else by whether
        the source finds something in it. `head` is its first 64 KiB, cleaned like `Blob.text`, and holds one of the
        format's literals (`heads`)."""
        if self.looks is not None:
            return self.looks.search(head) is not None
        if self.shows:
            return shows(head, *self.shows)
        return bool(self.parse(Blob("", head.encode("utf-8", "replace"))).records)

    @abstractmethod
    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[Any]:
        """Offer what a text says to the draft; never raises for content. The records are what was found, or the numbers
        of the lines that said something, 0 for what has no line."""

    def parse(self, blob: Blob) -> Parsed[Any]:
        """What a text says, offered to nobody."""
        return self.read(blob, NodeDraft())


NO_READING = frozenset(own_data("evidence/words")["no_reading"])


def reading(text: str | None) -> str | None:
    """A tool's cell as a value, or None when it stands for no reading (`N/A`, `[Not Supported]`, empty, ...)."""
    if text is None:
        return None
    cleaned = text.strip()
    return None if cleaned.lower() in NO_READING else cleaned


def behind(command: str, *options: str) -> str:
    """The word behind one of these options of a command line; "" without."""
    return next((word for option, word in pairwise(command.replace("=", " ").split()) if option in options), "")


ESCAPED = regex(r"\\(.)", re.DOTALL)
"""A backslash, and what it stands before."""
_INT = regex(r"[-+]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})(?![0-9a-fA-F.]*\.[0-9])")
_FLOAT = regex(r"[-+]?[0-9]{1,18}(?:\.[0-9]{1,18})?")


def to_int(text: str | None, *, low: int = -(2**63), high: int = 2**64 - 1) -> int | None:
    """The integer at the start of a value (`16x`, `400000 Mb/s`, `0x1a2`), or None; None too outside low..high."""
    match = _INT.match(text.strip()) if text is not None else None
    if match is None:
        return None
    value = int(match[0], 16 if "x" in match[0].lower() else 10)
    return value if low <= value <= high else None


_RANK = regex(r"rank[ _=-]?([0-9]{1,9})(?![0-9])")


def rank_of_name(path: str) -> int | None:
    """The last rank that the name of a file says: `nccl_trace_rank_3`, `rank0.txt`, `train-Rank=12.log`."""
    ranks = _RANK.findall(path.rpartition("/")[2].lower())
    return int(ranks[-1]) if ranks else None


def whole(low: int, high: int = 2**64 - 1) -> Callable[[str], int | None]:
    """Reads texts as integers within bounds (`to_int`)."""
    return lambda text: to_int(text, low=low, high=high)


def to_float(text: str | None, *, low: float = -1e18, high: float = 1e18) -> float | None:
    """The decimal number at the start of a value (`26.562 GB/s`), or None; None too outside low..high."""
    match = _FLOAT.match(text.strip()) if text is not None else None
    if match is None:
        return None
    value = float(match[0])
    return value if low <= value <= high else None
