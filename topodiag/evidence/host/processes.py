"""Processes with a GPU open, as the collector wrote them (`json/processes.json`): binding and NCCL environment."""

from __future__ import annotations

from typing import Any

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.settings import REPLACED
from topodiag.evidence.interface import MAX_GPUS, Blob
from topodiag.evidence.json_values import integer, load, member, objects, text
from topodiag.evidence.page import OfPage, Page
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.node import Process, Setting
from topodiag.model.provenance import Fact

MAX_PROCESSES = 4096
MAX_VARIABLES = 256
MAX_PID = 2**32


class Processes(OfPage):
    """Processes on the GPUs. Offers a `Process` each, and its NCCL variables as settings of that process."""

    def read_page(self, page: Page) -> None:
        blob, parsed = page.blob, page.parsed
        document, why = load(blob)
        listed = member(document, "processes")
        if not isinstance(listed, list):
            parsed.leave(blob, None, "", why or "holds no list of processes")
        seen: set[int] = set()
        for place, given in objects(listed, MAX_PROCESSES):
            pid = integer(given.get("pid"), low=1, high=MAX_PID)
            if pid is None or pid in seen:
                parsed.leave(blob, None, f"processes[{place}]", "no process id, or that of another one")
                continue
            seen.add(pid)
            parsed.records.append(place)
            _offer(blob, page.draft, place, pid, given)


def _offer(blob: Blob, draft: NodeDraft, place: int, pid: int, given: dict[str, Any]) -> None:
    name, allowed = text(given.get("name")), text(given.get("cpus_allowed"))
    gpus, variables = given.get("gpus"), given.get("nccl_env")
    origin = blob.origin(text=f"processes[{place}]: pid {pid} {name or ''}")
    error = text(given.get("error")) or ""

    def fact(value: Any) -> Fact[Any]:
        return Fact(value, origin, "" if value is not None else error or "the collector could not read it")

    numbers = [integer(item, high=9999) for item in gpus[:MAX_GPUS]] if isinstance(gpus, list) else []
    few = list(variables.items())[:MAX_VARIABLES] if isinstance(variables, dict) else []
    env = {name[:100]: value[:4096] for name, value in few if isinstance(value, str) and not REPLACED.search(value)}
    # The collector writes an empty environment also where it was refused.
    read = isinstance(variables, dict) and (env or not error)
    draft.processes.append(Process(
        pid, tuple(dict.fromkeys(number for number in numbers if number is not None)), fact(name),
        fact(allowed if allowed and parse_cpulist(allowed) else None), fact(env if read else None),
    ))  # fmt: skip
    for variable, value in env.items():
        draft.settings.append(Setting(variable, value, f"process {pid}", blob.origin(text=f"{variable}={value}")))
