"""JOB006 by the load of the GPUs: those that wait in a collective spin, and the one that is behind does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.straggler import look_at
from topodiag.checks.words import hosts_word, rank_word
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Severity
from topodiag.model.gpu_load import computes, runs_nothing, waits
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.words.fold import few, plural
from topodiag.words.units import in_w, percent

HELD_MIB = 1024
"""Memory in use from which a process holds the GPU: a context alone takes a few hundred MiB."""
MOST_SHARE = 0.25
"""Share of the GPUs above which those that run nothing are not the exception."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A GPU of the job: its host, what it is called, and its rank (-1 where the log does not say)."""

    host: str
    gpu: Gpu
    rank: int = -1

    @property
    def name(self) -> str:
        return f"{self.gpu.label} of {self.host}" if self.host else self.gpu.label


@dataclass(frozen=True, slots=True)
class _Apart:
    """GPUs that wait in a collective, and the few that do not; `idle`: these run nothing, else they compute."""

    waiting: list[_Seen]
    behind: list[_Seen]
    idle: bool


def _apart(seen: list[_Seen], hung: bool) -> _Apart | None:
    """None where too few wait or too many do not. A GPU that computes is behind only in a job that hangs."""
    waiting = [each for each in seen if waits(each.gpu)]
    idle = [each for each in seen if runs_nothing(each.gpu)]
    behind = idle or [each for each in seen if computes(each.gpu)]
    exception = 0 < len(behind) <= max(1, MOST_SHARE * len(seen))
    if len(waiting) < 2 or not exception or not (idle or hung):
        return None
    return _Apart(waiting, behind, bool(idle))


def by_gpus(check: JobCheck[Any], job: Job, hung: bool) -> Iterator[Finding]:
    seen = list(_gpus(job))
    apart = _apart(seen, hung)
    if apart is None:
        return
    behind, waiting = apart.behind, apart.waiting
    state = "runs nothing" if apart.idle else "computes"
    ranks = sorted(each.rank for each in behind if each.rank >= 0)
    who = rank_word(ranks) if ranks else few([each.name for each in behind], 3)
    hosts = list(dict.fromkeys(each.host for each in behind))
    leads = not hung and not job.ranks and apart.idle and _leads(behind, seen)
    whole = bool(job.ranks) and len(waiting) + len(behind) == len(job.ranks)
    yield check.finding(
        _severity(hung, leads),
        f"{who} {state}, while {plural(len(waiting), 'GPU')} wait in a kernel",
        observed=f"{_load(behind[0].gpu)} on {behind[0].name}; {_load(waiting[0].gpu)} on {waiting[0].name}",
        expected="all GPUs of a job compute or wait together",
        fix=look_at(job, ranks) if ranks else _find(who, hosts),
        nodes=hosts,
        ranks=ranks,
        cost=Cost(text=_OF_LEADER if leads else "the others wait in the collective until it comes"),
        evidence=_evidence([*behind[:3], *waiting[:2]]),
        coverage=Coverage(len(seen), len(job.ranks), "GPUs of the job") if job.ranks else None,
        confidence=Confidence.MEDIUM if apart.idle and (hung or whole) else Confidence.LOW,
    )


def _leads(behind: list[_Seen], seen: list[_Seen]) -> bool:
    """Whether it is the first GPU of all: rank 0 takes requests, reads input and saves while its peers wait for its
    broadcast, and nothing tells a program that is asked nothing from one that hangs."""
    return behind == seen[:1]


def _severity(hung: bool, leads: bool) -> Severity:
    if hung:
        return Severity.ERROR
    return Severity.INFO if leads else Severity.WARNING


_OF_LEADER = "none where rank 0 waits for input or saves: the others wait for its broadcast, and go on with it"


def _find(who: str, hosts: list[str]) -> tuple[str, ...]:
    return (
        f"find the process of {who} (nvidia-smi on {hosts_word(hosts)}), and what it does: py-spy dump --pid PID",
        "take the load once more after a minute: a rank that is only late has moved on",
    )


def _gpus(job: Job) -> Iterator[_Seen]:
    """The GPUs of the job's ranks in the captures; without ranks, those that a process holds or that are busy."""
    if not job.ranks:
        for host, machine in job.machines.items():
            for gpu in machine.gpus:
                if gpu.memory_used_mib.get(0) >= HELD_MIB or not runs_nothing(gpu):
                    yield _Seen(host, gpu)
        return
    for rank in job.ranks:
        node = job.machines.get(rank.host)
        for gpu in node.gpus if node is not None and rank.bus_id else ():
            if gpu.bus_id == rank.bus_id and gpu.utilization.known:
                yield _Seen(rank.host, gpu, rank.rank)


def _load(gpu: Gpu) -> str:
    said = [f"load {percent((gpu.utilization.value or 0) / 100)}"]
    if gpu.memory_utilization.known:
        said.append(f"memory {percent((gpu.memory_utilization.value or 0) / 100)}")
    if gpu.power_w.known:
        limit = f" of {in_w(gpu.power_limit_w.get(0))}" if gpu.power_limit_w.known else ""
        said.append(f"{in_w(gpu.power_w.get(0))}{limit}")
    return ", ".join(said)


def _evidence(seen: list[_Seen]) -> list[Origin | None]:
    return [each.gpu.utilization.origin for each in seen]
