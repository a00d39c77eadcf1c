"""Rows of ranks or hosts, one each, in which one stands apart: tables of scripts, and what a parallel shell collects.

    rank  fwd_ms  data_ms          n1: (2, 21, 5)        rank 0 -> cuda:0 (00000000:1B:00.0)
       0   102.1      4.1          n2: (2, 21, 5)        rank 1 -> cuda:0 (00000000:1B:00.0)
       2   102.3    190.2          n3: (2, 18, 1)        rank 2 -> cuda:2 (00000000:5C:00.0)

The rows prove that they differ, and nothing of why. Three things are told: a time of a rank's own work far above the
others' (waiting is left out, as it is long where a rank is innocent), a version that a minority of hosts has, and a GPU
that several rows name.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from topodiag.evidence.host.unjoined import unjoined
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.nccl_tests.header import device_of
from topodiag.evidence.sentences import Telling, event
from topodiag.model.system import TOLD_OF, KernelEvent
from topodiag.model.topics import Topic
from topodiag.words.units import in_ms, spell_bytes

MAX_LINE = 400
MAX_ROWS = 4096
LEAST = 3
"""Rows below which nothing tells which one is odd."""
MOST_SHARE = 0.25
APART = 2.0
"""Times the median that a rank takes for its own work before it is told."""
CLOSE = 1.3
"""Times the median within which the other rows must be."""
LEAST_MS = 20.0
"""Milliseconds above the median below which no other rank waits long."""
LEAST_MIB = 1024
"""Memory of a process that computes; a bare CUDA context has half of it."""
CONTEXT_MIB = 100
"""The least that a CUDA context takes of a GPU of a data center."""

_ROW = re.compile(
    r"\s{0,12}(?:(?P<rank>(?:[Gg]lobal )?[Rr]ank[ _:=#]{0,3}r?\d{1,6})"
    r"|(?P<host>(?=[\w.-]{0,62}\d)[A-Za-z][\w.-]{0,62}))"
    r"(?:\s{0,3}(?::|->|=>|\|)\s{0,4}|\s{1,20})(?P<rest>\S.{0,300})$"
)
_HEADER = re.compile(r"\s{0,12}(?:global_)?rank((?:\s{1,30}[A-Za-z_/()%.-]{1,40}){1,13})\s*$")
_CELLS = re.compile(r"\s{0,12}r?(\d{1,6})((?:\s{1,30}[\d.]{1,14}){1,13})\s*$")
_NAMED = re.compile(
    r"([A-Za-z][A-Za-z_/-]{0,30}(?: [A-Za-z]{2,20}){0,2})[ :=]{1,3}(?:took )?(\d{1,8}(?:\.\d{1,6})?) ?(ms|s)\b"
)
_OWN = re.compile(r"data|input|load|fetch|batch|forward|fwd|compute|prepro|augment|host|cpu|gemm", re.IGNORECASE)
_WAITS = re.compile(r"wait|comm|reduce|gather|scatter|sync|barrier|nccl|idle|bubble|step|total", re.IGNORECASE)
"""Columns of waiting, and of sums in which it hides: forward and backward hold collectives where tensors are split, so
that backward is left out, too."""
_UNIT = re.compile(r"(?:^|[_(\[ /])(ms|s|sec|seconds)\)?\]?$")
_VERSION = re.compile(r"\(?\d{1,4}(?:\.\d{1,5}|, ?\d{1,5}){1,3}(?:[+.-][\w.]{1,20})?\)?")
_OF_VERSION = re.compile(r"nccl|rccl|torch|driver|cuda|ofed|firmware|\bfw\b|version", re.IGNORECASE)
_BUS = re.compile(r"\b(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b")
_PROCESS = re.compile(
    r"\|\s{1,6}(\d{1,3})\s{1,6}(?:\S{1,4}\s{1,6}\S{1,4}\s{1,12})?(\d{1,9})\s{1,6}C\s{1,6}(\S.{0,90}?)\s{1,60}"
    r"(\d{1,7})MiB \|"
)
_APP = re.compile(
    rf"\s{{0,4}}({_BUS.pattern}|GPU-[0-9a-f-]{{36}}), ?(\d{{1,9}}), ?([^,]{{1,120}}), ?(\d{{1,7}}) MiB\s*$"
)
_SETTING = re.compile(r"((?:[NR]CCL|UCX|FI|TORCH_NCCL|NVSHMEM)_[A-Z0-9_]{2,60})\s{0,2}=\s{0,2}(\S.{0,120})")
_MEANT = re.compile(r"HOSTID|DEBUG|FILE|IFNAME|HCA|ADDR|RANK|CPUSET|PATH|NET_DEVICES|COMM_ID|PROFILER")
"""Names, files and addresses of one node."""
_ANSWERS = re.compile(r"([A-Za-z][\w.-]{0,62}) \| (?:CHANGED|SUCCESS|FAILED)\b.{0,40}>>\s*$")
"""Ansible's head of what one host printed."""
_CHEAP = re.compile(
    r"^[ \t]{0,12}(?:#[ \t]{1,4}Rank |(?i:(?:global[ _])?rank)"
    r"|[A-Za-z][\w.-]{0,62}[ \t]{0,3}: ?(?:\(?\d{1,4}[.,]|[A-Z_]{2,12}_))"
    r"|^[\w.-]{2,63} \| (?:CHANGED|SUCCESS)|MiB(?: \|)?[ \t]*$",
    re.MULTILINE,
)
"""In every text with such rows."""
_TABLE_OF_TEST = re.compile(r"#\s{1,40}size\s{1,40}count\s|#\s{1,40}\(B\)\s|# Out of bounds values")
"""A run of nccl-tests has listed its devices: what is listed after it is of the next run."""
_HELPERS = re.compile(r"cuda-mps|Xorg|gnome|dcgm|hostengine")


