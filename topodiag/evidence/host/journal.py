"""What systemd writes into the journal of the units that a GPU node needs (started, failed, stopped), and what NVIDIA's
daemons write into logs of their own.

Wording: src/core/unit.c, service.c and job.c of systemd (`Started ...`, `Failed to start ...`, `UNIT: Failed with
result`), which names a unit by its description where it starts it.
"""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob
from topodiag.lazy import dataclass, regex

_UNIT = regex(r"systemd\[1\]: ([A-Za-z0-9:_.\\@-]{1,120})\.service: (.{0,200})")
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
SIGN = regex(
    r"systemd\[1\]: (?:nvidia-\S{1,80}\.service: |(?:Started|Failed to start) .{0,40}(?i:fabric ?manager|IMEX))"
    r"|^(?:IMEX|Fabric Manager) Log initializing"
    r"|^\[[A-Z][a-z]{2} {1,2}\d{1,2} \d{4} [\d:]{8}\] \[\w{3,9} {0,4}\] \[tid \d",
    re.MULTILINE,
)
"""A line by which a text is known to tell of such a unit."""


@dataclass(frozen=True, slots=True)
class UnitState:
    """The last state of a unit that a journal tells of: systemd's word, and the line that says it."""

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
        elif "systemd[1]: " in text and (found := _state(text[:1000])) is not None:
            name, word = found
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
    found = _DAEMON.search(text)
    if found is None:
        return ""
    if found[2].startswith("detected "):
        return ""  # a fault of a link, of which it goes on to tell
    if found[1] in ("ERROR", "FATAL") and _GIVES_UP.search(found[2]):
        return "failed"
    return "active" if _STANDS.search(found[2]) else ""


def _state(text: str) -> tuple[str, str] | None:
    if match := _UNIT.search(text):
        return (match[1], "failed") if match[1].startswith("nvidia-") and _ENDED.match(match[2]) else None
    if match := _JOB.search(text):
        name = next((unit for pattern, unit in _DESCRIBED if pattern.search(match[2])), None)
        return (name, _WORDS[match[1]]) if name is not None else None
    return None
