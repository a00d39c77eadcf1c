"""Dumps of torch's flight recorder: the last collectives of one rank, and the process groups it knows.

Format: torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (torch 2.3 and later), one file per rank, named
`nccl_trace_rank_3` or after TORCH_FR_DUMP_TEMP_FILE: a pickle of plain dicts and lists, or the same as JSON. The
pickle is read by an interpreter that knows plain data only (plain_pickle.py).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from math import nan

from topodiag.evidence.flight import plain_pickle
from topodiag.evidence.json_values import integer
from topodiag.lazy import regex
from topodiag.model.job import FlightRecord
from topodiag.model.provenance import Origin
from topodiag.words.units import spell_bytes

MAX_PICKLE = 512 << 20
MAX_JSON = 64 << 20
"""JSON takes many times its size in memory. 20000 entries are 20 MB."""
MAX_ENTRIES = 2000
"""Kept per rank, the last ones: torch's own default."""
_MAX_GROUPS = 65536
_MAX_MEMBERS = 1 << 26
"""Characters, or items, of the ranks of all groups of a file together: 80 groups of 100000 ranks."""
_MAX_TEXT = 200

_RANK = regex(r"rank[_-]?(\d{1,9})(?!\d)", re.IGNORECASE)
_BACKEND = regex(r"\A[a-z][a-z0-9_]{1,15}:(?=[a-z_])")
"""`nccl:`, `nccl2:`, `xccl:` in front of an operation: the back end that ran it."""
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
        except plain_pickle.NotPlainError as refusal:
            problems.append(f"{path}: not read as a flight-recorder dump: {refusal}")
            continue
        except OSError as error:
            problems.append(f"{path}: {error.strerror or 'cannot be read'}")
            continue
        if record.rank in records:
            first = records[record.rank].origin
            problems.append(f"{path}: left out, {first} is of rank {record.rank} too")
            continue
        records[record.rank] = record
    return tuple(records[rank] for rank in sorted(records)), tuple(problems)


def _load(path: str) -> object:
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would be waited for
        raise plain_pickle.NotPlainError("it is no regular file")
    with open(path, "rb") as stream:
        pickled = stream.read(1) == b"\x80"
        limit = MAX_PICKLE if pickled else MAX_JSON
        stream.seek(0)
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise plain_pickle.NotPlainError(f"it is larger than {spell_bytes(limit)}")
    if pickled:
        return plain_pickle.load(data)
    try:
        return json.loads(data, parse_int=_number, parse_constant=lambda _: None)
    except RecursionError:
        raise plain_pickle.NotPlainError("it is nested too deeply") from None
    except ValueError:
        raise plain_pickle.NotPlainError("it is neither a pickle nor JSON") from None


def _number(digits: str) -> int | None:
    return int(digits) if len(digits) <= 20 else None


def _record(path: str, dump: object) -> FlightRecord:
    if not isinstance(dump, dict) or not ("entries" in dump or "pg_config" in dump):
        raise plain_pickle.NotPlainError("it holds neither entries nor process groups")
    rank = integer(dump.get("rank"), high=2**31)
    if rank is None:
        rank = _rank_of_name(os.path.basename(path))
    if rank is None:
        raise plain_pickle.NotPlainError("neither it nor its name says of which rank it is")
    listed = dump.get("entries")
    entries = listed[-MAX_ENTRIES:] if isinstance(listed, list) else []
    groups, texts = _groups(dump.get("pg_config"))
    read = [(entry, _created(each)) for each in entries if (entry := _entry(each, texts)) is not None]
    times = tuple(created for _, created in read)
    return FlightRecord(rank, tuple(entry for entry, _ in read), groups, texts, Origin(path), times)


def _rank_of_name(name: str) -> int | None:
    named = _RANK.findall(name)
    if named:
        return int(named[-1])
    trailing = _TRAILING.search(name)
    return int(trailing[1]) if trailing else None


def _entry(each: object, texts: dict[str, str]) -> tuple[str, int, str, str] | None:
    """One operation. Sends and receives count by `p2p_seq_id`, collectives by `collective_seq_id` (2.3: `seq_id`)."""
    if not isinstance(each, dict):
        return None
    given = each.get("process_group", each.get("pg_name", each.get("pg_id")))
    group, *rest = given if isinstance(given, list | tuple) and given else (given,)
    name = _text(group)
    if rest and (said := _text(rest[0])):
        texts.setdefault(name, said)
    # Before 2.4 there is no is_p2p, and the name alone tells.
    operation = _BACKEND.sub("", _text(each.get("profiling_name")), count=1)
    alone = each.get("is_p2p") is True or (each.get("is_p2p") is None and operation.startswith(("send ", "recv ")))
    sequence = integer(each.get("p2p_seq_id")) if alone else None
    if sequence is None:
        sequence = integer(each.get("collective_seq_id", each.get("seq_id")))
    if sequence is None:
        return None
    state = _text(each.get("state"))
    # The watchdog takes from its list what is complete, and what timed out (FlightRecorder::retire_id).
    return name, sequence, operation, "timed out" if each.get("retired") is True and state != "completed" else state


def _created(each: object) -> float:
    """Seconds since the epoch at which an operation was enqueued, NaN without a time."""
    nanoseconds = integer(each.get("time_created_ns"), high=2**63) if isinstance(each, dict) else None
    return nanoseconds / 1e9 if nanoseconds is not None and nanoseconds > 0 else nan


def _groups(config: object) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Ranks and descriptions by the name of the process group."""
    members: dict[str, tuple[int, ...]] = {}
    texts: dict[str, str] = {}
    if not isinstance(config, dict):
        return members, texts
    left = _MAX_MEMBERS
    for key, each in list(config.items())[:_MAX_GROUPS]:
        if not isinstance(each, dict):
            continue
        name = _text(each.get("name", key))
        if described := _text(each.get("desc")):
            texts[name] = described
        listed = each.get("ranks")
        if not isinstance(listed, str | list | tuple) or len(listed) > left:
            continue
        left -= len(listed)
        if ranks := _ranks(listed):
            members[name] = ranks
    return members, texts


def _ranks(listed: str | list[object] | tuple[object, ...]) -> tuple[int, ...]:
    """`[0, 1, 2]`, as text or as a list; () when an item is no rank."""
    if isinstance(listed, str):
        if not re.fullmatch(r"\[[0-9, ]*\]", listed):
            return ()
        listed = [int(digits) for digits in re.findall(r"[0-9]+", listed) if len(digits) <= 9]
    ranks = tuple(rank for each in listed if (rank := integer(each, high=2**31)) is not None)
    return ranks if len(ranks) == len(listed) else ()


def _text(value: object) -> str:
    if isinstance(value, int):
        return str(value) if abs(value) < 2**63 else ""
    return value[:_MAX_TEXT] if isinstance(value, str) else ""
