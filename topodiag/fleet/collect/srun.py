"""srun inside an allocation: no ssh, the job's own view of the node, one stream for all nodes.

The collector goes through srun's standard input, which it copies to every task; to many nodes sbcast copies it first,
from node to node. Lines of all nodes come back mixed: each begins with its node (SLURMD_NODENAME).
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from contextlib import suppress

from topodiag.fleet.collect.boot import argv, standard_input
from topodiag.fleet.collect.interface import Ear, Request, Transport
from topodiag.fleet.collect.processes import Job, Pump, answer_of
from topodiag.lazy import regex
from topodiag.model.errors import InputError
from topodiag.words.node_sets import NodeSetError, expand

BY_TREE = 64
"""Nodes from which on sbcast carries the collector: srun copies its input to one node after the other."""
_FOREIGN = frozenset({"SLURM_HOSTFILE", "SLURM_DISTRIBUTION", "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK"})
"""Of the job: with a host file beside a node list Slurm refuses the step."""
_OF_NODE = regex(r"(?:srun|slurmstepd): error: (?:Node )?([\w.,\[\]-]{1,2000}?)[: ]")


class Srun(Transport):
    """Nodes of the allocation that this program runs in."""

    name = "srun"
    without = "use --via ssh, kubectl or share"

    def check(self) -> None:
        super().check()
        if not os.environ.get("SLURM_JOB_ID"):
            hint = "salloc -N 64 topodiag fleet collect ...; or --via ssh"
            raise InputError("srun", "needs a Slurm allocation", hint=hint)

    def ask(self, request: Request, nodes: Sequence[str], ear: Ear, within_s: float) -> bool:
        ours = set(_allocated())
        inside = [node for node in nodes if not ours or node in ours]
        for node in nodes:
            ear.begins(node)
            if ours and node not in ours:
                ear.complains(node, b"srun: it is not in this allocation")
                ear.ends(node, 1)
        if not inside:
            return True
        given = standard_input(request.collector, request.mark, request.arguments)
        job = _by_tree(request) if len(inside) >= BY_TREE else Job("", argv(), given)
        env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        launched = Job("", (*launcher(inside), *job.argv), job.given, env)
        return Pump(_EarOfAll(ear, inside), 1, request.node_s).run([launched], within_s)


def launcher(nodes: Sequence[str]) -> tuple[str, ...]:
    """srun, one task on each of these nodes, beside whatever runs there; a node that fails ends no other."""
    return (
        "srun", "--overlap", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}", "--ntasks-per-node=1",
        "--cpus-per-task=1", f"--nodelist={','.join(nodes)}", "--kill-on-bad-exit=0", "--wait=0", "--no-kill",
        "--mpi=none", "--job-name=topodiag",
    )  # fmt: skip


def _allocated() -> tuple[str, ...]:
    try:
        return expand(os.environ.get("SLURM_JOB_NODELIST", ""))
    except NodeSetError:
        return ()


def _by_tree(request: Request) -> Job:
    """The collector copied to every node first. Raises InputError where sbcast cannot."""
    there = f"/tmp/topodiag-probe-{request.mark}.pyz"  # noqa: S108 - a name that nobody can guess, on every node
    with tempfile.NamedTemporaryFile(suffix=".pyz") as here:
        here.write(request.collector)
        here.flush()
        answer_of("sbcast", "--force", here.name, there, hint="use --via ssh")
    run = f"python3 {there} {shlex.join(request.arguments)} --tied --quiet; c=$?; rm -f {there}; exit $c"
    return Job("", ("/bin/sh", "-c", run))


class _EarOfAll:
    """srun's lines: output by node, complaints by the node that they name, the others for all."""

    def __init__(self, ear: Ear, nodes: Sequence[str]) -> None:
        self._ear, self._nodes, self._last = ear, nodes, b""

    def begins(self, node: str) -> None:
        """Each node began before srun did."""

    def hears(self, node: str, line: bytes) -> bool:
        self._ear.hears(node, line)
        return True  # one node's end is not the launcher's

    def complains(self, node: str, line: bytes) -> None:
        match = _OF_NODE.match(line[:4000].decode("utf-8", "replace"))
        named: set[str] = set()
        if match:
            with suppress(NodeSetError):
                named = set(self._nodes).intersection(expand(match[1].rstrip(",")))
        for named_node in named:
            self._ear.complains(named_node, line)
        if not named and line.strip():
            self._last = line

    def ends(self, node: str, code: int) -> None:
        for name in self._nodes:
            if self._last:
                self._ear.complains(name, self._last)
            self._ear.ends(name, code)

    def late(self, node: str) -> None:
        for name in self._nodes:
            self._ear.late(name)
