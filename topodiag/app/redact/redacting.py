"""`--redact` on a report: names, addresses and serials replaced by the tokens that the collector gives them.

The same key gives the same token for the same thing, in bundles and in reports. Quotes of evidence and paths are
redacted as the collector redacts its files: each word that is not known to be harmless is replaced. A sentence of ours
may quote evidence anywhere: it keeps the words that topodiag's own texts are made of, and nothing else.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from topodiag.lazy import dataclass
from topodiag.model.result import Result
from topodiag.words.own_data import patterns
from topodiag.words.places import FileNames
from topodiag_probes.secrets import without_secrets

if TYPE_CHECKING:
    from topodiag.app.redact.redactor import OfReport

T = TypeVar("T")

_QUOTED = frozenset({"text", "command", "source", "path", "file", "files", "given"})
"""Fields that hold what stood in the evidence, or where it stood; `text` of a price or a cost is a sentence of ours."""
_OURS = frozenset({"Price", "Cost", "Conflict", "Level"})
_QUOTED_OF = frozenset({("DeclaredRanks", "name"), ("Topology", "name")})
_KEPT = frozenset({"sha256", "check"})
"""Fields that are shown as they are."""
_PLAIN = frozenset({int, float, bool, bytes, type(None)})
"""Types in which no text stands."""
_MARKS = str.maketrans("[]|,", "    ")
_NUMBERS = frozenset(
    {"int", "float", "bool", "bytes", "None", "Ints", "Mapping", "dict", "frozenset", "list", "set", "tuple", "..."}
)
"""Words by which a field is declared in which no text stands, of which one of a job may hold a million numbers."""
_HOSTS = frozenset({"host", "hosts", "node", "nodes", "aliases", "racks"})
"""Fields that hold names of machines, in whatever class."""
_HOSTS_OF = frozenset({("Host", "name"), ("Cluster", "names"), ("Level", "names"), ("Part", "place")})
"""Fields of one class that hold names of machines, switches and racks."""
_GUIDS = frozenset({"guid", "node_guid", "sys_image_guid"})
"""Fields whose hexadecimal digits are no mask and no size."""
_LIKE = patterns("app/redact/words", "reports")
_RUN_IDS = frozenset({("SweepRun", "id"), ("Fault", "runs"), ("SweepResult", "run")})


@dataclass(frozen=True, slots=True)
class Paths:
    """What a command was given to read, as its report names it."""

    files: tuple[str, ...]


def redacted(value: T, key: bytes | None = None) -> T:
    """A result, or any other value of dataclasses, as others may read it; of a tuple the same thing has the same token
    in each part. `key` None: the one of TOPODIAG_REDACT_KEY, else one that is forgotten."""
    from topodiag.app.redact.redactor import OfReport  # noqa: PLC0415 - where names are hidden
    from topodiag_probes.redact import read_key  # noqa: PLC0415

    value = _OfSecrets(_names_of(value)).value(value)
    redactor = OfReport(key if key is not None else read_key(None, os.environ))
    strings: dict[str, None] = {}
    hosts: set[str] = set()
    paths: set[str] = set()
    shown = _Seen()
    shown.value(value)
    for owner, name, text in shown.texts:
        strings[f"guid {text}" if name in _GUIDS else text] = None
        if name in _HOSTS or (owner, name) in _HOSTS_OF:
            hosts.add(text)
        if "/" in text and _is_quoted(owner, name) and not _LIKE["of_bundle"].match(text):
            paths.update((text, text.rpartition("/")[2]))
    lists = dict.fromkeys(match[0] for text in strings for match in _LIKE["node_set"].finditer(text[:10_000]))
    known = sorted(hosts)
    redactor.learn(known, [name for name in lists if _stem(name, known)], strings)
    value = _OfNames(redactor, frozenset(path for path in paths if "/" in path or "." in path)).value(value)
    return value


def hidden(value: T) -> T:
    """The value without secrets: tokens of known services, logins in addresses, keys. Names and addresses stay."""
    texts = "\n".join(_texts(value))
    if without_secrets(texts) != texts:
        value = _OfSecrets().value(value)
    return value


def _texts(value: object) -> set[str]:
    """The texts that may hold a secret, all at once: most reports have none, and need no walk that copies."""
    texts: set[str] = set()
    seen: set[int] = set()
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        kind = type(part)
        if kind is str:
            texts.add(part)
        elif kind in _PLAIN:
            continue
        elif names := _OfSecrets.fields[kind]:
            if id(part) not in seen:
                seen.add(id(part))
                waiting += [getattr(part, name) for name in names]
        elif isinstance(part, Mapping):
            waiting += [*part, *part.values()]
        elif isinstance(part, (tuple, list, frozenset, set)):
            waiting += part
        elif isinstance(part, str) and not isinstance(part, Enum):
            texts.add(part)
    return texts


def _names_of(value: object) -> Callable[[str], str]:
    """How the files of the result in a value are named: the folders of this machine are nobody's to read."""
    parts = value if isinstance(value, tuple) else (value,)
    result = next((part for part in parts if isinstance(part, Result) and part.given), None)
    return str if result is None else FileNames(result.given, result.files).sent


def _is_quoted(owner: str, name: str) -> bool:
    return (name in _QUOTED and owner not in _OURS) or (owner, name) in _QUOTED_OF


def _stem(expression: str, hosts: list[str]) -> bool:
    """Whether a node set is of hosts that are known."""
    head = expression.partition("[")[0]
    at = bisect_left(hosts, head)
    return at < len(hosts) and hosts[at].startswith(head)


