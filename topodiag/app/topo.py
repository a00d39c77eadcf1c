"""The use cases of `topodiag topo`: what is wrong with a topology, what a change would do, and how two differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from topodiag.app.case.opening import case_of, gathered, one_node
from topodiag.app.case.topology import Topology, open_topology, predict_topology
from topodiag.app.judge.judged import judged_result
from topodiag.checks.pcie.hops import LANES, trained
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.checks.spoken import told
from topodiag.model.devices import Gpu, Nic
from topodiag.model.errors import InputError
from topodiag.model.finding import Status
from topodiag.model.nccl_tree import NcclFile
from topodiag.model.nccl_versions import DEFAULT_VERSION, assumption, minor_of
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Result
from topodiag.nccl.topo import changes as edits
from topodiag.nccl.topo.answers import Compared, WhatIf
from topodiag.nccl.topo.changes import Change, ChangeError, apply
from topodiag.nccl.topo.compare import Difference, compare
from topodiag.nccl.topo.detect import LackingError, tree_of
from topodiag.words.units import fold_labels

if TYPE_CHECKING:
    from topodiag.model.job import Job


def result_of(*topologies: Topology) -> Result:
    """What was read of these, as a result in which nothing was judged."""
    return Result(
        inputs=tuple(dict.fromkeys(piece for topology in topologies for piece in topology.inputs)),
        not_observed=tuple(dict.fromkeys(gap for topology in topologies for gap in topology.not_observed)),
    )


CHECKED = (
    "TOP001", "TOP002", "TOP003", "TOP004", "TOP005", "TOP006", "NET006", "NVL001", "NVL004", "PCI001", "NIC005",
    "NUM001",
)  # fmt: skip
"""What is asked of a topology file: the checks that its content can answer."""


def check_topology(path: str, *, version: str = "", against: str | None = None) -> Result:
    """Would NCCL load this file, is it whole, and is it the machine of `against` (a bundle, a log, another file)?

    Of a bundle without such a file the topology that NCCL would detect on the node is judged. `version` "" asks for all
    versions. Raises InputError, also where the path shows no topology.
    """
    read = one_node(path)
    file, gaps = _file_of(read.node, path)
    asked = file.asked or ((minor_of(version),) if version else ())
    other = machine_of(against) if against is not None else None
    node = replace(read.node, nccl_file=replace(file, asked=asked, against=other))
    outcomes = run(Subject.NODE, [node], CHECKED)
    # What a node's sysfs would say is no question where the file answers it.
    texts = {outcome.check for outcome in outcomes if outcome.status in (Status.CLEAN, Status.FINDING)}
    outcomes = tuple(one for one in outcomes if one.status is not Status.UNKNOWN or one.check not in texts)
    note = assumption(version)
    assumed = (NotObserved(f"NCCL {version}", note),) if note else ()
    case = replace(case_of([read]), nodes=(node,), not_observed=(*gaps, *node.not_observed, *assumed))
    return told(judged_result(case, outcomes, given=(path,)))


def _file_of(node: Node, path: str) -> tuple[NcclFile, tuple[NotObserved, ...]]:
    """The topology file of a node, or what NCCL would detect on it in its place. Raises InputError for neither."""
    if node.nccl_file is not None:
        return node.nccl_file, ()
    try:
        detected = tree_of(node)
    except LackingError as lacking:
        hint = "write one: NCCL_TOPO_DUMP_FILE=topo.xml, or topodiag emit nccl-topo BUNDLE -o topo.xml"
        why = f"holds no topology file of NCCL, and cannot stand for one: {lacking}"
        raise InputError(path, why, hint=hint) from None
    why = "no topology file is given: what NCCL would detect on this node is judged"
    assumed = [NotObserved("the detected topology", note) for note in detected.assumed]
    return NcclFile(path, detected.tree), (NotObserved("a topology file", why), *assumed)


def machine_of(path: str) -> Node:
    """The machine of a bundle, a topology file or NCCL logs. Raises InputError."""
    try:
        return one_node(path).node
    except InputError:
        if path == "-":
            raise
        from topodiag.app.case.jobs import job_case  # noqa: PLC0415 - numpy, which only logs need

        jobs = job_case(gathered([path], quick=True)).jobs
        nodes = [node for job in jobs if (node := node_of_job(job)) is not None]
        if not nodes:
            raise InputError(path, "names no GPU and no NIC", hint="NCCL_DEBUG=INFO prints the bus ids") from None
        return nodes[0]


def node_of_job(job: Job) -> Node | None:
    """The first host of a job as its log shows it: bus ids of its ranks' GPUs, names of its NICs. None without both."""
    for host in job.hosts:
        ranks = [rank for rank in job.ranks if rank.host == host and rank.bus_id]
        gpus = {rank.bus_id: Gpu(max(rank.nvml_dev, rank.cuda_dev, 0), rank.bus_id) for rank in ranks}
        hcas = {hca.name: hca for process in job.processes if process.host == host for hca in process.hcas}
        if gpus or hcas:
            nics = tuple(Nic(name, rdma_name=name) for name in hcas)
            return Node(host, gpus=tuple(sorted(gpus.values(), key=lambda gpu: gpu.index)), nics=nics)
    return None


