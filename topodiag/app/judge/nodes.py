"""The nodes of a case, judged; against an earlier capture of one of them, too (`topodiag scan --since`)."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.app.judge.results import judged_result
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.checks.spoken import told
from topodiag.checks.troubles.node import troubles
from topodiag.evidence.intake.reader import ReadNode
from topodiag.model.errors import InputError
from topodiag.model.finding import Outcome
from topodiag.model.node import Node
from topodiag.model.result import Case, Result
from topodiag.words.units import fold_hosts


def judged(case: Case, earlier: ReadNode | None = None, path: str = "") -> Result:
    """The nodes of a case, judged; against an `earlier` capture of one of them, read from `path`, where there is one.
    Raises InputError where that is of another node."""
    outcomes = run(Subject.NODE, case.nodes)
    if earlier is not None:
        outcomes += _since(case.nodes, earlier, path)
    return told(judged_result(case, outcomes, unexplained=troubles(case.nodes, outcomes)))


BASIS = "capture given"


def _since(nodes: Sequence[Node], earlier: ReadNode, path: str) -> tuple[Outcome, ...]:
    """What the checks of a history say of the nodes of which `earlier` is a capture, by their GPUs and network cards,
    else by name. Raises InputError where it is of none of them, or was made later."""
    from topodiag.checks.fleet.changed import same_machine  # noqa: PLC0415 - facts of a node, which few scans need
    from topodiag.fleet.history.capture import capture_of, pair, same_host  # noqa: PLC0415 - as above

    before = capture_of(earlier.node, path, earlier.inputs)
    node_histories = []
    for node in nodes:
        now = capture_of(node, node.host)
        if same_machine(before.facts, now.facts) or same_host(node.host, earlier.node.host):
            if now.time_s is not None and before.time_s is not None and now.time_s < before.time_s:
                hint = f"topodiag scan {path} --since the other one"
                what = f"was captured on {before.day}, later than what is scanned ({now.day})"
                raise InputError(path, what, hint=hint)
            node_histories.append(pair(before, now, BASIS))
    if not node_histories:
        names = fold_hosts([node.host for node in nodes])
        raise InputError(
            path, f"is a capture of {earlier.node.host}, and the evidence is of {names}",
            hint="--since takes an earlier capture of the same node",
        )  # fmt: skip
    # Two captures of one boot show which links fell; of two boots nobody can ask that.
    return run(Subject.HISTORY, node_histories, () if any(history.grown for history in node_histories) else ("FLT003",))
