"""What systemd says of the services that a GPU node needs: `systemctl show`, `status`, `is-active`, `list-units`, and
its lines in the journal.

What systemd writes into the journal of the units that a GPU node needs (started, failed, stopped), and what NVIDIA's
daemons write into logs of their own.

Wording: src/core/unit.c, service.c and job.c of systemd (`Started ...`, `Failed to start ...`, `UNIT: Failed with
result`), which names a unit by its description where it starts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from topodiag.evidence.page import Line, OfPage, Page
from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data, patterns

_SYSTEMD = "systemd[1]: "
_DESCRIBED = {"fabric manager": "nvidia-fabricmanager", "fabricmanager": "nvidia-fabricmanager", "imex": "nvidia-imex"}
"""Words of a unit's description, by which systemd names it where it starts it."""
_LIKE = patterns("evidence/host/lines", "systemctl")
_STANDS = ("successfully configured", "successfully initiali", "identified this node as id", "all nodes are connected")
_WORDS = {"Started": "active", "Failed to start": "failed", "Stopped": "inactive"}


@dataclass(frozen=True, slots=True)
class UnitState:
    """A state of a unit: systemd's word, or that it is not installed, and the line that says it."""

    name: str
    word: str
    line: Line


def units(page: Page) -> tuple[UnitState, ...]:
    """NVIDIA's units in the order in which a journal first names them, each as its last line leaves it."""
    data = page.blob.data
    daemon = _daemon_of(data)
    if _SYSTEMD.encode() not in data and not daemon:
        return ()
    last: dict[str, UnitState] = {}
    for number, text in page.blob.lines():
        pair = None
        if daemon and (word := _of_daemon(text[:1000])):
            pair = daemon, word
        elif _SYSTEMD in text:
            pair = _state(text[:1000])
        # The first of several errors says why. `Failed to start` and `Failed with result` follow the line that tells
        # how it ended: that one is kept.
        if pair is not None and (pair[0] not in last or last[pair[0]].word != pair[1]):
            last[pair[0]] = UnitState(*pair, Line(page, number, text))
    return tuple(last.values())


def _daemon_of(data: bytes) -> str:
    """The unit of a daemon's own log, "" where the text is none."""
    if b"] [tid " not in data:
        return ""
    return "nvidia-imex" if re.search(rb"\bIMEX\b|nvidia-imex", data[:65536]) else "nvidia-fabricmanager"


def _of_daemon(text: str) -> str:
    """The state in which a line of the daemon's own log leaves it, "" where it says none: failed by an error after
    which it ends, active by a success. Fabric Manager and IMEX share the form of /var/log/fabricmanager.log and
    /var/log/nvidia-imex.log: `[May 06 2024 08:11:01] [ERROR] [tid 1] ` before what they say."""
    before, _, rest = text.partition("] [tid ")
    level, message = before.rpartition("[")[2].strip(), rest.partition("] ")[2].lower()
    if not message or message.startswith("detected "):  # a fault of a link, of which it goes on to tell
        return ""
    if level in ("ERROR", "FATAL") and _LIKE["gives_up"].search(message):
        return "failed"
    return "active" if any(words in message for words in _STANDS) else ""


def _state(text: str) -> tuple[str, str] | None:
    """The unit that a line of the journal is of, and the state in which it leaves it."""
    message = text.partition(_SYSTEMD)[2]
    unit, colon, rest = message.partition(".service: ")
    if colon and " " not in unit:
        return (unit, "failed") if unit.startswith("nvidia-") and _LIKE["ended"].match(rest) else None
    word = next((word for start, word in _WORDS.items() if message.startswith(f"{start} ")), "")
    name = next((unit for words, unit in _DESCRIBED.items() if words in message.lower()), "")
    return (name, word) if name and word else None


_PROPERTIES = frozenset({"Id", "LoadState", "ActiveState", "SubState", "Result"})
_STATUS = {"Loaded:": "LoadState", "Active:": "ActiveState"}
_MARKS = "●○×↻*"
NOT_FOUND = "not-found"
_STATES = frozenset(own_data("evidence/host/names")["unit_states"])
"""Unit states of org.freedesktop.systemd1; `is-active` says `unknown` or `inactive` of a unit that it does not know."""


