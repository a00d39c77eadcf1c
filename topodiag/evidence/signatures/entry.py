"""The entry of the catalogue, and how its files are loaded: one TOML file a family, only where a literal of it is met.

`catalogue/literals.json` holds the literals of all families, so that a text which none of them is in costs no parsing
of TOML and no pattern. `tools/build_signatures.py` writes it; a test holds it against the entries.

The fields that a sentence may name, with their types. A field that does not parse costs the field, not the event.

Lines that name a fault and report none: denied, supposed, advised, counted as zero, quoted as text.

One module for all entries. `denies` looks at the words around a match; an entry whose fixed sentence holds one of these
words itself says `denied = false`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path

import msgspec

from topodiag.evidence.interface import to_float, to_int
from topodiag.lazy import regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.events import NO_FIELDS, Scope, Trust, Value
from topodiag.words.own_data import own_data

FOLDER = Path(__file__).parent / "catalogue"
INDEX = FOLDER / "literals.json"


class Near(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern that must be found in the lines around: at most `before` lines above, `after` lines below."""

    match: str
    before: int = 0
    after: int = 0


class Over(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A later line that ends the event: it holds the literal and fits the pattern. Fields that both name must agree."""

    literal: str
    match: str


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sentence. `docs/contributing.md`, section "A sentence", explains each key."""

    id: str
    says: str
    source: str | tuple[str, ...]
    literal: str | tuple[str, ...]
    match: str
    shows: tuple[str, ...]
    silent: tuple[str, ...]
    trust: Trust = Trust.PROGRAM
    scope: Scope = Scope.NODE
    unless: str = ""
    near: Near | None = None
    text_has: str | tuple[str, ...] = ()
    text_lacks: str | tuple[str, ...] = ()
    wraps: int = 1
    settles_s: float = 0.0
    """Seconds since boot in which the line is no news: what is probed or trained then says it, too."""
    over: Over | None = None
    counts: bool = False
    also: bool = False
    denied: bool = True
    """Whether words of denial, condition and advice on the line silence the entry. False where the sentence is a fixed
    one that holds such a word itself."""

    @property
    def literals(self) -> tuple[str, ...]:
        return _several(self.literal)

    @property
    def sources(self) -> tuple[str, ...]:
        return _several(self.source)

    @property
    def needs(self) -> tuple[str, ...]:
        """Literals of which the text must hold one; () for none."""
        return _several(self.text_has)

    @property
    def excludes(self) -> tuple[str, ...]:
        """Literals of which the text must hold none."""
        return _several(self.text_lacks)

    @property
    def pattern(self) -> re.Pattern[str]:
        return compiled(self.match)


def _several(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    signature: tuple[Signature, ...]
    words: Mapping[str, str] = {}
    """Patterns that `match` and `unless` of several entries share: `(?&name)` stands for one."""

    def spelt_out(self, entry: Signature) -> Signature:
        if "(?&" not in entry.match + entry.unless:
            return entry
        match, unless = entry.match, entry.unless
        for name, pattern in self.words.items():
            match, unless = (text.replace(f"(?&{name})", f"(?:{pattern})") for text in (match, unless))
        return msgspec.structs.replace(entry, match=match, unless=unless)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Patterns are written without anchors: they are searched for on the line."""
    return regex(pattern, re.MULTILINE)


@cache
def families() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def family(name: str) -> tuple[Signature, ...]:
    """The entries of a family in the order of the file. Raises msgspec.ValidationError for a file that is none."""
    held = msgspec.convert(own_data(f"evidence/signatures/catalogue/{name}"), Family)
    return tuple(map(held.spelt_out, held.signature))


def catalogue() -> tuple[Signature, ...]:
    """All entries of all families."""
    return tuple(entry for name in families() for entry in family(name))


@cache
def literals() -> Mapping[str, tuple[tuple[str, int], ...]]:
    """Each literal with the entries that it may begin: their family and their place in its file."""
    return msgspec.json.decode(INDEX.read_bytes(), type=dict[str, tuple[tuple[str, int], ...]])


@cache
def places_of(*names: str) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """The same of these families alone, of all without names."""
    if not names:
        return tuple(literals().items())
    own = ((literal, tuple(place for place in places if place[0] in names)) for literal, places in literals().items())
    return tuple((literal, places) for literal, places in own if places)


def literals_of(*names: str) -> tuple[bytes, ...]:
    """These literals alone, without reading the entries."""
    return tuple(literal.encode() for literal, _ in places_of(*names))


@lru_cache(1024)
def in_order(numbers: frozenset[int], *names: str) -> tuple[Signature, ...]:
    """The entries of these families that these literals begin, in the order of the catalogue."""
    begun = (places_of(*names)[number] for number in numbers)
    places = {
        (name, place) for literal, places in begun for name, place in places if literal in family(name)[place].literals
    }
    return tuple(family(name)[place] for name, place in sorted(places))


MAX_TEXT = 300
"""Characters that are kept of a field of text."""
MAX_LIST = 2000
"""The same of a list of ranks, and of the call of a rank with the shapes of its tensors."""


def _text(text: str, most: int = MAX_TEXT) -> str | None:
    return text.strip()[:most] or None


FIELDS: Mapping[str, Callable[[str], Value | None]] = {
    "bus_id": normalise_bus_id,
    "seconds": to_float,
    **dict.fromkeys(("gpu", "port", "rank", "local_rank", "pid", "code", "count", "expected", "sequence"), to_int),
    **dict.fromkeys(("ranks", "value"), partial(_text, most=MAX_LIST)),
    **dict.fromkeys(("nic", "host", "peer", "address", "reason", "collective", "size", "path"), _text),
    **dict.fromkeys(("variable", "version", "module", "name"), _text),
}
"""Seconds are seconds; `size` and `value` stay as they are written."""


def typed(groups: Mapping[str, str | None]) -> Mapping[str, Value]:
    """The named groups of a match as values of their types."""
    if not groups:
        return NO_FIELDS
    values = {
        name: value for name, text in groups.items() if text is not None and (value := FIELDS[name](text)) is not None
    }
    return values or NO_FIELDS


def counts_none(fields: Mapping[str, Value]) -> bool:
    """Whether the sentence counts errors or devices, and counts zero of them."""
    return fields.get("count") == 0 and "expected" not in fields


REACH = 120
"""Characters before and behind the match that belong to its clause at most."""
_LIKE = {
    name: regex("|".join(patterns), re.IGNORECASE if name in ("before", "behind") else 0)
    for name, patterns in own_data("evidence/signatures/denial").items()
}


def warns(line: str, start: int) -> bool:
    """Whether the words that begin at `start` stand in a warning of Python's, which ends no program."""
    return _LIKE["warned"].search(line, 0, start) is not None


def explains(line: str, start: int) -> bool:
    """Whether a line explains the message that begins at `start`, and does not report it. Asked for every entry."""
    return _LIKE["explained"].search(line) is not None or _LIKE["quoted"].search(line[:start]) is not None


def denies(line: str, start: int, end: int) -> bool:
    """Whether the words before or behind a match (its span on the line) say that nothing happened, or only what may."""
    before = line[max(0, start - REACH) : start]
    ends = [clause.end() for clause in _LIKE["clause_end"].finditer(before)]
    before = before[ends[-1] :] if ends else before
    return _LIKE["before"].search(before) is not None or _LIKE["behind"].search(line[end : end + REACH]) is not None


def silenced(entry: Signature, line: str, start: int, end: int) -> str:
    """Why a line with a match of the entry (its span on the line) reports nothing, "" where it does."""
    if explains(line, start):
        return "the line explains the message"
    if entry.says.startswith("ended.") and warns(line, start):
        return "a warning of Python's ends no program"
    return "the line denies it, supposes it, or gives advice" if entry.denied and denies(line, start, end) else ""
