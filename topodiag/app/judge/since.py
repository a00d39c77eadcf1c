"""The use case of `topodiag scan --since`: the nodes at hand, each held against an earlier capture of itself."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.fleet.changed import same_machine
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.reader import ReadNode
from topodiag.fleet.history.capture import capture_of, pair, same_host
from topodiag.model.errors import InputError
from topodiag.model.finding import Outcome
from topodiag.model.history import NodeHistory
from topodiag.model.node import Node
from topodiag.words.units import fold_hosts

BASIS = "capture given"


def histories(nodes: Sequence[Node], earlier: ReadNode, path: str) -> tuple[NodeHistory, ...]:
    """The nodes of which `earlier` is a capture, by their GPUs and network cards, else by name. Raises InputError where
    it is of none of them, or was made later."""
    before = capture_of(earlier.node, path, earlier.inputs)
    node_histories = []
    for node in nodes:
        now = capture_of(node, node.host)
        same = same_machine(before.facts, now.facts)
        if same or same_host(node.host, earlier.node.host):
            if now.time_s is not None and before.time_s is not None and now.time_s < before.time_s:
                hint = f"topodiag scan {path} --since the other one"
                raise InputError(
                    path, f"was captured on {before.day}, later than what is scanned ({now.day})", hint=hint
                )
            node_histories.append(pair(before, now, BASIS))
    if not node_histories:
        names = fold_hosts([node.host for node in nodes])
        raise InputError(
            path, f"is a capture of {earlier.node.host}, and the evidence is of {names}",
            hint="--since takes an earlier capture of the same node",
        )  # fmt: skip
    return tuple(node_histories)


def judged_since(nodes: Sequence[Node], earlier: ReadNode, path: str) -> tuple[Outcome, ...]:
    """What the checks of a history say of the nodes. Raises InputError."""
    held = histories(nodes, earlier, path)
    # Two captures of one boot show which links fell; of two boots nobody can ask that.
    return run(Subject.HISTORY, held, () if any(history.grown for history in held) else ("FLT003",))
