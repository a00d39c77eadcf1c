"""Processes with a GPU open, as the collector wrote them (`json/processes.json`): binding and NCCL environment."""

from __future__ import annotations

from typing import Any

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.settings import REPLACED
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.json_values import integer, load, objects, text
from topodiag.lazy import dataclass, regex
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.provenance import Fact, known, unknown
from topodiag.model.system import Process, Setting
from topodiag.model.topics import Topic

MAX_PROCESSES = 4096
MAX_GPUS = 256
MAX_VARIABLES = 256
MAX_PID = 2**32

_MARKS = regex(r'"(?:cpus_allowed|mems_allowed|nccl_env)"\s{0,8}:')
_EMPTY = regex(r'\s{0,20}\{\s{0,20}"processes"\s{0,8}:\s{0,8}\[\s{0,20}\]\s{0,20}\}\s{0,20}$')


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process: what could be read of it, and the collector's words on what could not (`error`)."""

    place: int
    pid: int
    name: str | None
    gpus: tuple[int, ...]
    cpus_allowed: str | None
    nccl_env: dict[str, str] | None
    error: str


class Processes(Source[ProcessRecord]):
    """Processes on the GPUs. Offers a `Process` each, and its NCCL variables as settings of that process."""

    kind = "processes"
    speaks_of = frozenset({Topic.PROCESSES})
    trust = 80

    def recognises(self, head: str) -> bool:
        if not head.lstrip().startswith("{") or '"processes"' not in head or '"nvlinks"' in head:
            return False
        return _MARKS.search(head) is not None or _EMPTY.match(head[:200]) is not None

    def parse(self, blob: Blob) -> Parsed[ProcessRecord]:
        parsed: Parsed[ProcessRecord] = Parsed()
        document, why = load(blob)
        if not isinstance(document, dict) or not isinstance(document.get("processes"), list):
            parsed.leave(blob, None, "", why or "holds no list of processes")
            return parsed
        seen: set[int] = set()
        for place, given in objects(document["processes"], MAX_PROCESSES):
            pid = integer(given.get("pid"), low=1, high=MAX_PID)
            if pid is None or pid in seen:
                parsed.leave(blob, None, f"processes[{place}]", "no process id, or that of another one")
                continue
            seen.add(pid)
            parsed.records.append(_record(place, pid, given))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[ProcessRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            origin = blob.origin(text=f"processes[{record.place}]: pid {record.pid} {record.name or ''}")
            why = record.error or "the collector could not read it"
            cpus = record.cpus_allowed
            name: Fact[str] = known(record.name, origin) if record.name else unknown(why, origin)
            allowed: Fact[str] = known(cpus, origin) if cpus else unknown(why, origin)
            env: Fact[dict[str, str]] = (
                known(record.nccl_env, origin) if record.nccl_env is not None else unknown(why, origin)
            )
            draft.processes.append(Process(record.pid, record.gpus, name, allowed, env))
            for variable, value in (record.nccl_env or {}).items():
                line = blob.origin(text=f"{variable}={value}")
                draft.settings.append(Setting(variable, value, f"process {record.pid}", line))


def _record(place: int, pid: int, given: dict[str, Any]) -> ProcessRecord:
    listed = given.get("gpus")
    numbers = [integer(item, high=9999) for item in listed[:MAX_GPUS]] if isinstance(listed, list) else []
    gpus = tuple(dict.fromkeys(number for number in numbers if number is not None))
    cpus = text(given.get("cpus_allowed"))
    variables = given.get("nccl_env")
    env = None
    if isinstance(variables, dict):
        few = list(variables.items())[:MAX_VARIABLES]
        env = {name[:100]: value[:4096] for name, value in few if isinstance(value, str) and not REPLACED.search(value)}
    error = text(given.get("error")) or ""
    if error and not env:
        env = None  # the collector writes an empty environment also where it was refused
    return ProcessRecord(
        place, pid, text(given.get("name")), gpus, cpus if cpus and parse_cpulist(cpus) else None, env, error
    )
