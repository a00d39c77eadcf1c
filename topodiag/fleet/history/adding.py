"""Captures and watches become rows of the store."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from topodiag.checks.fleet.growth import error_counters
from topodiag.evidence.live.watch_log import WatchLog
from topodiag.fleet.history.store import Rows, Store, commit
from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.history import Capture, spell_time
from topodiag.words.units import grouped

MOST = (1 << 63) - 1
"""The highest value of a counter that a column holds; counters of 64 bits without a sign reach it after centuries."""
FACTS = "facts"


class Addition:
    """What is to be added to a store, until it is committed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        captures = store.table("captures", columns=["capture", "host"])
        self.captures: set[str] = set(captures["capture"].to_pylist())
        self.hosts: set[str] = set(captures["host"].to_pylist())
        self.watched: set[str] = set(store.manifest.watched)
        self.added = 0
        self.known_before = 0
        self._blocks = store.known_blocks()
        self._rows: Rows = defaultdict(list)
        self._name = hashlib.sha256()

    def capture(self, capture: Capture) -> bool:
        """Add one capture; False where the store has it."""
        if capture.id in self.captures:
            self.known_before += 1
            return False
        self.captures.add(capture.id)
        self.hosts.add(capture.host)
        self.added += 1
        date = _date(capture.time_s)
        # Counters have their own table, and what is of the moment is not kept. (An enum is slow to look up in a set.)
        kept = [
            fact for fact in capture.facts if fact.kind is not FactKind.COUNTER and fact.kind is not FactKind.MOMENT
        ]
        names = [self._block(capture, facts, date) for facts in _parted(kept)]
        self._name.update(capture.id.encode())
        self._rows["captures", date].append(
            (capture.id, capture.host, capture.time_s, capture.boot_s, capture.source, names, list(capture.errors),
             len(kept))
        )  # fmt: skip
        self._rows["counters", date] += (
            (capture.id, capture.host, fact.family, fact.part, fact.key, fact.unit, min(int(fact.value), MOST))
            for fact in error_counters(capture.facts).values()
        )
        return True

    def watch(self, log: WatchLog, digest: str) -> bool:
        """Add what a watch wrote; False where the store has this very file."""
        if digest in self.watched:
            self.known_before += 1
            return False
        self.watched.add(digest)
        self._name.update(digest.encode())
        self.hosts.add(log.host)
        self.added += 1
        for state in log.states:
            for spell in state.spells:
                self._rows["spells", _date(spell.end_s)].append(
                    (log.host, state.part, spell.state, spell.boot, spell.first_s, spell.last_s, spell.time_s,
                     spell.fallen)
                )  # fmt: skip
        for xid in log.xids:
            self._rows["xids", _date(xid.time_s)].append((log.host, xid.boot, xid.time_s, xid.part, xid.code))
        return True

    def commit(self) -> Store:
        """Write it all. The store as it is then."""
        if not self.added:
            return self.store
        manifest = msgspec.structs.replace(
            self.store.manifest, captures=len(self.captures), hosts=len(self.hosts), watched=sorted(self.watched)
        )
        return commit(self.store, self._rows, self._name.hexdigest()[:16], manifest)

    def _block(self, capture: Capture, facts: Sequence[NodeFact], date: str) -> str:
        """The name of a block of facts; its rows are added where no capture had it."""
        text = "\n".join(f"{fact.family}\0{fact.part}\0{fact.key}\0{fact.value}\0{fact.kind.value}" for fact in facts)
        name = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]
        if name not in self._blocks:
            self._blocks.add(name)
            self._rows[FACTS, date] += (
                (name, fact.family, fact.part, fact.key, str(fact.value), fact.kind.value, fact.unit, fact.source,
                 capture.id)
                for fact in facts
            )  # fmt: skip
        return name


def _parted(facts: Iterable[NodeFact]) -> list[list[NodeFact]]:
    """Facts by family, serials apart: what many nodes have in common is one block of all of them."""
    parted = grouped(((fact.family, fact.kind is FactKind.IDENTITY), fact) for fact in facts)
    return [parted[key] for key in sorted(parted)]


def _date(time_s: float | None) -> str:
    day = spell_time(time_s)[:10]
    return day if day[:4].isdigit() else "unknown"
