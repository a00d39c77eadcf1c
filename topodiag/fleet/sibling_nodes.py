"""Nodes that differ from a sibling's in identities and measured numbers alone are made from the sibling's.

Two captures of one kind of machine differ in a few hundred of their ten thousand lines. Where each of these lines
differs in identities (identities.py), or in numbers that its source copies and no more (`Source.measured`), the node is
the sibling's with these exchanged: each fact knows the line that it was read from. Logs, which say nothing but what
happened (`Source.separate`), are read of each. It is not taken on trust: when a
line varies for the first time, the node is read whole as well, and the two must be equal.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field, fields, replace
from ipaddress import IPv6Address
from itertools import compress, count
from operator import attrgetter, ne
from typing import Any

from topodiag.evidence.assemble import distinct_events, time_of
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import boot_of, read_apart, read_node
from topodiag.evidence.interface import Item
from topodiag.evidence.registry import source
from topodiag.fleet.node_parts import (
    LEAST_HOST,
    Exchange,
    Identities,
    Measured,
    Place,
    UnlikeError,
    Varying,
    cut,
    digits_of,
    form_of,
    means_something,
)
from topodiag.lazy import dataclass
from topodiag.model.events import Event
from topodiag.model.node import Node
from topodiag.model.provenance import Fact

_said_of = attrgetter(*(part.name for part in fields(Item) if part.name != "duration_s"))
"""All that the manifest says of an item, but for how long it took."""
MOST_PATTERNS = 6
"""Patterns of captures that are held: those of the last kinds of machines, and of their states."""
MOST_BYTES = 8 << 20
"""Larger captures hold logs, which no two nodes share."""
MOST_LINES = 4096
"""Lines that differ between siblings: a few hundred do; with more, reading anew is as quick."""
MOST_FAILURES = 3
"""Patterns of captures with the same items that did not foretell their second, before no more are tried."""
_NOT_LINES = (b"\r", b"\x00", b"\x1b")
"""What a text is cleaned of before its lines are counted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a capture has otherwise than its sibling: identities, and the numbers of lines."""

    new: Identities
    numbers: dict[Place, Measured]
    events: tuple[Event, ...] | None = None
    """What happened on the node, where logs alone say it."""


@dataclass(slots=True)
class _Text:
    """A text of a capture, in lines, and which of them hold the host."""

    name: str
    data: bytes
    measured: re.Pattern[str] | None
    lines: list[bytes] = field(default_factory=list)
    separate: NodeDraft | None = None
    """What was made of a text that says nothing but what happened."""


class Pattern:
    """A node that was read: the nodes of its siblings are built from it."""

    def __init__(self, evidence: Evidence, node: Node) -> None:
        self.node = node
        self._host = evidence.host
        self._texts = [_text(blob) for blob in evidence.blobs]
        self._measured: set[Place] = set()
        self._holders: dict[str, set[Place]] = {}
        self._of_host: set[Place] = set()
        self._cuts: dict[Place, tuple[list[str], list[str]]] = {}
        self._logs_vary = False
        logged = (event for text in self._texts if text.separate is not None for event in text.separate.events)
        self._by_logs = distinct_events(logged) == node.events
        for text in self._texts:
            if text.separate is None:
                self._look(text)
        self._names = tuple(self._holders)
        self._old = Identities(self._host, self._names)
        self._varying: Varying | None = None

    def _look(self, text: _Text) -> None:
        """Note which lines hold which identities, and the host."""
        for number, raw in enumerate(text.lines, 1):
            line = raw.decode("latin-1")
            place = (text.name, number)
            if self._host in line:
                self._of_host.add(place)
            for token in cut(line, "")[1::2]:
                for digits in digits_of(token):
                    if not means_something(digits):
                        self._holders.setdefault(digits, set()).add(place)

    def difference(self, evidence: Evidence) -> Difference | None:
        """What this capture, whose items are the same, has otherwise; None where that is more than can be exchanged."""
        if evidence.host != self._host and min(len(evidence.host), len(self._host)) < LEAST_HOST:
            return None
        names: dict[str, str] = {}
        numbers: dict[Place, Measured] = {}
        differing: set[Place] = set()
        logs = False
        for text, blob in zip(self._texts, evidence.blobs, strict=True):
            if text.data == blob.data:
                continue
            if text.separate is not None:
                logs = True
                continue
            lines = blob.data.split(b"\n")
            if len(lines) != len(text.lines) or _is_unclean(blob.data):
                return None
            for at in compress(count(), map(ne, text.lines, lines)):
                place = (text.name, at + 1)
                differing.add(place)
                pair = text.lines[at].decode("latin-1"), lines[at].decode("latin-1")
                if not (_counted(text, place, *pair, numbers) or self._renamed(place, *pair, evidence.host, names)):
                    return None
            if len(differing) > MOST_LINES:
                return None
        whole = self._difference(evidence.host, names, numbers, differing)
        if whole is None or not (logs or self._by_logs):
            return whole
        events = self._events(evidence) if logs else self.node.events
        return replace(whole, events=events) if events is not None else None

    def _events(self, evidence: Evidence) -> tuple[Event, ...] | None:
        """What happened on a sibling; None where its logs, or the pattern's, say more than that."""
        mine = [text.separate for text in self._texts if text.separate is not None]
        if not self._by_logs:
            return None
        pairs = zip(self._texts, evidence.blobs, strict=True)
        theirs = [read_apart(blob) for text, blob in pairs if text.separate is not None]
        events: list[Event] = []
        for old, new in zip(mine, theirs, strict=True):
            if new is None or (new.topics, new.read, new.makers) != (old.topics, old.read, old.makers):
                return None
            events += new.events
        return distinct_events(events)

    def _renamed(self, place: Place, mine: str, theirs: str, host: str, names: dict[str, str]) -> bool:
        """Whether two lines differ in identities alone, which are added to `names`."""
        old = self._cuts.get(place)
        if old is None:
            old = self._cuts[place] = _cut(mine, self._host)
        new = _cut(theirs, host)
        if old[0] != new[0]:
            return False
        for was, now in zip(old[1], new[1], strict=True):
            if was != now and was not in names and (means_something(was) or means_something(now)):
                return False
            if names.setdefault(was, now) != now:
                return False
        return True

    def _difference(
        self, host: str, names: dict[str, str], numbers: dict[Place, Measured], differing: set[Place]
    ) -> Difference | None:
        """The difference, if every line with an identity that is another differs, and no two became one."""
        changed = {old: new for old, new in names.items() if old != new}
        kept = self._holders.keys() - changed.keys()
        if len(set(changed.values())) != len(changed) or not kept.isdisjoint(changed.values()):
            return None
        if any(not self._holders.get(old, differing) <= differing for old in changed):
            return None
        if host != self._host and not self._of_host <= differing:
            return None
        return Difference(Identities(host, tuple(changed.get(name, name) for name in self._names)), numbers)

    def foretold(self, difference: Difference) -> bool:
        """Whether each line of this difference has varied before."""
        known = self._logs_vary or not self._has_new_logs(difference)
        return known and self._varying is not None and difference.numbers.keys() <= self._measured

    def _has_new_logs(self, difference: Difference) -> bool:
        return difference.events is not None and difference.events is not self.node.events

    def learn(self, difference: Difference, time: str, node: Node) -> bool:
        """Take in lines that vary for the first time. `node` is the sibling's as it was read: False where it is not
        what its pattern foretells, which then serves for nothing more."""
        self._measured |= difference.numbers.keys()
        self._logs_vary |= self._has_new_logs(difference)
        try:
            self._varying = Varying(
                self.node, Exchange(self._old, self._old.opposite), self._host, frozenset(self._measured)
            )
            return self.node_like(difference, time) == node
        except (UnlikeError, RecursionError):
            return False

    def node_like(self, difference: Difference, time: str) -> Node:
        """The node of the sibling that differs so."""
        if self._varying is None:
            raise UnlikeError
        exchange = Exchange(self._old, difference.new)
        node = self._varying.replaced(exchange, difference.numbers, difference.new.host, time_of(time))
        return node if difference.events is None else replace(node, events=difference.events)