def what_if(
    topology: Topology,
    changes: Sequence[Change],
    *,
    size: int = 1 << 30,
    nodes: int = 1,
    version: str = DEFAULT_VERSION,
) -> WhatIf:
    """What the changes would do. Raises ChangeError where one names what is not there."""
    changed = apply(topology.tree, changes, topology.env)
    before = predict_topology(topology, nodes=nodes, version=version, sizes=(size,))
    other = replace(topology, tree=changed.tree)
    after = predict_topology(other, nodes=nodes, version=version, env=changed.env, sizes=(size,))
    return WhatIf(size, tuple(changes), before, after, topology.names)


def compare_topologies(
    left: str, right: str, *, buses: bool = False, nodes: int = 1, version: str = DEFAULT_VERSION
) -> tuple[Compared, tuple[Topology, Topology]]:
    """Two machines compared by what matters to communication, and both; `buses`: bus ids count, too. Raises
    InputError."""
    sides = open_topology(left), open_topology(right)
    differences = compare(sides[0].tree, sides[1].tree, buses=buses)
    differences, gaps = _with_trained(differences, trained(sides[0].node), trained(sides[1].node))
    first, second = (predict_topology(side, nodes=nodes, version=version) for side in sides)
    return Compared(differences, (first, second), gaps), sides


def _with_trained(
    differences: tuple[Difference, ...], left: Mapping[str, Mapping[str, str]], right: Mapping[str, Mapping[str, str]]
) -> tuple[tuple[Difference, ...], tuple[NotObserved, ...]]:
    """The differences with those of how links trained: NCCL's tree has what a link can do, and shows none of them."""
    silent = [side for side, links in (("left", left), ("right", right)) if not any(links.values())]
    if silent:
        why = f"{' and '.join(silent)} {'do' if len(silent) > 1 else 'does'} not say how links trained: what the links"
        return differences, (NotObserved("trained PCIe links", f"{why} can do is compared"),)
    built = {difference.device for difference in differences if difference.what == "PCIe"}
    both = [device for device in left if device in right and device not in built]
    shared = ((device, what, mine) for device in both for what, mine in left[device].items() if what in right[device])
    rows = ((device, what, mine, right[device][what]) for device, what, mine in shared)
    unlike = (Difference(*row) for row in rows if row[2] != row[3])
    unseen = [device for device in both if LANES not in left[device] or LANES not in right[device]]
    why = f"not known on both sides: {fold_labels(unseen)}"
    return (*differences, *unlike), (NotObserved("trained PCIe links", why),) if unseen else ()


def changes_of(words: Mapping[str, Sequence[str]], env: Mapping[str, str] | None = None) -> list[Change]:
    """Changes in the words of `topodiag topo what-if`, by its options and in their order. Raises ChangeError."""
    changes = [edit(word) for name, edit in _EDITS.items() for word in words.get(name, ())]
    return [*changes, *(edits.setting(f"{name}={value}") for name, value in (env or {}).items())]


_EDITS = {
    "down": edits.down, "remove": edits.remove, "lanes": edits.width, "speed": edits.speed, "rate": edits.rate,
    "off": edits.off,
}  # fmt: skip
"""What makes a change, by the option of its words."""

__all__ = ["ChangeError", "Compared", "WhatIf", "changes_of", "check_topology", "compare_topologies", "what_if"]
