"""Answers of NCCL's RAS in JSON: status (`ncclras -f json`) and events (`ncclras -m -f json`).

Source: NCCL src/ras/client_support.cc, v2.28.7 and later; events since v2.29. 2.28.7 to 2.28.9 forget a comma behind
`"nvml_dev": n` in `missing_ranks` (jsonWriteMissingRank), which is put back.

Answers of NCCL's RAS as text, as `ncclras` prints them or as they come from the socket, and the text of a monitor.

Source: NCCL src/ras/client_support.cc, v2.24.3 to v2.30.7. Lists name outliers alone: members of a group of at most a
quarter of all and ten, or less than half with `VERBOSE STATUS`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice, pairwise
from typing import Any

from topodiag.evidence.json_values import integer, objects
from topodiag.evidence.nccl_log.grammar.numbers import u64_hex
from topodiag.lazy import dataclass
from topodiag.model.clock_text import seconds
from topodiag.model.provenance import Origin
from topodiag.model.ras import RUNNING, RasAnswer, RasCommunicator, RasEvent, RasMember, RasProcess
from topodiag.words.own_data import own_data, patterns

MAX_ANSWERS = 4096
"""Objects read from one text: a monitor of a day has fewer."""

_LIKE = patterns("evidence/live/lines", "ras")
_READY, _IN_PROGRESS = 0, 7
"""ncclSuccess and ncclInProgress, src/nccl.h.in."""

_ERRORS: Mapping[str, str] = own_data("evidence/words")["nccl_results"]


def answers_in_json(text: str, source: str) -> Iterator[RasAnswer]:
    """The answers of a text in the order in which they stand; events of a monitor are one answer together. What is no
    JSON of RAS is passed over."""
    decoder = json.JSONDecoder(parse_int=_bounded, parse_constant=lambda _: None)
    whole = _LIKE["no_comma"].sub(r"\1,\2", text)
    events: list[RasEvent] = []
    end = 0
    for match, number in _numbered(_LIKE["start"], whole, MAX_ANSWERS):
        if match.start() < end:
            continue
        try:
            document, end = decoder.raw_decode(whole, match.start())
        except (ValueError, RecursionError):
            continue
        origin = Origin(source, number, "")
        if isinstance(document, dict) and isinstance(document.get("communicators"), list):
            yield _answer(document, source, origin)
        elif isinstance(document, dict) and isinstance(document.get("event"), str):
            events.append(_event(document, origin))
    yield from _monitored(source, events)


def _bounded(digits: str) -> int:
    return int(digits) if len(digits) < 20 else -1


def _answer(document: Mapping[str, Any], source: str, origin: Origin) -> RasAnswer:
    entries = [item for _, item in objects(document["communicators"], MAX_MEMBERS)]
    communicators = tuple(_communicator(item, origin) for item in entries)
    members = [member.process for communicator in communicators for member in communicator.members]
    known = {process.key for process in members if process is not None}
    silent: dict[tuple[str, int], RasProcess] = {}
    dead: dict[tuple[str, int], RasProcess] = {}
    for entry in entries:
        for _, item in objects(entry.get("missing_ranks"), MAX_MEMBERS):
            process, status = _process(item), _dict(item, "status")
            if process is not None and status.get("considered_dead") is True:
                dead[process.key] = process
            elif process is not None and status.get("unresponsive") is True:
                silent[process.key] = process
    return RasAnswer(
        source,
        version=str(document.get("nccl_version", ""))[:40],
        time=seconds(str(document.get("timestamp"))),
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
    members = [_member(item, origin) for _, item in objects(raw.get("ranks"), MAX_MEMBERS)]
    missing = [_missing(item, origin) for _, item in objects(raw.get("missing_ranks"), MAX_MEMBERS)]
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for member in members:
        for name, count in member.counts.items():
            counts[name][count] += 1
    states = Counter(member.state for member in (*members, *missing) if member.state)
    number, size = u64_hex(str(raw.get("hash"))), integer(raw.get("size")) or 0
    return RasCommunicator(number, size, (*members, *missing), counts, states, origin)


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
    launches = {str(name)[:40]: integer(given) for name, given in _dict(raw, "collective_counts").items()}
    counts = {name: value for name, value in launches.items() if value is not None}
    error = _ERRORS.get(f"{failed}", f"error {failed}") if failed is not None else ""
    return RasMember(_rank(raw), _process(raw), state, counts, error=error, origin=origin)


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
    if isinstance(listed := raw.get("cuda_devs"), list):  # of an event
        return RasProcess(host[:200], pid, ",".join(map(str, listed[:64])))
    gpu, nvml = integer(raw.get("cuda_dev")), integer(raw.get("nvml_dev"))
    known = "" if gpu is None else str(gpu)
    return RasProcess(host[:200], pid, known if nvml is None or nvml == gpu else f"{known} (NVML {nvml})")


def _event(document: Mapping[str, Any], origin: Origin) -> RasEvent:
    process = _process(_dict(document, "peer"))
    return RasEvent(str(document["event"])[:40], seconds(str(document.get("timestamp"))), process, origin)


def _dict(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


MAX_EVENTS = 1 << 16
MAX_MEMBERS = 1 << 20
"""Ranks and processes kept of one answer."""

_DIFFERENT = "Communicator ranks have different "


@dataclass(slots=True)
class _Comm:
    """A communicator while its lines are read. `shared` is what the lines of members that follow share."""

    hash: int
    size: int
    origin: Origin
    ranks: dict[int, RasMember] = field(default_factory=dict)
    counts: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    states: Counter[str] = field(default_factory=Counter)
    collective: str = ""
    shared: tuple[int | None, str, str] = (None, "", "")

    def made(self) -> RasCommunicator:
        ranks = tuple(self.ranks[rank] for rank in sorted(self.ranks))
        return RasCommunicator(self.hash, self.size, ranks, self.counts, self.states, self.origin)


@dataclass(slots=True)
class _Draft:
    """An answer while its lines are read."""

    section: str = ""
    listed: str = ""
    row: tuple[int, ...] = ()
    total: int = 0
    sizes: list[int] = field(default_factory=list)
    silent: list[RasProcess] = field(default_factory=list)
    dead: list[RasProcess] = field(default_factory=list)
    comms: dict[int, _Comm] = field(default_factory=dict)
    at: _Comm | None = None


def answers_in_text(text: str, source: str) -> Iterator[RasAnswer]:
    """The answers of a text in the order in which they stand; events of a monitor are one answer together. Lines of
    other things are passed over."""
    begins = list(_numbered(_LIKE["begin"], text, MAX_ANSWERS))
    ends = [match.start() for match, _ in begins[1:]] + [len(text)]
    for (match, number), end in zip(begins, ends, strict=False):
        yield from _text_answer(match[1], text[match.start() : end].splitlines(), number, source)
    events: list[RasEvent] = []
    for match, number in _numbered(_LIKE["event"], text, MAX_EVENTS):
        process = RasProcess(match[4], int(match[3]), (match[5] or "").strip()) if match[3] else None
        end = text.find("\n", match.start())
        origin = Origin(source, number, text[match.start() : end if end >= 0 else len(text)])
        events.append(RasEvent(match[2], seconds(match[1]), process, origin))
    yield from _monitored(source, events)


def _numbered(pattern: re.Pattern[str], text: str, most: int) -> Iterator[tuple[re.Match[str], int]]:
    """Where a pattern stands, with the number of the line."""
    number, at = 1, 0
    for match in islice(pattern.finditer(text), most):
        number, at = number + text.count("\n", at, match.start()), match.start()
        yield match, number


def _monitored(source: str, events: Sequence[RasEvent]) -> Iterator[RasAnswer]:
    """The events of a monitor, where there are any."""
    if events:
        yield RasAnswer(source, form="monitor", events=tuple(events), time=events[-1].time, origin=events[0].origin)


def _text_answer(version: str, lines: Sequence[str], number: int, source: str) -> Iterator[RasAnswer]:
    """The answer whose first line names NCCL's version; none where no section of one follows: other programs print such
    a line too."""
    draft = _Draft()
    for at, line in enumerate(lines, number):
        _read(draft, line, Origin(source, at, line))
    if not draft.section:
        return
    # The widest row is that of totals: nodes, processes per node, GPUs per process, processes, GPUs.
    nodes, processes = (draft.row[0], draft.row[3 if len(draft.row) == 5 else 1]) if draft.row else (0, 0)
    yield RasAnswer(
        source,
        version=version,
        nodes=nodes,
        processes=processes,
        total=draft.total,
        communicators=tuple(comm.made() for comm in draft.comms.values()),
        silent=tuple(draft.silent),
        dead=tuple(draft.dead),
        whole=any(line.rstrip() == "Warnings" and below.startswith("=") for line, below in pairwise(lines)),
        origin=Origin(source, number, lines[0]),
    )


def _read(draft: _Draft, line: str, origin: Origin) -> None:
    if line.startswith(("Job summary", "Communicators...", "Errors", "Warnings")):
        draft.section, draft.listed, draft.at = line.split(".", maxsplit=1)[0].strip(), "", None
    elif draft.section == "Job summary":
        if match := _LIKE["job"].fullmatch(line):
            draft.row = tuple(int(word) for word in match.groups() if word)
    elif draft.section == "Communicators":
        if match := _LIKE["group"].fullmatch(line):
            draft.total += int(match[1])
            draft.sizes.append(int(match[2]))
    elif draft.section in ("Errors", "Warnings"):
        _read_problem(draft, line, origin)


def _read_problem(draft: _Draft, line: str, origin: Origin) -> None:
    if match := _LIKE["comm"].match(line):
        number, key = int(match[1]), int(match[2], 16)
        size = draft.sizes[number] if number < len(draft.sizes) else 0
        draft.at = draft.comms.setdefault(key, _Comm(key, size, origin))
        draft.at.shared = (None, "", "")
    elif line[:1].strip():
        draft.listed, draft.at = line.strip(), None
    elif draft.at is None:
        if match := _LIKE["process"].match(line):
            process = RasProcess(match[2], int(match[1]), match[3].strip())
            (draft.dead if draft.listed == "DEAD" else draft.silent).append(process)
    elif match := _LIKE["rank"].match(line):
        _read_rank(draft.at, match, origin)
    elif match := _LIKE["several"].match(line):
        draft.at.shared = _counts(match, 2)
        _add(draft.at, draft.at.shared, int(match[1]))
    elif line.lstrip().startswith(_DIFFERENT):
        named, of_counts, _ = line.lstrip().removeprefix(_DIFFERENT).partition(" operation counts")
        draft.at.collective = named if of_counts and named != "collective" else ""
    elif line.lstrip().startswith("The missing rank"):
        for word in re.findall(r"\d{1,9}", line)[:MAX_MEMBERS]:
            draft.at.ranks[int(word)] = RasMember(int(word), missing=True, origin=origin)


def _read_rank(comm: _Comm, match: re.Match[str], origin: Origin) -> None:
    if len(comm.ranks) >= MAX_MEMBERS:
        return
    own = _counts(match, 2)
    identified = own != (None, "", "")
    if identified:
        _add(comm, own, 1)
        comm.shared = (None, "", "")
    count, state, error = own if identified else comm.shared
    rank = int(match[1])
    old = comm.ranks.get(rank) or RasMember(rank, origin=origin)
    process = RasProcess(match[8], int(match[7]), match[6].strip()) if match[7] else old.process
    comm.ranks[rank] = RasMember(
        rank,
        process,
        state or old.state,
        {**old.counts, **({} if count is None else {comm.collective: count})},
        old.missing or (count is None and not state and not error) or state in ("NOCOMM", "UNKNOWN"),
        error or old.error,
        old.origin if not identified and old.origin is not None and old.origin != origin and old.counts else origin,
    )


def _counts(match: re.Match[str], at: int) -> tuple[int | None, str, str]:
    """Count, state and error of a line; count 0 where no operation was launched."""
    count = 0 if match[at + 1] else int(match[at]) if match[at] else None
    return count, match[at + 2] or "", (match[at + 3] or "").strip()


def _add(comm: _Comm, key: tuple[int | None, str, str], ranks: int) -> None:
    count, state, _ = key
    if count is not None:
        comm.counts[comm.collective][count] += ranks
    elif state:
        comm.states[state] += ranks