def _is_unclean(data: bytes) -> bool:
    return any(sign in data for sign in _NOT_LINES)


def _bootless(evidence: Evidence) -> Node:
    return replace(read_node(evidence).node, boot=Fact())


def _text(blob: Any) -> _Text:
    reads = source(blob.item.kind) if blob.item is not None else None
    plain_lines = not _is_unclean(blob.data)
    return _Text(
        blob.name,
        blob.data,
        reads.measured if reads and plain_lines else None,
        blob.data.split(b"\n"),
        read_apart(blob),
    )


def _cut(line: str, host: str) -> tuple[list[str], list[str]]:
    """A line without its host and the digits of its identities, and these."""
    pieces = cut(line, host)
    tokens = pieces[1::2]
    digits = [digit for token in tokens for digit in digits_of(token)]
    pieces[1::2] = [form_of(token) if "::" not in token else _form_of_address(token) for token in tokens]
    return pieces, digits


def _form_of_address(token: str) -> str:
    """How an address is shortened, as all tools shorten it; itself where they would write it otherwise."""
    try:
        address = IPv6Address(token)
    except ValueError:
        return token
    if address.ipv4_mapped is not None and "." in token:
        return "::ffff:h.h.h.h" if token == f"::ffff:{address.ipv4_mapped}" else token
    return "h::h" if token == str(address) else token


