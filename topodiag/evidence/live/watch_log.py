"""HOST.watch.jsonl of `topodiag watch`: the states of a node's links from change to change, and its Xids.

A file begins with a line about the node and with all values; a watch that starts again writes the same. Between two
lines of one start each state goes on as it was last told.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from topodiag.evidence.json_values import decoded, number
from topodiag.lazy import dataclass
from topodiag.model.history import FALLS, OFF, PartStates, Spell
from topodiag.words.states import GOOD

MAX_LINE = 1 << 16
MAX_PARTS = 20_000
MAX_SECONDS = 1e11
FALL_S = 60.0
"""A counter of falls may be read this much later than the state that it belongs to."""
_SELF = "watch"


@dataclass(frozen=True, slots=True)
class XidSeen:
    """One Xid: when in Unix seconds, of which GPU (its bus id), and its code."""

    time_s: float
    boot: str
    part: str
    code: int


@dataclass(slots=True)
class WatchLog:
    """What a file says of one node. `end_s` is the Unix time of the last line; `unread` counts lines that are none."""

    host: str
    states: tuple[PartStates, ...] = ()
    xids: list[XidSeen] = field(default_factory=list)
    end_s: float | None = None
    unread: int = 0


def read_watch(data: bytes) -> WatchLog | None:
    """The file as spells of states; None where no line names the node. Any bytes are read; a file of several nodes is
    that of the first."""
    reader = _Reader()
    for text in filter(bytes.strip, data.split(b"\n")):
        line, _ = decoded(text.decode("utf-8", "replace")) if len(text) <= MAX_LINE else (None, "")
        if isinstance(line, dict):
            reader.take(line)
        else:
            reader.log.unread += 1
    reader.close_all()
    reader.log.states = tuple(PartStates(part, tuple(spells)) for part, spells in sorted(reader.spells.items()))
    return reader.log if reader.log.host else None


@dataclass(slots=True)
class _Reader:
    log: WatchLog = field(default_factory=lambda: WatchLog(""))
    boot: str = ""
    spells: dict[str, list[Spell]] = field(default_factory=dict)
    open: dict[str, Spell] = field(default_factory=dict)
    """The spells that parts are in, which have not lasted yet."""
    sampled_s: float = 0.0
    """When the last sample was taken that can vouch for all states, in seconds since boot."""
    hangs: set[str] = field(default_factory=set)
    values: dict[tuple[str, str], str] = field(default_factory=dict)

    def take(self, line: dict[str, Any]) -> None:
        time_s, up_s = number(line.get("time"), MAX_SECONDS), number(line.get("up"), MAX_SECONDS)
        if "watch" in line and isinstance(line.get("host"), str):
            self._start(line)
        elif not self.log.host or time_s is None or up_s is None:
            self.log.unread += "lost" not in line
            return
        if time_s is None or up_s is None:
            return
        if line.get("part") == _SELF:
            (self.hangs.add if line.get("value") == "hangs" else self.hangs.discard)(str(line.get("key")))
        elif line.get("event") == "xid":
            self._xid(line, time_s)
        elif isinstance(line.get("part"), str) and isinstance(line.get("key"), str):
            self._value(line, time_s, up_s)
        if not self.hangs:
            self.sampled_s = max(self.sampled_s, up_s)
        self.log.end_s = max(self.log.end_s or time_s, time_s)

    def _start(self, line: dict[str, Any]) -> None:
        boot = str(line.get("boot") or "")[:64]
        self.log.host = self.log.host or str(line["host"])[:255]
        if boot != self.boot:
            self.close_all()
            self.boot, self.sampled_s = boot, 0.0
            self.values.clear()
        self.hangs.clear()

    def _xid(self, line: dict[str, Any], time_s: float) -> None:
        code = line.get("code")
        if isinstance(code, int) and 0 <= code < 1 << 31:
            self.log.xids.append(XidSeen(time_s, self.boot, str(line.get("part"))[:64], code))

    def _value(self, line: dict[str, Any], time_s: float, up_s: float) -> None:
        part, key, value = line["part"][:128], line["key"], line.get("value")
        if key in ("state", "phys_state"):
            if len(self.values) < MAX_PARTS or (part, key) in self.values:
                self.values[part, key] = str(value)[:64] if value is not None else ""
            self._state(part, number(line.get("seen"), MAX_SECONDS), time_s, up_s)
        elif key in FALLS and part in self.open:
            before, held = line.get("was"), self.open[part]
            rose = isinstance(before, int) and isinstance(value, int) and value > before
            if rose and held.state.lower() not in GOOD and up_s > held.first_s + FALL_S:
                self.open[part] = replace(held, fallen=held.fallen + 1)

    def _state(self, part: str, seen_s: float | None, time_s: float, up_s: float) -> None:
        """The state that a part is in now: switched off where the port says so beside being down."""
        state = self.values.get((part, "state"), "")
        physical = self.values.get((part, "phys_state"), "")
        if state.lower() not in GOOD and physical in OFF:
            state = physical
        held = self.open.get(part)
        if held is not None and held.state == state:
            return
        if held is not None and held.first_s == up_s:
            self.open[part] = replace(held, state=state)  # state and physical state are two lines of one sample
            return
        if held is not None:
            self._close(part, seen_s if seen_s is not None else self.sampled_s)
        if state:
            self.open[part] = Spell(state, self.boot, up_s, up_s, time_s)

    def _close(self, part: str, last_s: float) -> None:
        held = self.open.pop(part)
        self.spells.setdefault(part, []).append(replace(held, last_s=max(held.first_s, last_s)))

    def close_all(self) -> None:
        for part in list(self.open):
            self._close(part, self.sampled_s)
