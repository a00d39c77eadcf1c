"""The kernel's messages of interest, from `dmesg` and `journalctl -k` in any of their time formats."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host import systemctl
from topodiag.evidence.interface import MAX_LINE, Blob, Parsed, Source, to_float
from topodiag.evidence.page import Page
from topodiag.evidence.signatures.engine import LineMatch, Place, first_of, lines_of
from topodiag.evidence.signatures.entry import Signature
from topodiag.model.busid import normalise_bus_id
from topodiag.model.clock_text import seconds
from topodiag.model.events import Event, Scope, Trust
from topodiag.words.dialect import Maker
from topodiag.words.own_data import byte_patterns, patterns

HEAD_CHARS = 1 << 16
MAX_EVENTS = 2000
"""Events kept, the newest: a faulty link writes millions of the same line."""
LEAST_WHOLE = 200
"""Lines of the kernel's from which on a text that somebody gave is called a log, and not lines chosen from one: Linux
writes more while it boots."""
LEAST_AT_WORK_S = 600.0
"""Seconds that a log has to go on below the load of a driver to show, without another word of it, that it met no fault:
of a GPU that fails at once it tells while the machine starts its services."""
MAX_HEAD = 160
"""Characters of a line in which the kernel's stamp and name stand."""
MAX_TEXT = 500
"""Characters kept of one message."""

_LIKE = patterns("evidence/host/lines", "kernel_log")
_IN_TEXT = byte_patterns("evidence/host/lines", "kernel_bytes", re.MULTILINE)

FAMILY = "kernel"


_LOAD = b"NVRM: loading "
_Record = tuple[Place, float | None, str, LineMatch]
"""A line that an entry of the kernel's takes: place, time, message, and what it reads there."""


class KernelLog(Source):
    """Reads the events of interest; every other line is no news and is passed over.

    `time_s` is seconds since boot where the log has them, otherwise seconds since the epoch (a clock without a zone
    is read as UTC), otherwise unknown.
    """

    def recognises(self, head: str) -> bool:
        """By the kernel's stamp or name on half of the lines, or by an event of interest."""
        lines = [line[:MAX_HEAD] for line in head[:HEAD_CHARS].split("\n") if line.strip()][:400]
        own = sum("kernel: " in line or _LIKE["stamped"].match(line) is not None for line in lines)
        if own >= 1 and own * 2 >= len(lines) and not any(" NCCL " in line for line in lines):
            return True
        return next(_matches(head.encode("utf-8", "replace")), None) is not None

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        newest: deque[_Record] = deque(maxlen=MAX_EVENTS)
        count = 0
        data = _IN_TEXT["build"].sub(lambda section: b"\n" * section[0].count(b"\n"), blob.plain)
        for match in _matches(data):
            count += 1
            newest.append(match)
        works = dict(_works(data)) if b"BUG: " in data or b"BUG at " in data else {}
        parsed.records.extend(_event(blob, record, works.get(record[0][0])) for record in newest)
        # A last line without its end is that of a text that was cut. Lines of others, of a job or a book, are no log.
        own = sum(1 for _ in islice(_IN_TEXT["own"].finditer(data), LEAST_WHOLE))
        parsed.partial = blob.item is None and (own < LEAST_WHOLE or not data.endswith(b"\n"))
        if count > MAX_EVENTS:
            parsed.leave(blob, None, "", f"{count - MAX_EVENTS} older events were counted and not kept")
        draft.events += parsed.records
        # Also where the driver has nothing to complain of.
        if b"NVRM: " in data:
            draft.makers.add(Maker.NVIDIA)
            draft.only_loads.add(_only_loads(data))
        elif b"amdgpu" in data and b"nvidia" not in data:
            draft.makers.add(Maker.AMD)
        systemctl.offer_units(systemctl.units(Page(blob, draft)))  # a journal holds both
        return parsed


def _works(data: bytes) -> Iterator[tuple[int, str]]:
    """The lines of faults of the kernel's own code, each with the module whose work it did."""
    number, begin = 1, 0
    for work in _IN_TEXT["work"].finditer(data):
        number, begin = number + data.count(b"\n", begin, work.start()), work.start()
        yield number, work[1].decode()