def _counted(text: _Text, place: Place, mine: str, theirs: str, numbers: dict[Place, Measured]) -> bool:
    """Whether two lines differ in measured numbers alone, which are added to `numbers`."""
    old = text.measured.match(mine) if text.measured is not None else None
    new = text.measured.match(theirs) if text.measured is not None else None
    if old is None or new is None or _around(old) != _around(new):
        return False
    numbers[place] = Measured(old["numbers"], new["numbers"])
    return True


def _around(line: re.Match[str]) -> tuple[str, str]:
    """What stands before and behind the numbers of a line."""
    start, end = line.span("numbers")
    return line.string[:start], line.string[end:]


Key = tuple[Any, ...]


class Siblings:
    """The nodes of captures, read whole or made like a sibling's."""

    def __init__(self) -> None:
        self._patterns: list[tuple[Key, Pattern]] = []
        self._failures: Counter[Key] = Counter()

    def read(self, evidence: Evidence) -> Node:
        """The node of a bundle. Raises InputError."""
        return replace(self._read(evidence), boot=boot_of(evidence))

    def _read(self, evidence: Evidence) -> Node:
        """The same without the id of the boot, which no pattern holds."""
        key = _key(evidence)
        if key is None or self._failures[key] >= MOST_FAILURES:
            return _bootless(evidence)
        for at, (of, pattern) in enumerate(self._patterns):
            difference = pattern.difference(evidence) if of == key else None
            if difference is None:
                continue
            self._patterns.insert(0, self._patterns.pop(at))
            if pattern.foretold(difference):
                try:
                    return pattern.node_like(difference, evidence.time)
                except UnlikeError:
                    return _bootless(evidence)
            node = _bootless(evidence)
            if not pattern.learn(difference, evidence.time, node):
                del self._patterns[0]
                self._failures[key] += 1
            return node
        node = _bootless(evidence)
        self._patterns.insert(0, (key, Pattern(evidence, node)))
        del self._patterns[MOST_PATTERNS:]
        return node


def _key(evidence: Evidence) -> Key | None:
    """What captures must have alike to be siblings; None for one that is kin to none."""
    if not evidence.is_bundle or not evidence.host or sum(len(blob.data) for blob in evidence.blobs) > MOST_BYTES:
        return None
    if len({blob.name for blob in evidence.blobs}) < len(evidence.blobs):
        return None
    shown = tuple((blob.name, _said_of(blob.item) if blob.item else None) for blob in evidence.blobs)
    return shown, tuple(map(_said_of, evidence.missing)), tuple(sorted(evidence.intervals_s.items()))
