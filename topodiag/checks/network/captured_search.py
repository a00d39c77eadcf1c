"""What NCCL would find on the machines of a job as their captures show them, beside what its log says that it found.

The comparison is not made, and `searched_on_captures` says why, where the log or a capture leaves open what NCCL met:

    log       several or unknown versions, a cut log, ranks without a GPU, another network than NCCL's own, a tuner
              plugin, a topology file that was loaded, settings of `shaping` or that the model does not follow
    machines  a host without a capture, NVLink between hosts, several hosts as one node or one as several, MIG, GPUs
              that the capture does not have, NVLinks that nobody read
    nodes     over the network: a part of the GPUs of a host (its container may have a part of the NICs), a NIC whose
              rate or place on the PCI bus is unknown, NICs in the log that are not those of the capture
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from topodiag.checks.shared.job.logs import OVER_PCI, hcas_by_host, said_by, settings_of
from topodiag.checks.shared.job.nic_uses import port_names
from topodiag.checks.shared.topo_evidence import PRICED_BYTES, cost_by_model, ring_gbs, spell_ring
from topodiag.checks.shared.topo_file import alone
from topodiag.lazy import dataclass
from topodiag.model.finding import Cost
from topodiag.model.job import Communicator, Job
from topodiag.model.nccl_enums import Graph as Ids
from topodiag.model.nccl_enums import Pattern
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import UnknownVersionError, assumption, minor_of, number_of
from topodiag.model.nccl_view import Graph
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.nccl.connect.communicator import Member
from topodiag.nccl.predict import Host, predict_job
from topodiag.nccl.prediction import PredictedGraph, Prediction
from topodiag.nccl.settings import not_followed
from topodiag.nccl.topo.changes import nets_of
from topodiag.nccl.topo.detect import LackingError, tree_of
from topodiag.words.own_data import own_data
from topodiag.words.units import few, fold_hosts, plural

HOST_ID = "NCCL_HOSTID"
"""Parts a host into nodes or joins hosts to one; a log since 2.20 prints how many nodes NCCL counts."""

_NAMES = own_data("checks/network/names")

_IDS = {1: Ids.TREE, 2: Ids.TREE, 3: Ids.TREE, 4: Ids.RING, 5: Ids.NVLS}
"""SearchGraph.id by pattern, without CollNet."""

FAR_TYPES = frozenset({"PHB", "SYS"})

KEPT = 0.75
"""Part of the predicted bandwidth from which on a ring is taken as the predicted one: NCCL's search goes in steps of a
fifth and a quarter (src/graph/search.cc, speedArray), and one step is no contradiction."""

FEW_CHANNELS = 0.5
"""The same of channels, of which a log without graphs has the number alone."""

_DEVICES = "a part of the devices"


@dataclass(frozen=True, slots=True)
class Searched:
    """What NCCL `prediction.version` would find on `machines`. `hosts` and `members` are the question."""

    prediction: Prediction
    machines: tuple[Node, ...]
    hosts: tuple[Host, ...]
    members: tuple[Member, ...]

    @property
    def source(self) -> str:
        names = fold_hosts(sorted({node.host for node in self.machines}))
        return f"predict of the capture of {names}, {self.prediction.by}"

    def with_setting(self, name: str, value: str) -> Searched:
        """The same machines, on all of which a variable is set."""
        hosts = tuple((tree, tuple(sorted({**dict(env), name: value}.items()))) for tree, env in self.hosts)
        return replace(self, hosts=hosts, prediction=_asked(hosts, self.members, self.prediction.version))

    def cost(self, graphs: Sequence[PredictedGraph]) -> Cost:
        """What other graphs take from the same communicator."""
        now = _asked(self.hosts, self.members, self.prediction.version, tuple(graphs))
        return cost_by_model(self.prediction, now, "", "NCCL's model gives both graphs one bandwidth: it costs latency")


@dataclass(frozen=True, slots=True)
class Gap:
    """Hosts whose graphs in the log fall short of those predicted, both in words of the worst; `reached` of 1 that is
    left of the bandwidth; `hidden`: what the job did not see, as far as the types of both say it."""

    hosts: tuple[str, ...]
    logged: str
    predicted: str
    reached: float
    cost: Cost
    evidence: tuple[Origin | None, ...]
    hidden: str


def gap_of(job: Job, beside: Searched, *, across: bool) -> Gap | None:
    """By the lines `Pattern 4` of the communicator of all ranks, else by the number of channels in a log without
    graphs; None where nothing falls short."""
    best, world = beside.prediction.graph(Ids.RING), job.world
    if best is None or world is None or ring_gbs(best, across) <= 0:
        return None
    rings = {host: ring for host, graphs in world.graphs.items() for ring in graphs if ring.pattern == Pattern.RING}
    if not rings:
        return _by_channels(job, world, beside)
    short = [host for host, ring in rings.items() if _falls_short(ring, best, across)]
    if not short:
        return None
    host = min(short, key=lambda name: ring_gbs(rings[name], across))
    ring, system = rings[host], world.systems.get(host)
    graphs = [_predicted(graph) for graph in world.graphs[host] if graph.pattern in _IDS and graph.channels]
    return Gap(
        tuple(short),
        _spell(ring, across),
        _spell(best, across),
        ring_gbs(ring, across) / ring_gbs(best, across),
        beside.cost(graphs),
        (ring.origin, system.origin if system is not None else None, _line_of(beside)),
        "NVLinks" if _over_pci(ring, best) else "the PCI switches between GPUs and NICs" if across else _DEVICES,
    )


def _by_channels(job: Job, world: Communicator, beside: Searched) -> Gap | None:
    if not world.channels.nvls:  # whatever keeps NVLS off is no loss of channels: its own are not to be expected
        beside = beside.with_setting("NCCL_NVLS_ENABLE", "0")
    coll, wanted = world.channels.coll, beside.prediction.channels
    if wanted is None or not 0 < coll < wanted.coll * FEW_CHANNELS:
        return None
    graphs = [replace(own, channels=max(own.channels * coll // wanted.coll, 1)) for own in beside.prediction.graphs]
    logged, predicted = (plural(count, "coll channel") for count in (coll, wanted.coll))
    lines = (world.origin, _line_of(beside))
    return Gap(job.hosts, logged, predicted, coll / wanted.coll, beside.cost(graphs), lines, _DEVICES)


def _falls_short(ring: Graph, best: PredictedGraph, across: bool) -> bool:
    far = across and ring.type_inter in FAR_TYPES and best.type_inter not in FAR_TYPES
    return ring_gbs(ring, across) < KEPT * ring_gbs(best, across) or _over_pci(ring, best) or far


def _over_pci(ring: Graph, best: PredictedGraph) -> bool:
    return ring.type_intra in OVER_PCI and best.type_intra not in OVER_PCI


def _spell(ring: Graph | PredictedGraph, across: bool) -> str:
    """With the path types: `2 rings of 10 GB/s over PHB`, over several nodes also that of the way to NICs."""
    return f"{spell_ring(ring, across)} over {ring.type_intra}" + (f", {ring.type_inter} to NICs" if across else "")


def _predicted(graph: Graph) -> PredictedGraph:
    names = {field.name for field in fields(PredictedGraph)} - {"id", "orders"}
    return PredictedGraph(id=_IDS[graph.pattern], **{name: getattr(graph, name) for name in names})


def _line_of(beside: Searched) -> Origin | None:
    """A line of a capture that shows what the prediction is made of: a link of its first GPU, else that GPU."""
    gpu = next((gpu for node in beside.machines for gpu in node.gpus), None)
    if gpu is None:
        return None
    return gpu.nvlinks[0].state.origin if gpu.nvlinks else gpu.name.origin


def searched_on_captures(job: Job, *, across: bool) -> Searched | str:
    """What NCCL would find for the communicator of all ranks, or why that cannot be said."""
    world = job.world
    if not job.machines or world is None:
        return "no capture of its machines"
    if why := next(_open_in_log(job, world), "") or next(_open_machines(job, world, across=across), ""):
        return why
    names = list(dict.fromkeys(job.by_rank[int(rank)].host for rank in world.ranks))
    hosts: list[Host] = []
    for name in names:
        env, node = _env(job, name), job.machines[name]
        try:
            tree = tree_of(node if alone(node) else replace(node, nccl_file=None), env).tree
        except LackingError as error:
            return f"the capture of {node.host}: {error}"
        if across and (why := _open_network(job, name, node, tree)):
            return why
        hosts.append((tree, tuple(sorted(env.items()))))
    ranks = [job.by_rank[int(rank)] for rank in world.ranks]
    members = tuple(Member(number, names.index(rank.host), rank.bus_id) for number, rank in enumerate(ranks))
    prediction = _asked(tuple(hosts), members, number_of(job.nccl_versions[0]))
    if not prediction.accepted or not prediction.graphs:
        return prediction.why or "no NIC in the capture"
    return Searched(prediction, tuple(job.machines[name] for name in names), tuple(hosts), members)


def _asked(
    hosts: tuple[Host, ...], members: tuple[Member, ...], version: str, agreed: tuple[PredictedGraph, ...] = ()
) -> Prediction:
    return predict_job(
        hosts, members, version=version, sizes=(PRICED_BYTES,), collectives=("AllReduce",), agreed=agreed
    )


def _env(job: Job, host: str) -> dict[str, str]:
    own = [process.settings for process in job.processes if process.host == host]
    return {given.name: given.value for settings in own for given in settings.values() if given.how != "invalid"}


def _open_in_log(job: Job, world: Communicator) -> Iterator[str]:
    """What the log leaves open of NCCL's search, a sentence each."""
    if len(job.nccl_versions) != 1 or not _is_known(job.nccl_versions[0]):
        yield f"NCCL {'/'.join(job.nccl_versions) or 'of an unknown version'} is not modelled"
    if job.cut_logs:
        yield f"{few(sorted(job.cut_logs))} is cut"
    placed = sum(int(rank) in job.by_rank and bool(job.by_rank[int(rank)].bus_id) for rank in world.ranks)
    if placed < world.nranks or world.inferred:
        yield f"the log shows the GPU of {placed} of {plural(world.nranks, 'rank')}"
    networks = {process.network for process in job.processes} - {"", "IB", "Socket"}
    plugins = networks | {"a tuner plugin" for process in job.processes if process.versions.get("tuner plugin")}
    if plugins:
        yield f"{few(sorted(plugins))}: what a plugin decides is not modelled"
    for kind, words, why in _NAMES["said"]:
        if any(words in line.text for line in said_by(job, kind)):
            yield why
    given = {name: value for host in job.hosts for name, value in _env(job, host).items()}
    if shaping := sorted({*settings_of(job, HOST_ID, *_NAMES["shaping"])} - ({HOST_ID} if world.nodes > 0 else set())):
        yield f"set in the job: {few(shaping)}"
    yield from not_followed(given)