@dataclass(slots=True)
class _Block:
    """The unit that the lines just read describe: by its first line, or that of its state."""

    line: Line
    values: dict[str, str]

    def read_status(self, words: list[str], line: Line) -> bool:
        """Take `Loaded:` and `Active:` of `systemctl status`; the line of the state becomes the unit's line."""
        name = _STATUS.get(words[0]) if len(words) > 1 else None
        if name == "ActiveState" and name not in self.values:
            self.line = line
        if name is not None:
            self.values.setdefault(name, words[1])
        return name is not None


class Systemctl(OfPage):
    """Reads units from any of systemctl's outputs, and from a journal."""

    def read_page(self, page: Page) -> None:
        listed = list(_listed(page))
        # `systemctl status` shows lines of the journal below the state that they led to.
        names = {unit.name.removesuffix(".service") for unit in listed}
        offer_units([*listed, *(unit for unit in units(page) if unit.name not in names)])


def offer_units(states: Iterable[UnitState]) -> None:
    """Offer the states of services."""
    for unit in states:
        word = None if unit.word == "unknown" else unit.word
        services = unit.line.page.draft.single("services")
        unit.line.offer(services, unit.name.removesuffix(".service"), word, "systemd does not know its state")


def _listed(page: Page) -> Iterator[UnitState]:
    """The units in outputs of systemctl."""
    block: _Block | None = None
    asked = ""
    for number, text in page.blob.lines():
        line, words = Line(page, number, text), text.strip().lstrip(_MARKS).split()
        name, equals, value = text.strip().partition("=")
        if asked and text.strip() in _STATES:
            yield UnitState(asked, text.strip(), line)
            asked = ""
        elif equals and name in _PROPERTIES:
            # A second value of a property begins the next unit, even where the blank line got lost.
            if block is None or name in block.values:
                yield from _closed(block)
                block = _Block(line, {})
            block.values[name] = value
        elif _is_head(text, words):
            yield from _closed(block)
            block = _Block(line, {"Id": words[0]})
        elif block is not None and block.read_status(words, line):
            continue
        elif not words or text == "--":
            if block is not None and "ActiveState" in block.values:
                yield from _closed(block)
                block = None
        elif (unit := _of_line(line, words)) is not None:
            yield unit
        elif words[-3:-1] == ["systemctl", "is-active"]:
            asked = words[-1]
    yield from _closed(block)


def _of_line(line: Line, words: list[str]) -> UnitState | None:
    """The unit that a line says is not there, or whose row it is in a list."""
    if missing := _LIKE["not_found"].fullmatch(line.text.strip()):
        return UnitState(missing[1] or missing[2], NOT_FOUND, line)
    if len(words) > 3 and words[0].endswith(".service") and words[1] in ("loaded", NOT_FOUND, "masked"):
        return UnitState(words[0], NOT_FOUND if words[1] == NOT_FOUND else words[2], line)
    return None


def _is_head(text: str, words: list[str]) -> bool:
    """Whether a line is the first of `systemctl status`: `● nvidia-fabricmanager.service - NVIDIA fabric manager`."""
    return text[:1] in _MARKS and words[1:2] == ["-"] and words[0].endswith(".service")


def _closed(block: _Block | None) -> Iterator[UnitState]:
    """The unit of a block, where it has a name and a state."""
    if block is None:
        return
    line, values = block.line, block.values
    name, load, active = values.get("Id", ""), values.get("LoadState", ""), values.get("ActiveState", "")
    if not _LIKE["unit"].fullmatch(name):
        line.leave("a unit without a name")
    elif active not in _STATES and load != NOT_FOUND:
        line.leave("a unit without a known state")
    else:
        if active not in line.text:  # Id may come anywhere in the block: its first line is quoted as what it says
            line = Line(line.page, line.number, f"Id={name} LoadState={load} ActiveState={active}")
        yield UnitState(name, NOT_FOUND if load == NOT_FOUND else active, line)
