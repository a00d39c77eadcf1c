"""The wiring of `topodiag emit`: an artefact is made, read back, judged and compared before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from topodiag.app.case.opening import one_node
from topodiag.app.case.topology import Topology, predict_topology
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.checks.shared.node.flat_tree import is_flat
from topodiag.emit.nccl_xml import UnwritableError, to_text
from topodiag.evidence.intake.one_file import read_small
from topodiag.evidence.layout.affinity import parse_pairs, read_affinity, read_pairs_file
from topodiag.evidence.nccl_xml import read_file
from topodiag.hardware import catalog
from topodiag.model.errors import InputError
from topodiag.model.gpudirect import rdma_possible
from topodiag.model.nccl_tree import Element, NcclFile, of_rccl
from topodiag.model.nccl_versions import DEFAULT_VERSION, assumption, minor_of
from topodiag.nccl.rccl.decide import VERSION as RCCL
from topodiag.nccl.topo.answers import COMPARED, Comparison, TopoFile, worse
from topodiag.nccl.topo.changes import EditedTree
from topodiag.nccl.topo.clean import UnfitError, bare, fitted, one_host
from topodiag.nccl.topo.clean import undescribed as without_devices
from topodiag.nccl.topo.detect import masks_of
from topodiag.nccl.topo.infer_instance import infer_instance, plan_by_instance
from topodiag.nccl.topo.repair import Repair, repair
from topodiag.nccl.topo.virtual import Guest, Plan, VirtualError, complete, guest_of
from topodiag.nccl.topo.virtual_affinity import plan_by_affinity
from topodiag.nccl.topo.virtual_host import find_pairs, plan_by_host, read_pairs

CHECKED = ("TOP004", "TOP005", "TOP006")
"""Checks of the file that was made. TOP001 is the reading back itself."""

MAX_SMALL_FILE = 2_000_000
"""Bytes that are read of a map or a matrix; their readers refuse less."""

Complete = Callable[[Element], EditedTree]
"""A further step of making the tree, such as completing a guest's tree by its host's."""


def make_topo_file(
    topology: Topology,
    *,
    version: str = DEFAULT_VERSION,
    nodes: int | None = None,
    host: str | None = None,
    repaired: bool = False,
    undescribed: bool = False,
    complete: Sequence[Complete] = (),
    env: Mapping[str, str] | None = None,
) -> TopoFile:
    """The NCCL_TOPO_FILE of a topology: cleaned for this version, completed, repaired where asked, read back, judged.

    It is compared on one node and, where there are NICs, on two; or on `nodes` alone. `undescribed` leaves GPUs and
    NICs out of the file, for NCCL to look up. Raises InputError where no file for this version can be made of it.
    """
    library = "RCCL" if of_rccl(topology.tree) else "NCCL"
    version = RCCL if of_rccl(topology.tree) else version
    done: list[str] = [*topology.assumed, *filter(None, [assumption(version)])]
    repairs: tuple[Repair, ...] = ()
    try:
        present = _present(topology, host)
        tree = topology.tree
        for step in (lambda tree: bare(tree, minor_of(version), host), *complete):
            edited = step(tree)
            tree = edited.tree
            done.extend(edited.done)
        if repaired:
            result = repair(tree)
            tree, repairs = result.tree, result.repairs
        made_fit = fitted(tree, minor_of(version))
        done.extend(made_fit.done)
        tree = made_fit.tree
        done.extend(_pinned(tree, topology) if not undescribed else ())
        written = without_devices(tree) if undescribed else tree
        text = to_text(written, minor_of(version))
    except (UnfitError, UnwritableError, VirtualError) as error:
        raise InputError(topology.name, f"cannot be made a topology file: {error}") from None
    back = _read_back(text, topology.name, version)
    if back.tree != written:
        raise InputError(topology.name, f"makes a file that NCCL {version} reads otherwise than it is meant")
    # What NCCL looks up by itself it finds as it is: the decisions are those on the whole tree.
    back = replace(back, tree=tree)
    has_nics = any(element.tag == "net" for element in tree.walk())
    counts = (nodes,) if nodes is not None else (1, 2) if has_nics else (1,)
    emitted = replace(topology, tree=tree, node=replace(topology.node, nccl_file=back))
    comparisons = tuple(_compared(present, emitted, count, version, env) for count in counts)
    worsened = tuple(sentence for comparison in comparisons for sentence in worse(comparison))
    left = tuple(finding for outcome in run(Subject.NODE, [emitted.node], CHECKED) for finding in outcome.findings)
    flat = not complete and is_flat(topology.node)
    return TopoFile(text, version, tuple(dict.fromkeys(done)), repairs, comparisons, worsened, left, flat, library)


def _compared(
    present: Topology, emitted: Topology, nodes: int, version: str, env: Mapping[str, str] | None
) -> Comparison:
    asked = partial(predict_topology, nodes=nodes, version=version, env=env, sizes=COMPARED)
    before, after = asked(present), asked(emitted)
    if not after.accepted:
        raise InputError(present.name, f"makes a file that NCCL {version} refuses: {after.why}")
    return Comparison(nodes, before, after)


def _pinned(tree: Element, topology: Topology) -> Iterator[str]:
    """NCCL believes what a file says of GPUDirect RDMA, whatever the modules of the machine are by then."""
    gpus = [element.get("gdr") for element in tree.walk() if element.tag == "gpu"]
    nets = [element.get("gdr") for element in tree.walk() if element.tag == "net"]
    if topology.node.nccl_file is None and rdma_possible(topology.node) is None and "1" in nets:
        yield "GPUDirect RDMA stands in it as on (gdr), unseen: NCCL will not look; --bare leaves it to NCCL"
    elif nets and "1" not in gpus and "1" not in nets:
        yield "GPUDirect RDMA stands in it as off (gdr): it stays off with this file; --bare leaves it to NCCL"


def _present(topology: Topology, host: str | None) -> Topology:
    """What the file is compared with: of a dump of several hosts, the one that it is made for."""
    part = one_host(topology.tree, host).tree
    return topology if part == topology.tree else replace(topology, tree=part)


def _read_back(text: str, name: str, version: str) -> NcclFile:
    """The text as NCCL's parser reads it; what it refuses is never written."""
    back = read_file(text.encode("utf-8", "surrogateescape"), name)
    refusal = back.refusal(minor_of(version))
    if refusal is not None:
        raise InputError(name, f"makes a file that NCCL {version} refuses in line {refusal.line}: {refusal.words}")
    return back


