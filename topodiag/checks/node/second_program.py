"""JOB004 by a capture: a program that is not the job's runs on one of the job's GPUs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import majority
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.system import Process
from topodiag.model.topics import Topic

HELPERS = re.compile(
    r"nv-hostengine|dcgm|exporter|Xorg|Xwayland|gnome|persistenced|cuda-mps|nvidia-smi|\bnsys\b|\bncu\b|py-spy|tensorboard"
)
"""Programs that watch GPUs, draw a screen or share GPUs on purpose."""
LEAST = 3
"""GPUs with the same program, below which nothing tells which process is the odd one."""
JOB_IDS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "RAY_JOB_ID")


@dataclass(frozen=True, slots=True)
class SecondProgramSeen:
    """By GPU index the processes that are not of the program on all GPUs, and that program's name."""

    others: Mapping[int, tuple[Process, ...]]
    usual: str
    coverage: Coverage


class SecondProgram(NodeCheck[SecondProgramSeen]):
    """JOB004 by a node's processes: one GPU of those that one program uses has another program on it as well."""

    id = "JOB004"
    title = "another program runs on a GPU of the job"

    def observe(self, judged: Node, peers: Sequence[Node]) -> SecondProgramSeen | Outcome:
        if Topic.PROCESSES not in judged.told:
            return self.unknown(judged, "the processes on the GPUs were not seen")
        held: dict[int, list[Process]] = defaultdict(list)
        for process in judged.processes:
            if len(process.gpus) == 1 and process.name.known and not HELPERS.search(process.name.value or ""):
                held[process.gpus[0]].append(process)
        usual = _usual(held.values())
        with_usual = [index for index, group in held.items() if any(each.name.value == usual for each in group)]
        if len(with_usual) < LEAST:
            return self.not_applicable(judged, "no program that holds most GPUs, one process each")
        own = majority(job for index in with_usual for each in held[index] if (job := _job(each)))
        others = {index: found for index in with_usual if (found := tuple(_foreign(held[index], usual, own or "")))}
        coverage = Coverage(len(held), max(len(judged.gpus), len(held)), "GPUs with processes")
        if not others or len(others) > len(with_usual) // 2:  # what runs on most GPUs belongs to the job
            return self.clean(judged, coverage=coverage)
        return SecondProgramSeen(others, usual, coverage)

    def tell(self, judged: Node, observed: SecondProgramSeen) -> Iterator[Finding]:
        for index, group in sorted(observed.others.items()):
            gpu = judged.gpu(index)
            label = gpu.label if gpu is not None else f"GPU{index}"
            names = ", ".join(f"{each.name.value} (pid {each.pid})" for each in group[:3])
            yield self.finding(
                judged,
                Severity.WARNING,
                f"{label} runs another program beside {observed.usual}: {names}",
                observed=f"{names} on {label}; {observed.usual} alone on its siblings",
                expected="one program on each GPU of a job",
                fix=(
                    f"whose is it? `ps -o user,pid,lstart,args -p {group[0].pid}` on the node; end it, or move it",
                    "let the scheduler own the GPUs (ConstrainDevices=yes in cgroup.conf, the device plugin), or set"
                    " their compute mode: `nvidia-smi -c EXCLUSIVE_PROCESS`",
                ),
                gpus=[label],
                cost=Cost(text="the programs take turns on the GPU, and every collective of the job waits for it"),
                evidence=[each.name.origin for each in group],
                coverage=observed.coverage,
                confidence=Confidence.MEDIUM,  # that it runs there is seen, what it takes is not
            )


def _usual(groups: Iterable[Sequence[Process]]) -> str:
    """The program on the most GPUs, of several the one with a scheduler's id."""
    counts: dict[str, tuple[int, bool]] = {}
    for group in groups:
        for name in {each.name.value or "" for each in group}:
            of_job = any(_job(each) for each in group if each.name.value == name)
            count, known = counts.get(name, (0, False))
            counts[name] = count + 1, known or of_job
    return max(counts, key=lambda name: (*counts[name], name), default="")


def _foreign(group: Sequence[Process], usual: str, own: str) -> Iterator[Process]:
    """The processes of one GPU that are another job's, or of another name where no job is known."""
    for process in group:
        job = _job(process)
        if job != own if job and own else process.name.value != usual:
            yield process


def _job(process: Process) -> str:
    """The scheduler's id in the environment of a process; "" where it was not seen."""
    variables = process.nccl_env.get({})
    return next((variables[name] for name in JOB_IDS if variables.get(name)), "")
