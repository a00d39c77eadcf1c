"""Dumps of torch's flight recorder: the last collectives of one rank, and the process groups it knows.

Format: torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (torch 2.3 and later), one file per rank, named
`nccl_trace_rank_3` or after TORCH_FR_DUMP_TEMP_FILE: a pickle of plain dicts and lists, or the same as JSON. The
pickle is read by an interpreter that knows plain data only.

Pickles of plain data: dicts, lists, tuples, texts, numbers. Nothing in them is ever called, imported or looked up.

A pickle is a program for a small machine. `pickletools` lists its instructions and runs none. The machine here knows
those that build plain data (protocols 2 to 5) and refuses a file at the first other one, so that a file from elsewhere
can do no harm. Steps are bounded, and with them the memory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import nan
from pickletools import genops
from typing import Any

from topodiag.evidence.interface import rank_of_name
from topodiag.evidence.json_values import decoded, integer
from topodiag.lazy import regex
from topodiag.model.job import FlightRecord
from topodiag.model.provenance import Origin
from topodiag.words.units import spell_bytes

MAX_STEPS = 10_000_000
"""20000 entries with 25 stack frames each take half of it."""


class NotPlainError(Exception):
    """Why a pickle was refused, in one clause."""


def load(data: bytes, max_steps: int = MAX_STEPS) -> object:
    """The value that the pickle builds. It may share parts and even contain itself. Raises NotPlainError."""
    try:
        return _Machine().run(data, max_steps)
    except (IndexError, ValueError):
        raise NotPlainError("it ends early or is damaged") from None


class _Machine:
    """`stack` is what was built since the last mark, `below` the stacks under it."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.below: list[list[object]] = []
        self.memo: dict[int, object] = {}

    def run(self, data: bytes, max_steps: int) -> object:
        for code, value, at in islice(genops(data), max_steps):
            if code.name in _VALUES:
                self.stack.append(_CONSTANTS.get(code.name, value))
            elif code.name == "STOP":
                return self.stack.pop()
            elif code.name in _STEPS:
                _STEPS[code.name](self, value)
            elif code.name not in _READ_AHEAD:
                raise NotPlainError(f"it holds more than plain data (instruction {code.name} at byte {at})")
        raise NotPlainError(f"it takes more than {max_steps} steps")

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[object]:
        mark, self.stack = self.stack, self.below.pop()
        return mark

    def extend(self, items: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise NotPlainError("it is damaged: an item of no list")
        target.extend(items)

    def update(self, items: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise NotPlainError("it is damaged: an item of no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int):  # hashing a nested tuple would go as deep as it does
                raise NotPlainError("it has a key that is neither text nor number")
            target[key] = value

    def last(self, size: int) -> list[object]:
        return [self.stack.pop() for _ in range(size)][::-1]

    def remember(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def recall(self, index: int) -> None:
        if index not in self.memo:
            raise NotPlainError("it is damaged: it recalls what it never built")
        self.stack.append(self.memo[index])


_READ_AHEAD = frozenset(("PROTO", "FRAME"))
_CONSTANTS: Mapping[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_VALUES = frozenset((
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING",
    "SHORT_BINSTRING", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", *_CONSTANTS,
))  # fmt: skip
"""Instructions that carry the value which they add to the stack."""
_STEPS: dict[str, Callable[[_Machine, Any], object]] = {
    "MARK": lambda m, _: m.mark(),
    "POP": lambda m, _: m.stack.pop(),
    "POP_MARK": lambda m, _: m.since_mark(),
    "EMPTY_LIST": lambda m, _: m.stack.append([]),
    "APPEND": lambda m, _: m.extend(m.last(1)),
    "APPENDS": lambda m, _: m.extend(m.since_mark()),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.since_mark())),
    "TUPLE1": lambda m, _: m.stack.append(tuple(m.last(1))),
    "TUPLE2": lambda m, _: m.stack.append(tuple(m.last(2))),
    "TUPLE3": lambda m, _: m.stack.append(tuple(m.last(3))),
    "EMPTY_DICT": lambda m, _: m.stack.append({}),
    "SETITEM": lambda m, _: m.update(m.last(2)),
    "SETITEMS": lambda m, _: m.update(m.since_mark()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.remember),
    "MEMOIZE": lambda m, _: m.remember(len(m.memo)),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.recall),
}


MAX_PICKLE = 512 << 20
MAX_JSON = 64 << 20
"""JSON takes many times its size in memory. 20000 entries are 20 MB."""
MAX_ENTRIES = 2000
"""Kept per rank, the last ones: torch's own default."""
_MAX_GROUPS = 65536
_MAX_MEMBERS = 1 << 26
"""Characters, or items, of the ranks of all groups of a file together: 80 groups of 100000 ranks."""
_MAX_TEXT = 200

_TRAILING = regex(r"(?<!\d)(\d{1,9})(?:\.[A-Za-z]\w{0,9})?$")


def read_flight(
    paths: Sequence[str], names: Mapping[str, str] | None = None
) -> tuple[tuple[FlightRecord, ...], tuple[str, ...]]:
    """The records by rank, and what could not be read, one line each. One bad file costs that file. `names` are those
    by which a reader knows files whose path is another: copies from an archive."""
    records: dict[int, FlightRecord] = {}
    problems = []
    for place in paths:
        path = (names or {}).get(place, place)
        try:
            record = _record(path, _load(place))
        except NotPlainError as refusal:
            problems.append(f"{path}: not read as a flight-recorder dump: {refusal}")
        except OSError as error:
            problems.append(f"{path}: {error.strerror or 'cannot be read'}")
        else:
            if (first := records.setdefault(record.rank, record)) is not record:
                problems.append(f"{path}: left out, {first.origin} is of rank {record.rank} too")
    return tuple(records[rank] for rank in sorted(records)), tuple(problems)


def _load(path: str) -> object:
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would be waited for
        raise NotPlainError("it is no regular file")
    with open(path, "rb") as stream:
        pickled = stream.read(1) == b"\x80"
        limit = MAX_PICKLE if pickled else MAX_JSON
        stream.seek(0)
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise NotPlainError(f"it is larger than {spell_bytes(limit)}")
    if pickled:
        return load(data)
    document, why = decoded(data.decode("utf-8", "replace"))
    if why:
        raise NotPlainError("it is nested too deeply" if "deep" in why else "it is neither a pickle nor JSON")
    return document


def _record(path: str, dump: object) -> FlightRecord:
    if not isinstance(dump, dict) or not ("entries" in dump or "pg_config" in dump):
        raise NotPlainError("it holds neither entries nor process groups")
    rank = integer(dump.get("rank"), high=2**31)
    if rank is None:
        rank = _rank_of_file(path)
    if rank is None:
        raise NotPlainError("neither it nor its name says of which rank it is")
    listed = dump.get("entries")
    entries = listed[-MAX_ENTRIES:] if isinstance(listed, list) else []
    groups, texts = _groups(dump.get("pg_config"))
    read = [(entry, _created(one)) for one in entries if (entry := _entry(one, texts)) is not None]
    times = tuple(created for _, created in read)
    return FlightRecord(rank, tuple(entry for entry, _ in read), groups, texts, Origin(path), times)


def _rank_of_file(path: str) -> int | None:
    if (named := rank_of_name(path)) is not None:
        return named
    trailing = _TRAILING.search(os.path.basename(path))
    return int(trailing[1]) if trailing else None


def _entry(entry: object, texts: dict[str, str]) -> tuple[str, int, str, str] | None:
    """One operation. Sends and receives count by `p2p_seq_id`, collectives by `collective_seq_id` (2.3: `seq_id`)."""
    if not isinstance(entry, dict):
        return None
    given = entry.get("process_group", entry.get("pg_name", entry.get("pg_id")))
    group, *rest = given if isinstance(given, list | tuple) and given else (given,)
    name = _text(group)
    if rest and (description := _text(rest[0])):
        texts.setdefault(name, description)
    # Before 2.4 there is no is_p2p, and the name alone tells.
    # In front may stand the back end that ran it: `nccl:`, `nccl2:`, `xccl:`.
    backend, _, bare = (operation := _text(entry.get("profiling_name"))).partition(":")
    operation = bare if backend.isidentifier() and bare[:1].isidentifier() else operation
    pair_only = entry.get("is_p2p") is True or (
        entry.get("is_p2p") is None and operation.startswith(("send ", "recv "))
    )
    sequence = integer(entry.get("p2p_seq_id")) if pair_only else None
    if sequence is None:
        sequence = integer(entry.get("collective_seq_id", entry.get("seq_id")))
    if sequence is None:
        return None
    state = _text(entry.get("state"))
    # The watchdog takes from its list what is complete, and what timed out (FlightRecorder::retire_id).
    return name, sequence, operation, "timed out" if entry.get("retired") is True and state != "completed" else state


def _created(entry: object) -> float:
    """Seconds since the epoch at which an operation was enqueued, NaN without a time."""
    nanoseconds = integer(entry.get("time_created_ns"), high=2**63) if isinstance(entry, dict) else None
    return nanoseconds / 1e9 if nanoseconds is not None and nanoseconds > 0 else nan


def _groups(config: object) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Ranks and descriptions by the name of the process group."""
    members: dict[str, tuple[int, ...]] = {}
    texts: dict[str, str] = {}
    if not isinstance(config, dict):
        return members, texts
    left = _MAX_MEMBERS
    for key, item in list(config.items())[:_MAX_GROUPS]:
        if not isinstance(item, dict):
            continue
        name = _text(item.get("name", key))
        if described := _text(item.get("desc")):
            texts[name] = described
        listed = item.get("ranks")
        if not isinstance(listed, str | list | tuple) or len(listed) > left:
            continue
        left -= len(listed)
        if ranks := _ranks(listed):
            members[name] = ranks
    return members, texts


def _ranks(listed: str | list[object] | tuple[object, ...]) -> tuple[int, ...]:
    """`[0, 1, 2]`, as text or as a list; () when an item is no rank."""
    items = decoded(listed)[0] if isinstance(listed, str) else listed
    if not isinstance(items, list | tuple):
        return ()
    ranks = tuple(rank for item in items if (rank := integer(item, high=2**31)) is not None)
    return ranks if len(ranks) == len(items) else ()


def _text(value: object) -> str:
    if isinstance(value, int):
        return str(value) if abs(value) < 2**63 else ""
    # A pickle may hold half of a character of UTF-16, which no output can.
    return value[:_MAX_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
