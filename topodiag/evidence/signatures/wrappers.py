"""What launchers, schedulers and loggers put around a line, taken off once for all readers of sentences.

    [1,3]<stdout>: ...                       Open MPI --tag-output          rank 3
    3: ...                                   srun --label                   rank 3
    [rank3]: ...                             torch                          rank 3
    (RayWorker pid=81, ip=10.0.0.4) ...      Ray                            pid, host
    (Worker_TP0 pid=593) ...                 vLLM                           pid
    [pod/trainer-0/main] ...                 kubectl logs --prefix          host
    gpu-001: ...                             pdsh, clush                    host
    2026-03-02T07:02:11+0000 n1 kernel: ...  journalctl -o short-iso        time, host
    Mar  2 07:02:11 n1 kernel: ...           syslog                         host
    2026-03-02T07:02:11.5Z stdout F ...      CRI                            time
    2026-03-02 07:02:11,5 - x - INFO - ...   Python's logging               time
    {"time": ..., "host": ..., "msg": ...}   JSON lines, journald exports   time, host, pid

A wrapper inside a wrapper is taken off too. What is left is the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from math import isnan, nan
from typing import Any

import msgspec

from topodiag.lazy import dataclass, regex
from topodiag.words.colours import without_colours
from topodiag.words.own_data import own_data, patterns

MAX_LAYERS = 5
MOST_MEMBERS = 32
"""Texts of one object that are looked through for a sentence."""
LEAST_LABELLED, LEAST_OF_HOST = 2, 3
"""Lines that must share a label, and a name before a colon: fewer prove nothing."""
MAX_DEPTH = 4
"""Objects inside objects that are looked through for a message."""

_PARTS = ("year", "month", "day", "hour", "minute", "second")
_TABLES = own_data("evidence/signatures/wrappers")
_LIKE = patterns("evidence/signatures/wrappers", "pattern")
LABELS = {name: _LIKE[name] for name in _TABLES["labels"]}
"""What puts a label before every line that a program prints, by name."""
_OF_JOBS = tuple(name for name in LABELS if name != "host")
"""Labels that say of a text what it is by themselves; a name before a colon stands before anything."""
_OF_LAUNCHERS, _LAYERS = (tuple(_LIKE[name] for name in _TABLES[of]) for of in ("launchers", "layers"))
_KEYS = {name: tuple(keys) for name, keys in _TABLES["keys"].items()}
"""Members of JSON lines that hold the message, host, time, process and rank."""

_MOST_AT_END = 50
INSIDE = regex(r"\[[\w.@-]{0,100}\d{1,6},\d{1,6}\](?:<std(?:out|err)>)?:?|\[\d{1,6}\](?!\w)")
"""A label of mpirun in the middle of a line, which went on after another process had written."""

Stream = tuple[str, int, int, str]
"""Whose output a line is: host, rank, process and container, as far as its labels name them."""


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """The sentence of a line, and what its wrappers say: "" and -1 for nothing, NaN for no time. `time_s` is seconds
    since the epoch, a clock without a zone read as UTC, or since boot where the kernel stamped it."""

    text: str
    host: str = ""
    rank: int = -1
    pid: int = -1
    time_s: float = nan
    bus_id: str = ""
    """The one PCI address that an object names in another member."""
    container: str = ""
    """The container that docker compose names."""

    @property
    def stream(self) -> Stream:
        """Whose output the line is."""
        return self.host, self.rank, self.pid, self.container


def unwrap(line: str) -> Unwrapped:
    """The line without its wrappers. The innermost host and rank count: a container knows better than its shell."""
    result = Unwrapped(without_colours(line).rstrip("\r\n"))
    for _ in range(MAX_LAYERS):
        inner = _from_json(result) if result.text.lstrip()[:1] == "{" else _without_layer(result)
        if inner is None:
            break
        result = inner
    return result


unwrapped = lru_cache(2048)(unwrap)
"""The same, kept: a line is looked at by itself and among those around it, and many stand there more than once."""


def parted_at_end(text: str) -> tuple[str, str]:
    """A text whose line break was lost, and the label of mpirun or the time behind it, which belong to what follows."""
    label = _LIKE["at_end"].search(text[-_MOST_AT_END:])
    at = len(text) - len(label[0]) if label is not None else len(text)
    return text[:at], text[at:]


def is_label(before: str) -> bool:
    """Whether nothing but what launchers and containers print stands before a sentence."""
    return not before.strip() or _LIKE["only"].fullmatch(unwrap(f"{before}.").text) is not None


def is_of_service(line: str) -> bool:
    """Whether a line of a host's journal is by a program that runs no job: what ends it is the host's own affair."""
    return _LIKE["of_service"].match(line) is not None


def parted_at_place(text: str) -> tuple[str, str, str]:
    """What stands before the head of torch's and glog's logger, the file and line in it, and the sentence behind it."""
    head = _LIKE["place_in_source"].search(text)
    return ("", "", text) if head is None else (text[: head.start()], head[1], text[head.end() :])


def rank_of_torch(text: str) -> str:
    """The rank of the job in torch's own head of a line, as digits; "" without."""
    rank = _LIKE["of_default_group"].search(text)
    return str(int(rank[1])) if rank is not None else ""