def _holds_numbers(declared: str) -> bool:
    """Whether no text stands in a field, by its declaration."""
    words = declared.translate(_MARKS).split()
    return all(word in _NUMBERS or word.startswith(("np.", "npt.")) for word in words)


class _Fields(dict[type, tuple[str, ...]]):
    """The fields of each class in which a text may stand that is to be hidden, () for what is no dataclass."""

    def __init__(self, skipped: Mapping[tuple[str, str], str] = MappingProxyType({})) -> None:
        """`skipped`: further fields of one class that stay as they are, and why."""
        super().__init__()
        self._skipped = skipped

    def __missing__(self, kind: type) -> tuple[str, ...]:
        own = fields(kind) if is_dataclass(kind) else ()
        kept = _KEPT | {name for owner, name in self._skipped if owner == kind.__name__}
        texts = (field.name for field in own if not _holds_numbers(str(field.type)))
        self[kind] = tuple(name for name in texts if name not in kept)
        return self[kind]


_FIELDS = _Fields()


class _Walk(ABC):
    """Makes a copy of a value with its texts replaced; what has none to replace stays the very object."""

    fields = _FIELDS

    def __init__(self) -> None:
        self._copies: dict[int, tuple[Any, Any]] = {}
        """By identity a value, kept alive, and its copy: a line of evidence stands in many facts."""

    def value(self, value: Any, owner: str = "", name: str = "") -> Any:
        """`owner` and `name` say in which field of which class the value stands."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if names := self.fields[kind]:
            pair = self._copies.get(id(value))
            if pair is None:
                pair = self._copies[id(value)] = value, self._fields(value, names, owner, name)
            return pair[1]
        if isinstance(value, Enum):
            return value
        if isinstance(value, str):
            text = self._text(value, owner, name)
            return value if text == value else text
        if isinstance(value, Mapping):
            items = {self.value(key, owner, name): self.value(item, owner, name) for key, item in value.items()}
            same = all(map(is_, items, value)) and all(map(is_, items.values(), value.values()))
            return value if same else items
        if not isinstance(value, (tuple, list, frozenset, set)):
            return value
        if hasattr(value, "_fields"):
            pairs = zip(value._fields, value, strict=True)
            return kind(*(self.value(part, kind.__name__, field) for field, part in pairs))
        parts = [self.value(part, owner, name) for part in value]
        return value if all(map(is_, parts, value)) else kind(parts)

    def _fields(self, value: Any, names: tuple[str, ...], owner: str, name: str) -> Any:
        kind, changed = type(value).__name__, {}
        for field in names:
            # What a fact says belongs to the field that holds the fact.
            inside = (owner, name) if kind == "Fact" and field == "value" else (kind, field)
            old = getattr(value, field)
            new = self.value(old, *inside)
            if new is not old:
                changed[field] = new
        return replace(value, **changed) if changed else value

    @abstractmethod
    def _text(self, text: str, owner: str, name: str) -> str:
        """What stands for a text."""


class _Seen(_Walk):
    """Replaces nothing, and notes each text with the class and the field that it stands in."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[tuple[str, str, str], None] = {}

    def _text(self, text: str, owner: str, name: str) -> str:
        self.texts[owner, name, text] = None
        return text


class _OfSecrets(_Walk):
    """Hides secrets, and lets all else stand."""

    fields = _Fields({
        ("StepSeries", "steps"): "there may be a million; printed as evidence of findings, which is read for itself",
        ("Fact", "origin"): "the same",
        ("Communicator", "operations"): "counts and names of collectives, which no report prints",
    })  # fmt: skip

    def __init__(self, named: Callable[[str], str] = str) -> None:
        super().__init__()
        self._spelt = cache(lambda text: named(without_secrets(text)))

    def _text(self, text: str, owner: str, name: str) -> str:
        return self._spelt(text)


class _OfNames(_Walk):
    """Replaces names, addresses and serials, by what a redactor knows of them."""

    def __init__(self, redactor: OfReport, paths: frozenset[str]) -> None:
        super().__init__()
        self._redactor = redactor
        self._paths = paths
        self._spelt = [cache(spelt) for spelt in (self._run_id, self._quoted, self._sentence)]

    def _text(self, text: str, owner: str, name: str) -> str:
        if not text:
            return text
        run_id, quoted, sentence = self._spelt
        return (run_id if (owner, name) in _RUN_IDS else quoted if _is_quoted(owner, name) else sentence)(text)

    def _run_id(self, text: str) -> str:
        """The id of a sweep's run, `1-pairs-gpu07+gpu08-rail3`: the names of nodes stand between its signs."""
        match = _LIKE["run_id"].match(text)
        if match is None:
            return self._redactor.text(text)
        spelt = self._redactor.text if match["kind"] == "racks" else self._redactor.prose
        return match["head"] + "+".join(spelt(part) for part in match["rest"].split("+"))

    def _sentence(self, text: str) -> str:
        """Our own words; a path among them is redacted as it is where it stands alone."""
        parts, last = [], 0
        for match in _LIKE["word"].finditer(text) if self._paths else ():
            place = _LIKE["place"].match(match[0])
            if place is not None and place[1] in self._paths:
                parts += [self._redactor.prose(text[last : match.start()]), self._quoted(place[1])]
                last = match.start() + len(place[1])
        return "".join([*parts, self._redactor.prose(text[last:])])

    def _quoted(self, text: str) -> str:
        # The collector named the files of a bundle, and redacted those names itself where they hold one.
        if _LIKE["of_bundle"].match(text):
            return self._redactor.prose(text)
        node, _, inner = text.partition("/")
        if _LIKE["of_bundle"].match(inner):
            return f"{self._redactor.text(node)}/{self._redactor.prose(inner)}"
        return self._redactor.text(text)