# --- for a virtual machine ----------------------------------------------------------------------------------


def by_host(topology: Topology, capture: str, pairs: str | None = None) -> Complete:
    """The guest's tree completed by a capture of its host: a bundle, a topology dump, `fixture:NAME`. `pairs` is a file
    or `guest=host,...`; None finds them. Raises InputError."""
    host = one_node(capture).node
    if host.nccl_file is None and not host.pci:
        hint = "on the host: topodiag scan --save host.tar.gz"
        raise InputError(capture, "holds no PCI tree and no topology dump", hint=hint)
    words = _pairs(pairs) if pairs is not None else None

    def plan(guest: Guest) -> Plan:
        pairs_of = find_pairs(guest, topology.node, host) if words is None else read_pairs(guest, host, words)
        return plan_by_host(guest, host, pairs_of)

    return _completing(topology, plan)


def by_instance(topology: Topology, name: str) -> Complete:
    """The guest's tree completed by the published layout of its instance type. Raises InputError for an unknown one."""
    spec = catalog.instance_by_name(name)
    if spec is None:
        known = [name for spec in catalog.instances() for name in (spec.name, *spec.names)]
        lower = {name.lower(): name for name in known}
        near = [lower[match] for match in get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
        raise InputError(f"--instance {name}", "is no instance type whose PCI layout is published", hint=hint)
    return _completing(topology, lambda guest: plan_by_instance(guest, spec))


def by_evidence(topology: Topology) -> list[Complete]:
    """For a guest whose PCI tree is its hypervisor's invention: the layout of the instance type that its parts name. []
    for any other machine, and where no type, or more than one, fits."""
    spec = infer_instance(topology.node) if is_flat(topology.node) else None
    if spec is None:
        return []
    note = f"the provider, the GPUs and the NICs are those of {spec.name} (--instance for another)"
    return [lambda tree: EditedTree(tree, (note,)), by_instance(topology, spec.name)]


def by_affinity(topology: Topology, path: str) -> Complete:
    """The guest's tree completed by a CSV matrix of what was measured. Raises InputError."""
    measured = read_affinity(read_small(path, MAX_SMALL_FILE), path)
    numa = {gpu.bus_id: gpu.numa.get(-1) for gpu in topology.node.gpus if gpu.bus_id}
    return _completing(topology, lambda guest: plan_by_affinity(guest, measured, numa))


def _completing(topology: Topology, plan: Callable[[Guest], Plan]) -> Complete:
    taken = [*topology.node.pci, *(element.get("busid") or "" for element in topology.tree.walk())]

    return lambda tree: complete(tree, plan(guest_of(tree, taken)), taken=taken, masks=masks_of(topology.node))


def _pairs(text: str) -> dict[str, str]:
    """A file, or pairs themselves: a `=` in a name of no file makes the difference."""
    if "=" in text and not Path(text).is_file():
        return parse_pairs(text)
    return read_pairs_file(read_small(text, MAX_SMALL_FILE), text)