def without_launcher(text: str) -> str:
    """A line without the labels of launchers; clocks, hosts and what loggers put there stay."""
    for _ in range(MAX_LAYERS):
        match = next((match for layer in _OF_LAUNCHERS if (match := layer.match(text)) is not None), None)
        if match is None:
            break
        text = text[match.end() :]
    return text


def shared_label(lines: Sequence[str], names: Sequence[str] = _OF_JOBS) -> str:
    """The name of the label that stands before all of these lines, of the same host, rank and process each time; ""
    where they share none, and for the kernel's own messages."""
    for name in names if len(lines) >= LEAST_LABELLED else ():
        pattern = LABELS[name]
        first = pattern.match(lines[0])
        if first is not None and not first[0].endswith(" kernel: "):
            owner = _owner(first)
            if all(_owner(pattern.match(f"{line} ")) == owner for line in lines):  # editors take the last blank away
                return name
    return ""


def without_label(name: str) -> Callable[[str], str]:
    """What takes this label off one line after the other; one of another host, rank or process than the first one's
    stays."""
    owner: tuple[str | None, ...] | None = None

    def bare(line: str) -> str:
        nonlocal owner
        match = LABELS[name].match(f"{line} ")
        owner = owner or _owner(match)
        return line[match.end() :] if match is not None and _owner(match) == owner else line

    return bare


def of_one_process(lines: list[str]) -> list[str]:
    """The lines as one process printed them: without the label or the JSON object around all of them, but for the first
    line, which may be cut; as they are where they have none in common."""
    filled = [line for line in lines[1:] if line.strip()]
    if filled and all(line.startswith("{") for line in filled):
        return lines[:1] + [unwrap(line).text for line in lines[1:]]
    name = shared_label(filled)
    return lines[:1] + list(map(without_label(name), lines[1:])) if name else lines


def of_one_host(text: str) -> tuple[str, str]:
    """The host, or the task of `srun -l`, whose name a parallel shell puts before all lines of a text, and the text
    without it, line for line; "" and the text where they share none. Pasting loses what stands before an empty line."""
    lines = text.split("\n")
    filled = [line for line in lines if line.strip()]
    if len(filled) < LEAST_OF_HOST or not shared_label(filled, ("host",)):
        return "", text
    first = LABELS["host"].match(filled[0])
    return first["host"] if first is not None else "", "\n".join(map(without_label("host"), lines))


def _owner(match: re.Match[str] | None) -> tuple[str | None, ...] | None:
    """Whom a label names: host, rank, process, container."""
    return tuple(match.groupdict().get(name) for name in ("host", "rank", "pid", "name")) if match is not None else None


def without_clock(text: str) -> tuple[str, float]:
    """The text without the first clock in it, and the clock as seconds since the epoch; NaN where there is none."""
    match = _LIKE["iso"].search(text)
    if match is None:
        return text, nan
    begin, end = match.span()
    # Most clocks end with their seconds: no dictionary for each step of a training.
    time_s = epoch(match[0]) if end - begin == 19 else seconds_of(match.groupdict())
    return text[:begin] + text[end:], time_s


def _without_layer(line: Unwrapped) -> Unwrapped | None:
    for layer in _LAYERS:
        match = layer.match(line.text)
        if match is not None and match.end():
            return _with(line, match.groupdict(), line.text[match.end() :])
    return None


def _with(line: Unwrapped, groups: Mapping[str, str | None], text: str) -> Unwrapped:
    time_s = float(boot) if (boot := groups.get("boot")) else seconds_of(groups)
    return replace(
        line,
        text=text,
        host=groups.get("host") or line.host,
        rank=int(groups.get("rank") or line.rank),
        pid=int(groups.get("pid") or line.pid),
        container=groups.get("name") or line.container,
        time_s=line.time_s if isnan(time_s) else time_s,
    )