@dataclass(slots=True)
class _Rows:
    """What the rows of a text say, by place: number of the line, its text, values by column."""

    times: dict[str, dict[str, tuple[float, int, str]]] = field(default_factory=lambda: defaultdict(dict))
    versions: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    devices: dict[str, dict[str, tuple[int, str]]] = field(default_factory=lambda: defaultdict(dict))
    processes: dict[tuple[str, str], list[tuple[int, int, str]]] = field(default_factory=lambda: defaultdict(list))
    contexts: dict[str, dict[str, dict[str, tuple[int, int, str]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    """By program, process and GPU: memory in MiB, also that of bare contexts."""
    settings: dict[str, dict[str, tuple[str, int, str]]] = field(default_factory=lambda: defaultdict(dict))
    alone: dict[tuple[str, int, str], dict[int, tuple[int, str]]] = field(default_factory=lambda: defaultdict(dict))
    """Of nccl-tests, by host, rank and device: the processes that call themselves so in one run."""
    crowds: dict[tuple[str, int, str], tuple[str, int, str]] = field(default_factory=dict)
    of_versions: bool = False


class SiblingRows(Telling):
    """Which of several ranks or hosts stands apart."""

    kind = "sibling-rows"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 10
    a_piece = "rows of ranks or hosts of which one stands apart"

    def recognises(self, head: str) -> bool:
        return _CHEAP.search(head) is not None and any(
            True for _ in _events(enumerate(head.split("\n"), 1), Blob("", b""))
        )

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        parsed.lines = blob.data.count(b"\n") + 1
        parsed.records.extend(_events(blob.lines(), blob))
        return parsed


def _events(lines: Iterable[tuple[int, str]], blob: Blob) -> Iterator[KernelEvent]:
    lines = list(lines)
    rows = _rows(lines)
    told = [*_late(rows.times), *_shared(rows), *unjoined(lines)]
    if rows.of_versions:
        told += _other_value("versions-differ", rows.versions)
    for name, values in rows.settings.items():
        told += _other_value("settings-differ", values, f"{name}=")
    for kind, words, number, line in told:
        yield event(TOLD_OF + kind, words, blob, number, line)


def _rows(lines: Iterable[tuple[int, str]]) -> _Rows:
    made = _Rows()
    columns: list[str] = []
    host = ""
    for number, whole in lines:
        line = whole[:MAX_LINE].rstrip()
        if (used := _PROCESS.match(line) or _APP.match(line)) is not None:
            if not _HELPERS.search(used[3]):
                made.contexts[used[3].strip()][used[2]][used[1]] = (int(used[4]), number, line)
                if int(used[4]) >= LEAST_MIB:
                    made.processes[used[1], used[3].strip()].append((int(used[4]), number, line))
        elif line.startswith("#"):
            _of_test(made, number, line)
        elif (head := _HEADER.match(line)) is not None:
            columns = head[1].split()
        elif columns and (cells := _CELLS.match(line)) is not None and len(cells[2].split()) == len(columns):
            for name, value in zip(columns, cells[2].split(), strict=True):
                _time(made, name, value, f"rank {cells[1]}", (number, line))
        elif (of_host := _ANSWERS.match(line)) is not None:
            host = of_host[1]
        elif (row := _ROW.match(f"{host}: {line}" if host else line)) is not None and number <= MAX_ROWS:
            _of_row(made, row, number, line)
        elif _OF_VERSION.search(line) is not None:
            made.of_versions = True
    return made


def _of_test(made: _Rows, number: int, line: str) -> None:
    """A row of the device list of nccl-tests. Two processes of one run that have the same rank were started without
    MPI in them, and each takes the first GPUs of its node."""
    if _TABLE_OF_TEST.match(line) is not None:
        made.alone.clear()
    elif (row := device_of(line)) is not None and row.host and row.pid and "MIG" not in row.name:
        place = (row.host, row.rank, f"device {row.device}")
        made.alone[place][row.pid] = (number, line)
        if len(made.alone[place]) > 1:
            words = f"{len(made.alone[place])} processes on {row.host} call themselves rank {row.rank}, on {place[2]}"
            made.crowds[place] = (words, number, line)


def _time(made: _Rows, name: str, value: str, who: str, at: tuple[int, str]) -> None:
    """A time of a rank's own work, in milliseconds. Of several the least counts: one step may hold a checkpoint."""
    unit = _UNIT.search(name)
    if unit is None or _OWN.search(name) is None or _WAITS.search(name) is not None or value.count(".") > 1:
        return
    own = (float(f"0{value}") * (1 if unit[1] == "ms" else 1000), *at)
    of_rank = made.times[name]
    of_rank[who] = min(of_rank.get(who, own), own)


def _of_row(made: _Rows, row: re.Match[str], number: int, line: str) -> None:
    """What one row of `rank 3: ..` or `n3: ..` says."""
    who = " ".join((row["rank"] or row["host"]).split())
    if row["rank"]:
        for name, value, unit in _NAMED.findall(row["rest"]):
            _time(made, f"{name}_{unit}", value, who, (number, line))
        bus = _BUS.search(row["rest"])
        if bus is not None:
            made.devices[bus[0].lower()][who] = (number, line)
        return
    rest = row["rest"].strip()
    setting = _SETTING.fullmatch(rest)
    if setting is not None and _MEANT.search(setting[1]) is None:
        made.settings[setting[1]][who] = (setting[2], number, line)
    elif _VERSION.fullmatch(rest) is not None:
        made.versions[who] = (rest, number, line)


def _late(times: Mapping[str, Mapping[str, tuple[float, int, str]]]) -> Iterator[tuple[str, str, int, str]]:
    """Ranks that take far longer than the others for the same part of a step."""
    for name, by_rank in times.items():
        if len(by_rank) < LEAST:
            continue
        usual = median(value for value, _, _ in by_rank.values())
        odd = [who for who, (value, _, _) in by_rank.items() if value > APART * usual and value - usual > LEAST_MS]
        rest = [value for who, (value, _, _) in by_rank.items() if who not in odd]
        if not odd or len(odd) > max(1, MOST_SHARE * len(by_rank)) or max(rest) > CLOSE * usual:
            continue
        for who in odd:
            value, number, line = by_rank[who]
            yield (
                "rank-late",
                f"{who}: {name} {in_ms(value * 1000)}, and {in_ms(usual * 1000)} by the median of all",
                number,
                line,
            )


def _shared(rows: _Rows) -> Iterator[tuple[str, str, int, str]]:
    """A GPU that several ranks name, or that holds several processes of one program and of one size."""
    for bus, by_rank in rows.devices.items():
        if len(by_rank) > 1:
            number, line = list(by_rank.values())[-1]
            yield "gpu-shared", f"{', '.join(list(by_rank)[:8])} name the same GPU {bus}", number, line
    for (gpu, program), held in rows.processes.items():
        sizes = [size for size, _, _ in held]
        if len(held) > 1 and max(sizes) <= 1.1 * min(sizes):
            words = f"{len(held)} processes of {program[-60:]} with {spell_bytes(sizes[0] << 20)} each on GPU {gpu}"
            yield "gpu-shared", words, held[-1][1], held[-1][2]
    for told in rows.crowds.values():
        yield "gpu-shared", *told
    for program, by_process in rows.contexts.items():
        yield from _on_the_first(program, by_process)


def _on_the_first(
    program: str, by_process: Mapping[str, Mapping[str, tuple[int, int, str]]]
) -> Iterator[tuple[str, str, int, str]]:
    """Processes of one program that work on a GPU each, and hold a context on one and the same other GPU: they asked
    CUDA for something before they chose their own. One process on several GPUs works there; processes that have a
    context on each other's GPU opened their peers' memory."""
    strays: dict[str, list[tuple[str, tuple[int, int, str]]]] = defaultdict(list)
    homes: dict[str, int] = Counter()
    for held in by_process.values():
        ((home, most), *small) = sorted(held.items(), key=lambda item: -item[1][0])
        homes[home] += 1
        if len(small) > 1:
            return
        if small and most[0] >= LEAST_MIB and CONTEXT_MIB <= small[0][1][0] < min(LEAST_MIB, most[0] / 2):
            strays[small[0][0]].append((home, small[0][1]))
    if len(strays) != 1 or max(homes.values()) > 1:
        return
    ((first, found),) = strays.items()
    if 2 * len(found) < len(by_process) or first not in homes:
        return
    sizes = max(size for _, (size, _, _) in found)
    words = (
        f"{len(found)} of {len(by_process)} processes of {program[-60:]} hold up to {spell_bytes(sizes << 20)} on GPU"
        f" {first} beside the memory on a GPU of their own"
    )
    yield "gpu-contexts", words, found[-1][1][1], found[-1][1][2]


def _other_value(
    kind: str, values: Mapping[str, tuple[str, int, str]], name: str = ""
) -> Iterator[tuple[str, str, int, str]]:
    """The hosts whose value is not that of most."""
    count = Counter(value for value, _, _ in values.values())
    usual, most = count.most_common(1)[0] if count else ("", 0)
    if len(values) < LEAST or len(count) < 2 or 2 * most <= len(values):
        return
    for who, (value, number, line) in values.items():
        if value != usual:
            yield kind, f"{who} has {name}{value}, and {most} of {len(values)} have {name}{usual}", number, line
