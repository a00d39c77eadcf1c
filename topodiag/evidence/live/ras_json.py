"""Answers of NCCL's RAS in JSON: status (`ncclras -f json`) and events (`ncclras -m -f json`).

Source: NCCL src/ras/client_support.cc, v2.28.7 and later; events since v2.29. 2.28.7 to 2.28.9 forget a comma behind
`"nvml_dev": n` in `missing_ranks` (jsonWriteMissingRank), which is put back.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from topodiag.evidence.json_values import integer
from topodiag.lazy import regex
from topodiag.model.clock_text import seconds
from topodiag.model.provenance import Origin
from topodiag.model.ras import RUNNING, RasAnswer, RasCommunicator, RasEvent, RasMember, RasProcess

MAX_ANSWERS = 4096
"""Objects read from one text: a monitor of a day has fewer."""

_NO_COMMA = regex(r'("nvml_dev"\s*:\s*-?\d{1,9})(\s*"status")')
_START = regex(r"^\{", re.M)
_HASH = regex(r"(?:0x)?([0-9a-fA-F]{1,16})")
_READY, _IN_PROGRESS = 0, 7
"""ncclSuccess and ncclInProgress, src/nccl.h.in."""

_ERRORS = {
    1: "unhandled cuda error", 2: "unhandled system error", 3: "internal error", 4: "invalid argument",
    5: "invalid usage", 6: "remote process exited or there was a network error",
}  # fmt: skip
"""ncclGetErrorString, src/init.cc v2.29."""


def answers_in_json(text: str, source: str) -> Iterator[RasAnswer]:
    """The answers of a text in the order in which they stand; events of a monitor are one answer together. What is no
    JSON of RAS is passed over."""
    decoder = json.JSONDecoder(parse_int=_bounded, parse_constant=lambda _: None)
    whole = _NO_COMMA.sub(r"\1,\2", text)
    events: list[RasEvent] = []
    end = 0
    for number, found in enumerate(_START.finditer(whole)):
        if number >= MAX_ANSWERS:
            break
        if found.start() < end:
            continue
        try:
            made, end = decoder.raw_decode(whole, found.start())
        except (ValueError, RecursionError):
            continue
        origin = Origin(source, whole.count("\n", 0, found.start()) + 1, "")
        if isinstance(made, dict) and isinstance(made.get("communicators"), list):
            yield _answer(made, source, origin)
        elif isinstance(made, dict) and isinstance(made.get("event"), str):
            events.append(_event(made, origin))
    if events:
        yield RasAnswer(source, form="monitor", events=tuple(events), time=events[-1].time, origin=events[0].origin)


def _bounded(digits: str) -> int:
    return int(digits) if len(digits) < 20 else -1


def _answer(made: Mapping[str, Any], source: str, origin: Origin) -> RasAnswer:
    told = [each for each in made["communicators"] if isinstance(each, dict)]
    communicators = tuple(_communicator(each, origin) for each in told)
    silent: dict[tuple[str, int], RasProcess] = {}
    dead: dict[tuple[str, int], RasProcess] = {}
    known: set[tuple[str, int]] = set()
    for communicator, raw in zip(communicators, told, strict=True):
        known |= {member.process.key for member in communicator.members if member.process is not None}
        missing = [each for each in _list(raw, "missing_ranks") if isinstance(each, dict)]
        for each in missing:
            process, status = _process(each), _dict(each, "status")
            if process is not None and status.get("considered_dead") is True:
                dead[process.key] = process
            elif process is not None and status.get("unresponsive") is True:
                silent[process.key] = process
    return RasAnswer(
        source,
        version=str(made.get("nccl_version", ""))[:40],
        time=seconds(str(made.get("timestamp"))),
        form="json",
        nodes=len({host for host, _ in known}),
        processes=len(known),
        total=len(communicators),
        communicators=communicators,
        silent=tuple(silent.values()),
        dead=tuple(dead.values()),
        origin=origin,
    )


def _communicator(raw: Mapping[str, Any], origin: Origin) -> RasCommunicator:
    members = [_member(each, origin) for each in _list(raw, "ranks") if isinstance(each, dict)]
    missing = [_missing(each, origin) for each in _list(raw, "missing_ranks") if isinstance(each, dict)]
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for member in members:
        for name, count in member.counts.items():
            counts[name][count] += 1
    found = _HASH.fullmatch(str(raw.get("hash", "")))
    return RasCommunicator(
        int(found[1], 16) if found is not None else 0,
        integer(raw.get("size")) or 0,
        (*members, *missing),
        counts,
        Counter(member.state for member in (*members, *missing) if member.state),
        origin,
    )


def _member(raw: Mapping[str, Any], origin: Origin) -> RasMember:
    status = _dict(raw, "status")
    init, async_error = integer(status.get("init_state")), integer(status.get("async_error"))
    failed = next((code for code in (init, async_error) if code not in (None, _READY, _IN_PROGRESS)), None)
    if status.get("abort_flag") is True:
        state = "ABORT"
    elif status.get("finalize_called") is True or status.get("destroy_flag") is True:
        state = "FINALIZE"
    else:
        state = "INIT" if init == _IN_PROGRESS else RUNNING
    counts = {
        str(name)[:40]: value
        for name, given in _dict(raw, "collective_counts").items()
        if (value := integer(given)) is not None
    }
    return RasMember(
        _rank(raw),
        _process(raw),
        state,
        counts,
        error=_ERRORS.get(failed, f"error {failed}") if failed is not None else "",
        origin=origin,
    )


def _missing(raw: Mapping[str, Any], origin: Origin) -> RasMember:
    status = _dict(raw, "status")
    lost = status.get("unresponsive") is True or status.get("considered_dead") is True
    return RasMember(_rank(raw), _process(raw), "" if lost else "NOCOMM", missing=True, origin=origin)


def _rank(raw: Mapping[str, Any]) -> int:
    rank = integer(raw.get("rank"))
    return rank if rank is not None else -1


def _process(raw: Mapping[str, Any]) -> RasProcess | None:
    pid, host = integer(raw.get("pid")), raw.get("host")
    if pid is None or not isinstance(host, str) or not host:
        return None
    gpu, nvml = integer(raw.get("cuda_dev")), integer(raw.get("nvml_dev"))
    known = "" if gpu is None else str(gpu)
    return RasProcess(host[:200], pid, known if nvml is None or nvml == gpu else f"{known} (NVML {nvml})")


def _event(made: Mapping[str, Any], origin: Origin) -> RasEvent:
    peer = _dict(made, "peer")
    pid, host = integer(peer.get("pid")), peer.get("host")
    devices = ",".join(str(each) for each in _list(peer, "cuda_devs")[:64])
    known = RasProcess(host[:200], pid, devices) if pid is not None and isinstance(host, str) else None
    return RasEvent(str(made["event"])[:40], seconds(str(made.get("timestamp"))), known, origin)


def _dict(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def _list(raw: Mapping[str, Any], key: str) -> list[Any]:
    value = raw.get(key)
    return value if isinstance(value, list) else []