def _is_known(version: str) -> bool:
    try:
        return bool(minor_of(number_of(version))) and not assumption(number_of(version))
    except UnknownVersionError:
        return False


def _open_machines(job: Job, world: Communicator, *, across: bool) -> Iterator[str]:
    """What the captures leave open of the machines, a sentence each."""
    used: dict[str, set[str]] = {host: set() for host in job.hosts}
    for rank in job.ranks:
        used.setdefault(rank.host, set()).add(rank.bus_id)
    if lacking := [host for host in used if host not in job.machines]:
        yield f"no capture of {few(lacking)}"
        return
    if world.mnnvl or world.nodes not in (-1, len(used)):
        yield f"NCCL counts {plural(world.nodes, 'node')} on {plural(len(used), 'host')}"
    for host, buses in used.items():
        yield from _open_machine(job.machines[host], buses, across=across)


def _open_machine(node: Node, buses: set[str], *, across: bool) -> Iterator[str]:
    """The same of one machine, whose GPUs with these bus ids the job has."""
    gpus = {gpu.bus_id: gpu for gpu in node.gpus}
    if node.nccl_file is None and not buses <= set(gpus):
        yield f"the job's GPUs are not those in the capture of {node.host}"
    if any(gpu.mig.value for gpu in node.gpus):
        yield f"MIG is on in the capture of {node.host}"
    seen = {label for pair in node.smi_matrix for label in pair}
    if any(not gpu.nvlinks and not gpu.nvlink_note.known and gpu.label not in seen for gpu in node.gpus):
        yield f"the capture of {node.host} does not show the NVLinks"
    if across and len(buses) < len(gpus):
        yield f"the job uses a part of the GPUs of {node.host}"


def _open_network(job: Job, host: str, node: Node, tree: Element) -> str:
    """What the log and a capture leave open of the way to other hosts, or ""."""
    names = set(nets_of(tree))
    if names != port_names(tuple(hcas_by_host(job).get(host, {}).values())):
        return f"the NICs that NCCL lists on {host} are not those up in its capture"
    if alone(node):  # a topology file has all of it
        return ""
    nics = [nic for nic in node.nics if nic.rdma_name in names]
    if any(port.rate_gbps.value is None for nic in nics for port in nic.ports):
        return f"the capture of {node.host} lacks a NIC's rate"
    if not {*(gpu.bus_id for gpu in node.gpus), *(nic.bus_id for nic in nics)} <= set(node.pci):
        return f"the capture of {node.host} does not show where GPUs and NICs sit on the PCI bus"
    return ""