def _only_loads(data: bytes) -> bool:
    """Whether NVIDIA's driver says nothing but that it is loaded, and the log does not go on for a while by a clock of
    both lines."""
    if data.count(b"NVRM: ") > data.count(_LOAD) or _LOAD not in data:
        return False
    before, _, after = data.rstrip().partition(_LOAD)
    load_s, last_s = (_logged_s(text.rpartition(b"\n")[2].decode("utf-8", "replace")) for text in (before, after))
    return load_s is None or last_s is None or last_s - load_s < LEAST_AT_WORK_S


def _logged_s(line: str) -> float | None:
    """The time of a line; of a date without a year in some year."""
    dated = _LIKE["syslog"].match(line)
    when, _ = _split(line[:MAX_LINE])
    return seconds(f"Mon {dated[1]} 2000") if when is None and dated is not None else when


def _matches(data: bytes) -> Iterator[_Record]:
    """The lines that an entry of the kernel's takes."""
    for number, raw, entries in lines_of(FAMILY, data):
        line = raw.decode("utf-8", "replace")[:MAX_LINE]
        when, message = _split(line.strip())
        taken = first_of(entries, message)
        if taken is not None:
            yield (number, line), when, message, taken


def _event(blob: Blob, record: _Record, module: str | None) -> Event:
    place, when, message, taken = record
    fields = taken.fields if module is None else {**taken.fields, "module": module}
    if "bus_id" not in fields and (bus_id := _bus_of(taken.entry, message)) is not None:
        fields = {**fields, "bus_id": bus_id}
    # An agent that writes to the log is quoted by it: the line is the log's.
    kind = taken.entry.says.removeprefix(f"{FAMILY}.")
    line = place[1].strip()
    dated, zoned = _LIKE["syslog"].match(line), _LIKE["zoned"].search(line[:MAX_HEAD])
    date = " ".join(dated[1].split()) if dated is not None else "".join(zoned.groups()) if zoned is not None else ""
    return Event(kind, taken.entry.id, message[:MAX_TEXT], blob.origin(*place), fields, time_s=when, date=date)


def _split(line: str) -> tuple[float | None, str]:
    """The time and the message, without the sender's name."""
    facility = _LIKE["facility"].match(line)
    when, message = _stamped(line[facility.end() :] if facility is not None else line)
    sender, kernel, rest = message[:MAX_HEAD].partition("kernel:")
    if kernel and len(sender.split()) < 2 and not sender.rstrip().endswith(":"):
        later, own = _stamped((rest + message[MAX_HEAD:]).lstrip(" "))
        return (when, own) if when is not None else (later, own)
    return when, message


def _stamped(line: str) -> tuple[float | None, str]:
    """A time before a message, and what is behind it: in brackets, of ISO 8601, of syslog (whose host goes with it), or
    that of /dev/kmsg itself: level, number, microseconds since boot and flags."""
    stamp, bracket, _ = line[1:64].partition("]") if line.startswith("[") else ("", "", "")
    if bracket:
        when = to_float(stamp) if stamp.strip()[:1].isdecimal() else seconds(stamp)
        return (when, line[len(stamp) + 2 :].removeprefix(" ")) if when is not None else (None, line)
    day, _, rest = line[:64].partition(" ")
    if day[:4].isdecimal() and day[4:5] == "-":
        stamp = day if "T" in day else f"{day} {rest.partition(' ')[0]}"
        when = seconds(_LIKE["fraction"].sub("", stamp))
        return (when, line[len(stamp) + 1 :]) if when is not None else (None, line)
    fields = line[:MAX_HEAD].partition(";")[0].split(",")
    if len(fields) > 3 and all(field.isdecimal() for field in fields[:3]):
        return int(fields[2]) / 1e6, line.partition(";")[2]
    syslog = _LIKE["syslog"].match(line)
    return None, line[syslog.end() :] if syslog is not None else line


def _bus_of(entry: Signature, message: str) -> str | None:
    """The first device that a message names; of an agent's, which may list several, the only one."""
    named = list(dict.fromkeys(_LIKE["any_bus"].findall(message))) if entry.scope is Scope.DEVICE else []
    if not named or (len(named) > 1 and entry.trust is Trust.AGENT):
        return None
    return normalise_bus_id(named[0])