def seconds_of(groups: Mapping[str, str | None]) -> float:
    """The clock of a match as seconds since the epoch; NaN without a year, and for a date that is none."""
    if not groups.get("year"):
        return nan
    whole = epoch(" ".join(groups[name] or "0" for name in _PARTS))
    zone = (groups.get("zone") or "").strip()
    if zone[:1] in ("+", "-"):
        whole -= (3600 * int(zone[1:3]) + 60 * int(zone[-2:])) * (1 if zone[0] == "+" else -1)
    return whole + (float(f"0.{groups['part']}") if groups.get("part") else 0.0)


def epoch(clock: str) -> float:
    """Seconds since the epoch of the first 19 characters, `2026-03-01 11:00:59` with any marks between the numbers, as
    UTC; NaN for a time that is none."""
    return _minute(clock[:16]) + int(clock[17:19]) if clock[17] < "6" else nan


@lru_cache(64)
def _minute(clock: str) -> float:
    """Seconds since the epoch of `2026-03-01 11:00`, with any marks between the numbers; NaN for one that is none."""
    try:
        date = int(clock[:4]), int(clock[5:7]), int(clock[8:10])
        return datetime(*date, int(clock[11:13]), int(clock[14:16]), tzinfo=UTC).timestamp()
    except ValueError:
        return nan


def members(line: str) -> list[Unwrapped]:
    """The texts of a JSON object with blanks in them, each as a sentence by itself, with what the object says of host,
    rank, time and device; none for a line that is no object."""
    bare = Unwrapped(without_colours(line).strip())
    objects = _objects_of(bare)
    return [_sentence(text, objects, bare) for held in objects for text in _texts(held)][:MOST_MEMBERS]


def _from_json(line: Unwrapped) -> Unwrapped | None:
    """The message of a JSON object, which may stand in an object inside it."""
    objects = _objects_of(line)
    message = _first(objects, "message")
    return _sentence(message, objects, line) if message else None


def _objects_of(line: Unwrapped) -> list[dict[str, Any]]:
    try:
        value = msgspec.json.decode(line.text.strip())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    return list(_objects(value, 0)) if isinstance(value, dict) else []


def _sentence(message: str, objects: list[dict[str, Any]], line: Unwrapped) -> Unwrapped:
    addresses = {
        text for held in objects for text in held.values() if isinstance(text, str) and _LIKE["address"].fullmatch(text)
    }
    return Unwrapped(
        without_colours(message).rstrip("\r\n").replace("\n", " "),
        _first(objects, "host") or line.host,
        _number(objects, "rank", line.rank),
        _number(objects, "pid", line.pid),
        _time(objects, line.time_s),
        addresses.pop() if len(addresses) == 1 else "",
    )


def _texts(held: Mapping[str, Any]) -> Iterator[str]:
    for value in held.values():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and " " in text.strip():
                yield text


def _objects(value: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    yield value
    for inner in value.values():
        for item in inner if isinstance(inner, list) else (inner,):
            if isinstance(item, dict) and depth < MAX_DEPTH:
                yield from _objects(item, depth + 1)


def _values(objects: list[dict[str, Any]], of: str) -> Iterator[tuple[str, Any]]:
    """The members that may hold this, by their names."""
    return ((name, held[name]) for held in objects for name in _KEYS[of] if name in held)


def _first(objects: list[dict[str, Any]], of: str) -> str:
    return next((text for _, text in _values(objects, of) if isinstance(text, str) and text.strip()), "")


def _number(objects: list[dict[str, Any]], of: str, default: int) -> int:
    texts = (str(value) for _, value in _values(objects, of))
    return next((int(text) for text in texts if text.isascii() and text.isdigit() and len(text) <= 10), default)


def _time(objects: list[dict[str, Any]], default: float) -> float:
    """ISO time, seconds since the epoch, or journald's microseconds."""
    for name, value in _values(objects, "time"):
        if isinstance(value, str) and (match := _LIKE["iso"].search(value)) is not None:
            return seconds_of(match.groupdict())
        if name == "__REALTIME_TIMESTAMP" and isinstance(value, str) and value.isascii() and value.isdigit():
            return int(value[:18]) / 1e6
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 1e9 < value < 1e11:
            return float(value)
    return default
