"""JOB004 by a capture: a program that is not the job's runs on one of the job's GPUs, or GPUs that do nothing hold
memory and no process is shown that has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.comparisons import majority
from topodiag.lazy import regex
from topodiag.model.devices import Gpu
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.node import Node, Process
from topodiag.model.provenance import Topic
from topodiag.words.units import fold_labels, grouped, percent

# For JOB004: processes that hold a CUDA context on a GPU that is not their own.

HELPERS = regex(
    r"nv-hostengine|dcgm|exporter|Xorg|Xwayland|gnome|persistenced|cuda-mps|nvidia-smi|\bnsys\b|\bncu\b|py-spy|tensorboard"
)
"""Programs that watch GPUs, draw a screen or share GPUs on purpose."""
LEAST = 3
"""GPUs with the same program, below which nothing tells which process is the odd one."""
HELD_SHARE = 0.5
"""Part of a GPU's memory from which it is no mere context, and less than what an engine takes at its start."""
ALIKE = 0.1
"""Parts of the memory by which ranks of one job differ."""
JOB_IDS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "RAY_JOB_ID")


class SecondProgram(NodeCheck, id="JOB004"):
    """JOB004 by a node's processes: one GPU of those that one program uses has another program on it as well; or,
    as information, memory that is held on
    idle GPUs by no process that is shown."""

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        seen = self._second(judged)
        if not seen.findings and (held := _held_by_nobody(judged)):
            coverage = Coverage(len(judged.gpus) - len(held), len(judged.gpus), "GPUs whose memory is accounted for")
            return self.any_of(judged, [self._of_nobody(judged, held)], coverage)
        return seen

    def _second(self, judged: Node) -> Outcome:
        if Topic.PROCESSES not in judged.topics:
            return self.unknown(judged, "the processes on the GPUs were not seen")
        held = grouped(
            (process.gpus[0], process)
            for process in judged.processes
            if len(process.gpus) == 1 and process.name.known and not HELPERS.search(process.name.value or "")
        )
        usual = _usual(held.values())
        with_usual = [index for index, group in held.items() if any(process.name.value == usual for process in group)]
        if len(with_usual) < LEAST:
            return self.not_applicable(judged, "no program that holds most GPUs, one process each")
        own = majority(job for index in with_usual for process in held[index] if (job := _job(process)))
        others = {
            index: processes for index in with_usual if (processes := tuple(_foreign(held[index], usual, own or "")))
        }
        coverage = Coverage(len(held), max(len(judged.gpus), len(held)), "GPUs with processes")
        if not others or len(others) > len(with_usual) // 2:  # what runs on most GPUs belongs to the job
            return self.clean(judged, coverage=coverage)
        findings = (self._beside(judged, index, group, usual) for index, group in sorted(others.items()))
        return self.any_of(judged, findings, coverage)

    def _beside(self, judged: Node, index: int, group: Sequence[Process], usual: str) -> Finding:
        """The processes of one GPU that are not of the program on all GPUs."""
        gpu = judged.gpu(index)
        label = gpu.label if gpu is not None else f"GPU{index}"
        names = ", ".join(f"{process.name.value} (pid {process.pid})" for process in group[:3])
        return self.finding(
            self.where(judged, gpus=[label]),
            self.advice("second program", pid=group[0].pid),
            f"{label} runs a second program: {names}, next to {usual}",
            observed=f"{names} on {label}; {usual} alone on its peers",
            evidence=[process.name for process in group],
        )

    def _of_nobody(self, judged: Node, gpus: Sequence[Gpu]) -> Finding:
        """A server that waits for requests holds memory so, and so do a program that was left behind and one of
        somebody else."""
        labels = [gpu.label for gpu in gpus]
        shares = sorted(gpu.memory_used_share.get(0.0) for gpu in gpus)
        most, which = percent(shares[-1]), fold_labels(labels)
        hold = "holds" if len(labels) == 1 else "hold"
        return self.finding(
            self.where(judged, gpus=labels),
            "memory held by nobody",
            f"{which} {hold} up to {most} of the memory at a load of 0 %, and no process is shown: it is open whose"
            " it is",
            observed=f"{percent(shares[0])} to {most} of the memory in use at a load of 0 % on {which}",
            evidence=[gpu.memory_used_share for gpu in gpus],
        )


def _held_by_nobody(node: Node) -> tuple[Gpu, ...]:
    """GPUs without load that hold memory, and of which no process is shown. One that holds as much as a peer that
    works is of the same job."""
    known = {index for process in node.processes for index in process.gpus}
    working = [gpu.memory_used_share.get(0.0) for gpu in node.gpus if gpu.utilization.get(0) > 0]
    return tuple(
        gpu
        for gpu in node.gpus
        for share in [gpu.memory_used_share.get(0.0)]
        if gpu.index not in known
        and gpu.utilization.value == 0
        and share >= HELD_SHARE
        and not any(abs(share - other) <= ALIKE for other in working)
    )


def _usual(groups: Iterable[Sequence[Process]]) -> str:
    """The program on the most GPUs, of several the one with a scheduler's id."""
    counts: dict[str, tuple[int, bool]] = {}
    for group in groups:
        for name in {process.name.value or "" for process in group}:
            of_job = any(_job(process) for process in group if process.name.value == name)
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
