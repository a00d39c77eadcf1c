"""The wiring of `topodiag emit`: an artefact is made, read back, judged and compared before it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from topodiag.cost.nccl.clean import UnfitError, clean
from topodiag.cost.nccl.prediction import Choice, Prediction
from topodiag.cost.nccl.repair import Repair, repair
from topodiag.cost.nccl.versions import minor_of
from topodiag.emit.nccl_xml import UnwritableError, to_text
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.pipeline_topo import Topology, predict_topology

WORSE = 0.01
"""A loss of bus bandwidth or a gain of time below this share is within the model's own rounding."""

COMPARED_BYTES = (64 << 10, 1 << 30)
"""Sizes at which the file is compared with the present: one bound by latency, one by bandwidth."""

Complete = Callable[[Element], "Completed"]
"""A further step of making the tree, such as completing a guest's tree by its host's."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A tree after a step, and what the step did, one sentence each."""

    tree: Element
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopoFile:
    """A topology file ready to be written: its text, what was done for it, and what NCCL makes of it."""

    text: str
    version: str
    done: tuple[str, ...]
    repairs: tuple[Repair, ...]
    before: Prediction
    after: Prediction
    worse: tuple[str, ...]
    """In what the file would make things worse than they are; () is the only state in which it is written unforced."""


def make_topo_file(
    topology: Topology,
    *,
    version: str = "2.28",
    nodes: int = 1,
    host: str | None = None,
    repaired: bool = False,
    complete: Sequence[Complete] = (),
    env: Mapping[str, str] | None = None,
) -> TopoFile:
    """The NCCL_TOPO_FILE of a topology: cleaned for this version, completed, repaired where asked, read back, judged.

    Raises InputError where no file for this version can be made of it.
    """
    done: list[str] = list(topology.assumed)
    repairs: tuple[Repair, ...] = ()
    try:
        cleaned = clean(topology.tree, minor_of(version), host)
        tree = cleaned.tree
        done.extend(cleaned.done)
        for step in complete:
            made = step(tree)
            tree = made.tree
            done.extend(made.done)
        if repaired:
            result = repair(tree)
            tree, repairs = result.tree, result.repairs
        text = to_text(tree)
    except (UnfitError, UnwritableError) as error:
        raise InputError(topology.name, f"cannot be made a topology file: {error}") from None
    back = _read_back(text, topology.name, version)
    before = predict_topology(topology, nodes=nodes, version=version, env=env, sizes=COMPARED_BYTES)
    emitted = replace(topology, tree=back.tree, node=replace(topology.node, nccl_file=back))
    after = predict_topology(emitted, nodes=nodes, version=version, env=env, sizes=COMPARED_BYTES)
    if not after.accepted:
        raise InputError(topology.name, f"makes a file that NCCL {version} refuses: {after.why}")
    return TopoFile(text, version, tuple(done), repairs, before, after, tuple(_worse(before, after)))


def _read_back(text: str, name: str, version: str) -> NcclFile:
    """The text as NCCL's parser reads it; what it refuses is never written."""
    back = read_file(text.encode("utf-8", "surrogateescape"), name)
    refusal = back.refusal(minor_of(version))
    if refusal is not None:
        raise InputError(name, f"makes a file that NCCL {version} refuses in line {refusal.line}: {refusal.words}")
    return back


def _worse(before: Prediction, after: Prediction) -> list[str]:
    if not before.accepted:
        return []
    found = []
    if after.ranks < before.ranks:
        found.append(f"{before.ranks - after.ranks} fewer GPUs")
    for old in before.choices:
        new = next((c for c in after.choices if (c.collective, c.bytes) == (old.collective, old.bytes)), None)
        if new is not None and new.time_us > old.time_us * (1 + WORSE):
            found.append(f"{old.collective} of {old.bytes} bytes takes {_slower(old, new)} longer")
    return found


def _slower(old: Choice, new: Choice) -> str:
    return f"{(new.time_us / old.time_us - 1) * 100:.0f} %"
