"""What systemd says of the services that a GPU node needs: `systemctl show`, `status`, `is-active`, `list-units`, and
its lines in the journal.

What systemd writes into the journal of the units that a GPU node needs (started, failed, stopped), and what NVIDIA's
daemons write into logs of their own.

Wording: src/core/unit.c, service.c and job.c of systemd (`Started ...`, `Failed to start ...`, `UNIT: Failed with
result`), which names a unit by its description where it starts it.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.topics import Topic

_JOURNAL_UNIT = regex(r"systemd\[1\]: ([A-Za-z0-9:_.\\@-]{1,120})\.service: (.{0,200})")
_JOB = regex(r"systemd\[1\]: (Started|Failed to start|Stopped) (.{1,120}?)\.?\s*$")
_DESCRIBED = (
    (regex(r"\bfabric ?manager\b", re.IGNORECASE), "nvidia-fabricmanager"),
    (regex(r"\bIMEX\b", re.IGNORECASE), "nvidia-imex"),
)
_ENDED = regex(r"(?:Main|Control) process exited, code=(?:exited, status=[1-9]|killed|dumped)|Failed with result ")
_DAEMON = regex(r"\[[A-Z][a-z]{2} {1,2}\d{1,2} \d{4} [\d:]{8}\] \[(\w{3,9}) {0,4}\] \[tid \d{1,9}\] (.{1,400})")
"""Fabric Manager and IMEX share the form of their logs, /var/log/fabricmanager.log and /var/log/nvidia-imex.log."""
_GIVES_UP = regex(
    r"[Nn]o matching network interface|[Ff]ailed to (?:start|initiali[sz]e|bind|parse|open|configure|load|create)"
    r"|[Rr]equest to query NVSwitch .{1,120} failed|[Uu]nable to|[Aa]bort|[Ee]xiting|[Mm]ust match|not compatible"
    r"|[Ff]atal"
)
_STANDS = regex(r"[Ss]uccessfully (?:configured|initiali[sz]ed)|Identified this node as ID|All nodes are connected")
_WORDS = {"Started": "active", "Failed to start": "failed", "Stopped": "inactive"}


@dataclass(frozen=True, slots=True)
class UnitState:
    """The last state of a unit: systemd's word, or that it is not installed, and the line that says it."""

    name: str
    word: str
    line: int
    text: str


def units(blob: Blob) -> tuple[UnitState, ...]:
    """NVIDIA's units in the order in which the text first names them, each as its last line leaves it."""
    daemon = _daemon_of(blob.data)
    if b"systemd[1]: " not in blob.data and not daemon:
        return ()
    last: dict[str, UnitState] = {}
    for number, text in blob.lines():
        if daemon and (word := _of_daemon(text[:1000])):
            if daemon not in last or last[daemon].word != word:  # the first of several errors says why
                last[daemon] = UnitState(daemon, word, number, text)
        elif "systemd[1]: " in text and (pair := _state(text[:1000])) is not None:
            name, word = pair
            held = last.get(name)
            # `Failed to start` and `Failed with result` follow the line that tells how it ended: that one is kept.
            if held is None or held.word != word:
                last[name] = UnitState(name, word, number, text)
    return tuple(last.values())


def _daemon_of(data: bytes) -> str:
    """The unit of a daemon's own log, "" where the text is none."""
    if b"] [tid " not in data:
        return ""
    return "nvidia-imex" if re.search(rb"\bIMEX\b|nvidia-imex", data[:65536]) else "nvidia-fabricmanager"


def _of_daemon(text: str) -> str:
    """The state in which a line of the daemon's own log leaves it, "" where it says none: failed by an error after
    which it ends, active by a success."""
    match = _DAEMON.search(text)
    if match is None:
        return ""
    if match[2].startswith("detected "):
        return ""  # a fault of a link, of which it goes on to tell
    if match[1] in ("ERROR", "FATAL") and _GIVES_UP.search(match[2]):
        return "failed"
    return "active" if _STANDS.search(match[2]) else ""


def _state(text: str) -> tuple[str, str] | None:
    if match := _JOURNAL_UNIT.search(text):
        return (match[1], "failed") if match[1].startswith("nvidia-") and _ENDED.match(match[2]) else None
    if match := _JOB.search(text):
        name = next((unit for pattern, unit in _DESCRIBED if pattern.search(match[2])), None)
        return (name, _WORDS[match[1]]) if name is not None else None
    return None


