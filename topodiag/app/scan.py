"""The use case of `topodiag scan`: from paths, or the live node, to nodes, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.app.case.collecting import few_collections
from topodiag.app.case.live import Options, Progress, captured
from topodiag.app.case.opening import case_of, gathered, node_case, one_node, with_paths
from topodiag.app.judge.judged import judged_nodes
from topodiag.evidence.intake.watched import watch
from topodiag.evidence.kinds import NODE_KINDS
from topodiag.model.errors import InputError
from topodiag.model.node import Node
from topodiag.model.result import Result


@few_collections()
def scan(paths: Sequence[str], *, options: Options | None = None, since: str | None = None) -> Result:
    """Judge captured nodes: any mix of bundles, folders of them, archives, files of tool output, topology files,
    `fixture:NAME` and `-`. What belongs to no node is left aside with the command that reads it. `since` is an earlier
    capture of one of the nodes: what changed is judged, too. Raises InputError."""
    if options is not None and options.save is not None:
        raise InputError(options.save, "only a live scan can be saved", hint="leave the paths or --save out")
    earlier = one_node(since) if since is not None else None
    intake = gathered(paths)
    watch().planned(intake.of(*NODE_KINDS))
    case = node_case(intake)
    watch().judged()
    return with_paths(judged_nodes(case, earlier, since or ""), paths)


def live(*, options: Options | None = None, on_progress: Progress | None = None, since: str | None = None) -> Result:
    """Diagnose this machine: the same code as for a bundle, on a capture that stays in memory. `since` is an earlier
    capture of it. Raises InputError."""
    earlier = one_node(since) if since is not None else None
    return judged_nodes(case_of([captured(options, on_progress)]), earlier, since or "")


def pictured(source: str) -> tuple[Result, Node]:
    """The first machine in some evidence, with what was found. Raises InputError where there is none to draw."""
    result = scan([source])
    node = result.nodes[0]
    if not (node.gpus or node.nics or node.numa):
        raise InputError(source, "shows no GPU, no NIC and no NUMA node to draw")
    return result, node
