"""The loop: sample, compare with the sample before, write what changed, until it is told to stop.

Files of a dying device can block a read for ever. Each source is read in a thread that is left alone while it hangs:
the loop goes on with the others, and says which source hangs. There is at most one thread for each source.
"""

import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from topodiag_probes.watch.journal import Journal, change, header, snapshot
from topodiag_probes.watch.kernel import Kernel
from topodiag_probes.watch.states import Value, Values

ALIVE_S = 240.0
"""A line at least this often, so that a reader knows how long the last state lasted: a drop is 4 minutes."""
SELF = "watch"
"""The part under which the loop tells of itself."""
MAX_XIDS = 1000
"""Pairs of GPU and code that are counted."""
_UP = frozenset(["ACTIVE", "up", "active", "answers"])
"""States in which a part carries traffic: of ports, interfaces, NVLinks, GPUs."""
_OFF = "off"
"""An interface that the administrator switched off: neither up nor down."""


class Source:
    """One thing that is sampled, at most every `every_s` seconds. `read` returns None where nothing answered: then what
    was there before still counts."""

    def __init__(self, name: str, every_s: float, read: Callable[[], Optional[Values]]) -> None:
        self.name = name
        self.every_s = every_s
        self.read = read
        self.values: Values = {}
        """What was compared last."""
        self.seen = 0.0
        """When, in seconds since boot; 0 before the first answer."""
        self.answers = True
        self._answer: Optional[Values] = None
        self._next = 0.0
        self._thread: Optional[threading.Thread] = None

    @property
    def hangs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def sample(self, now: float, wait_s: float) -> Optional[Values]:
        """The next answer, if it is time for one and it comes within `wait_s`."""
        if self._thread is None:
            if now < self._next:
                return None
            self._next = now + self.every_s
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()
        self._thread.join(wait_s)
        if self._thread.is_alive():
            return None
        self._thread = None
        self.answers = self._answer is not None
        return self._answer

    def _read(self) -> None:
        self._answer = None
        try:
            self._answer = self.read()
        except Exception:
            return  # a source's fault is that source's silence


class Clock:
    """Both clocks: the wall's can be set, the one since boot tells how long something took."""

    def wall(self) -> float:
        return round(time.time(), 2)

    def up(self) -> float:
        return round(time.monotonic(), 2)


class Watch:
    """What was seen last, and what was counted since the start. Memory is bounded by the values that the sources
    give."""

    def __init__(  # noqa: PLR0917
        self,
        host: str,
        boot: str,
        sources: Sequence[Source],
        journal: Optional[Journal],
        kernel: Optional[Kernel] = None,
        clock: Optional[Clock] = None,
        every_s: float = 10.0,
    ) -> None:
        self.host = host
        self.boot = boot
        self.sources = sources
        self.journal = journal
        self.kernel = kernel
        self.clock = clock or Clock()
        self.every_s = every_s
        self.down_since: Dict[str, float] = {}
        self.downs: Dict[str, int] = {}
        self.xids: Dict[Tuple[str, int], int] = {}
        self._hanging: Dict[str, str] = {}
        self._begun = False
        self._wrote = 0.0

    @property
    def values(self) -> Values:
        """The last values of all sources."""
        merged: Values = {}
        for source in self.sources:
            merged.update(source.values)
        return merged

    def turn(self) -> None:
        """One sample of everything; what changed is written."""
        lines: List[Dict[str, Any]] = []
        for source in self.sources:
            answer = source.sample(self.clock.up(), self.every_s)
            if answer is not None:
                lines += self._compare(source, answer)
            lines += self._state_of(source)
        lines += self._news()
        self._write(lines)

    def stop(self, why: str) -> None:
        """The last line: the watch ended, the node need not have."""
        if self.journal is not None and self._begun:
            self.journal.write([self._now({"end": why})])

    def _now(self, line: Dict[str, Any]) -> Dict[str, Any]:
        """The line with the time before it: of the wall, and since boot."""
        return {"time": self.clock.wall(), "up": self.clock.up(), **line}

    def _compare(self, source: Source, answer: Values) -> List[Dict[str, Any]]:
        up = self.clock.up()
        first = source.seen == 0.0
        lines = []
        for part, key in sorted(set(source.values) | set(answer)):
            was, value = source.values.get((part, key)), answer.get((part, key))
            if was != value:
                lines.append(self._now(change(None if first else source.seen, part, key, was, value)))
            if key == "state":
                self._count(part, was, value, up)
        source.values, source.seen = answer, up
        return lines

    def _count(self, part: str, was: Optional[Value], value: Optional[Value], up: float) -> None:
        if value is None or value in _UP or value == _OFF:
            self.down_since.pop(part, None)
        elif part not in self.down_since:
            self.down_since[part] = up
            if was in _UP:
                self.downs[part] = self.downs.get(part, 0) + 1

    def _state_of(self, source: Source) -> List[Dict[str, Any]]:
        """Whether a source hangs or fails, where that changed."""
        state = "hangs" if source.hangs else "answers" if source.answers else "no answer"
        was = self._hanging.get(source.name, "answers")
        self._hanging[source.name] = state
        return [] if state == was else [self._now(change(source.seen, SELF, source.name, was, state))]

    def _news(self) -> List[Dict[str, Any]]:
        lines = []
        for event in self.kernel.news(self.clock.up()) if self.kernel is not None else ():
            key = (event.part, event.code)
            if key in self.xids or len(self.xids) < MAX_XIDS:
                self.xids[key] = self.xids.get(key, 0) + 1
            lines.append(self._now({"part": event.part, "event": "xid", "code": event.code, "text": event.text}))
        return lines

    def _write(self, lines: List[Dict[str, Any]]) -> None:
        up = self.clock.up()
        if self.journal is None:
            return
        if self.journal.full:
            self.journal.rotate()
            self._begun = False
        if not self._begun:
            # The snapshot has the changes in it; what happened on the way stands before it.
            events = [line for line in lines if "event" in line or line.get("seen") is not None]
            lines = [self._header(), *events, *(self._now(line) for line in snapshot(self.values))]
            self._begun = True
        elif not lines and up - self._wrote >= ALIVE_S:
            lines = [self._now({"alive": True})]
        if lines:
            self.journal.write(lines)
            self._wrote = up

    def _header(self) -> Dict[str, Any]:
        sees = {source.name: "%d values" % len(source.values) for source in self.sources}
        if self.kernel is not None:
            sees["kernel"] = self.kernel.why or "Xids"
        return self._now(header(self.host, self.boot, self.every_s, sees))


def is_up(value: Value) -> Optional[bool]:
    """Whether a state carries traffic; None where it is neither up nor down."""
    return None if value == _OFF else value in _UP