_UNIT = r"[A-Za-z0-9:_.\\@-]{1,120}"
_PROPERTY = regex(r"(Id|LoadState|ActiveState|SubState|Result)=(.{0,200})")
NOT_FOUND = "not-found"
_STATUS_HEAD = regex(rf"(?:[●○×↻*] ?)({_UNIT}\.service)(?: - .*)?")
_STATUS_LOADED = regex(r"\s+Loaded: ([a-z-]+)\b")
_STATUS_ACTIVE = regex(r"\s+Active: ([a-z-]+)\b")
_NOT_FOUND = regex(
    rf"(?:Failed to [a-z -]{{2,24}}(?: {_UNIT})?: )?Unit (?:file )?({_UNIT}) (?:could not be found|not found"
    r"|does not exist)\.?"
    rf"|Failed to get unit file state for ({_UNIT}): No such file or directory"
)
_NO_PACKAGE = regex(
    r"(?:dpkg-query: )?(?:no packages? found matching|package) '?\*?(?:nvidia|cuda)-fabric-?manager(?:-\*|\*)?'?"
    r"(?: is not installed.{0,60})?",
    re.IGNORECASE,
)
"""Of dpkg and rpm, where the name bears no version: another one may be installed."""
_LISTED = regex(rf"\s{{0,4}}(?:[●○×*] )?({_UNIT}\.service)\s+(loaded|not-found|masked)\s+([a-z]+)\s+([a-z-]+)\b")
_ASKED = regex(rf"\S{{0,80}}[$#>]\s*(?:sudo )?systemctl is-active ({_UNIT})\s*")
_STATES = frozenset(
    {"active", "inactive", "failed", "activating", "deactivating", "reloading", "maintenance", "unknown"}
)
"""Unit states of org.freedesktop.systemd1; `is-active` says `unknown` or `inactive` of a unit that it does not know."""


@dataclass(slots=True)
class _Block:
    """The unit that the lines just read describe."""

    line: int
    text: str
    values: dict[str, str]


class Systemctl(Source[UnitState]):
    """Reads units from any of systemctl's outputs, and from a journal."""

    kind = "systemctl"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 70

    def parse(self, blob: Blob) -> Parsed[UnitState]:
        parsed: Parsed[UnitState] = Parsed()
        block: _Block | None = None
        asked: str | None = None
        for number, text in blob.lines():
            if asked is not None and text.strip() in _STATES:
                parsed.records.append(UnitState(asked, text.strip(), number, text))
                asked = None
                continue
            given = _PROPERTY.fullmatch(text.rstrip())
            if given is not None:
                # A second value of a property begins the next unit, even where the blank line got lost.
                if block is None or given[1] in block.values:
                    _close(blob, parsed, block)
                    block = _Block(number, text, {})
                block.values[given[1]] = given[2]
            elif head := _STATUS_HEAD.fullmatch(text.rstrip()):
                _close(blob, parsed, block)
                block = _Block(number, text, {"Id": head[1]})
            elif block is not None and _read_status(block, number, text):
                continue
            elif not text.strip() or text == "--":
                if block is not None and "ActiveState" in block.values:
                    _close(blob, parsed, block)
                    block = None
            elif missing := _missing(text.strip()):
                parsed.records.append(UnitState(missing, NOT_FOUND, number, text))
            elif listed := _LISTED.match(text):
                word = NOT_FOUND if listed[2] == NOT_FOUND else listed[3]
                parsed.records.append(UnitState(listed[1], word, number, text))
            elif question := _ASKED.fullmatch(text):
                asked = question[1]
        _close(blob, parsed, block)
        parsed.records += _of_journal(blob, {unit.name.removesuffix(".service") for unit in parsed.records})
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[UnitState], draft: NodeDraft) -> None:
        services = draft.single("services")
        for unit in parsed.records:
            origin = blob.origin(unit.line, unit.text)
            name = unit.name.removesuffix(".service")
            if unit.word == "unknown":
                services.unread(name, "systemd does not know its state", origin)
            else:
                services.offer(name, unit.word, origin)


def _of_journal(blob: Blob, texts: set[str]) -> list[UnitState]:
    """`systemctl status` shows lines of the journal below the state that they led to."""
    return [state for state in units(blob) if state.name not in texts]


def _missing(line: str) -> str:
    """The unit that a line says is not installed, "" for none."""
    if _NO_PACKAGE.fullmatch(line) is not None:
        return "nvidia-fabricmanager"
    match = _NOT_FOUND.fullmatch(line)
    return match[1] or match[2] if match is not None else ""


def _read_status(block: _Block, number: int, text: str) -> bool:
    """Take `Loaded:` and `Active:` of `systemctl status`; the line of the state becomes the unit's line."""
    if loaded := _STATUS_LOADED.match(text):
        block.values.setdefault("LoadState", loaded[1])
        return True
    if active := _STATUS_ACTIVE.match(text):
        if "ActiveState" not in block.values:
            block.values["ActiveState"] = active[1]
            block.line, block.text = number, text
        return True
    return False


def _close(blob: Blob, parsed: Parsed[UnitState], block: _Block | None) -> None:
    if block is None:
        return
    values = block.values
    name, load, active = values.get("Id", ""), values.get("LoadState", ""), values.get("ActiveState", "")
    if not re.fullmatch(_UNIT, name):
        parsed.leave(blob, block.line, block.text, "a unit without a name")
    elif active not in _STATES and load != NOT_FOUND:
        parsed.leave(blob, block.line, block.text, "a unit without a known state")
    else:
        # Id may come anywhere in the block: the line of record is the block's first, quoted as what it says.
        text = block.text if active in block.text else f"Id={name} LoadState={load} ActiveState={active}"
        parsed.records.append(UnitState(name, NOT_FOUND if load == NOT_FOUND else active, block.line, text))
