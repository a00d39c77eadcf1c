"""Which machine a benchmark ran on, and how it was placed there: from a topology, a named system, or the run itself.

The less is known, the more machines fit: all are kept, so that what one of them reaches is not low on another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TypedDict, Unpack

from topodiag.expect.as_built import NarrowLink, built_tree, narrow_links
from topodiag.expect.settings import HCA, is_costly, leaves_out, whole_network
from topodiag.expect.tree import Layout, layout_of, tree_of_layout
from topodiag.expect.unlike import MixedHosts
from topodiag.hardware import catalog
from topodiag.hardware.specs import GpuSpec, SystemSpec
from topodiag.lazy import dataclass
from topodiag.model.bench import BenchRun
from topodiag.model.finding import Confidence
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import (
    DEFAULT,
    NEWEST_RUN,
    Feature,
    UnknownVersionError,
    assumption,
    has,
    nearest_minor,
    spell_version,
)
from topodiag.model.node import Node
from topodiag.nccl.topo.changes import bus_of, gpus_of, nets_of, remove
from topodiag.nccl.topo.detect import Detected, LackingError, tree_of

RACK_NODES = 18
"""Compute trays of four GPUs in one NVLink domain of 72 (NVIDIA GB200 NVL72 datasheet)."""
MOST_RANKS = 1 << 17
OTHER_VERSIONS = (spell_version(Feature.SHARDED_BY_BUS.since - 1), spell_version(NEWEST_RUN))
"""What else an unknown version is reckoned as: before the models of NVLS changed, and the newest."""

GUESSED_NODE, GUESSED_NETWORK = 0.2, 0.5
"""What is normal below the expectation of a machine that is only guessed: few of its GPUs may be in use, and which NICs
a node has is the integrator's choice."""

ANY_NETWORK = 1.0
"""The same of a node with another number of GPUs than any machine with such GPUs is built with: it has any network."""


class GivenSetup(TypedDict, total=False):
    """What is said of a run and its machine: `system` is a name of the catalogue, `nics` (count, Gb/s) those of a node
    whose network that leaves open, `network` what joins the nodes (rdma, cloud, tcpx, slingshot, sockets), `nodes` how
    many the ranks were on; `version` and `env` of NCCL win over what the run says."""

    system: str | None
    nics: tuple[int, float] | None
    nodes: int | None
    version: str | None
    env: Mapping[str, str] | None
    network: str | None


@dataclass(frozen=True, slots=True)
class Variant:
    """One machine that it could be: its tree as used (GPUs without a rank left out), and its name."""

    name: str
    tree: Element


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """A run on its machine, equal to itself alone (`shared`). `network`: `rdma` (InfiniBand, RoCE), `cloud` (virtual
    functions, EFA), `tcpx` (GPUDirect over TCP), `slingshot`, `sockets`; "" for one node. `others` are further machines
    that fit as well."""

    machine: str
    tree: Element
    nodes: int
    ranks: int
    version: str
    env: Mapping[str, str]
    sm: int
    network: str
    confidence: Confidence
    assumed: tuple[str, ...] = ()
    others: tuple[Variant, ...] = ()
    gpu: GpuSpec | None = None
    domain: int = 1
    """Nodes that share one NVLink domain (MNNVL)."""
    guessed: float = 0.0
    """How far below the expectation a run may fall at least because the machine is a guess, as a share."""
    versions: tuple[str, ...] = ()
    """Further NCCL versions that it could be, where the run does not say."""
    as_found: Element | None = None
    """The tree with the parts that fall short of their siblings, where some do: `tree` has them mended."""
    faults: tuple[str, ...] = ()
    narrow: tuple[NarrowLink, ...] = ()
    costly: Mapping[str, str] = field(default_factory=dict)
    """Settings in force that take a transport or NICs away: the expectation is without them, and each is a cause."""
    unlike: MixedHosts | None = None
    """The hosts of the run where they are not all `tree` under `env`."""

    @property
    def per_node(self) -> int:
        return self.ranks // self.nodes


class NoSetupError(ValueError):
    """The run does not say enough about its machine; the message says what lacks, and at its end what would help."""

    def __init__(self, why: str, action: str = "") -> None:
        super().__init__(f"{why}: {action}" if action else why)
        self.action = action


@dataclass(frozen=True, slots=True)
class _Machine:
    name: str
    tree: Element
    gpu: GpuSpec | None
    confidence: Confidence
    assumed: tuple[str, ...] = ()
    others: tuple[Layout, ...] = ()
    fits: bool = True
    """Whether machines are built with as many GPUs as each node of the run has."""
    virtual: bool = False
    as_found: Element | None = None
    faults: tuple[str, ...] = ()
    narrow: tuple[NarrowLink, ...] = ()


def setup_of(run: BenchRun, machine: Node | None = None, **given: Unpack[GivenSetup]) -> Setup:
    """The set-up of a run. Raises NoSetupError."""
    ranks = _ranks(run)
    nics, version = given.get("nics"), given.get("version") or run.nccl
    env = {**run.env, **(given.get("env") or {})}
    settings = {name: value for name, value in env.items() if not is_costly(name, value)}
    built = _machine(run, machine, given.get("system"), nics, settings)
    gpus = len(gpus_of(built.tree))
    hosts, per_node, how = _placed(run, given.get("nodes"), gpus)
    _refuse_shared_gpus(run)
    assumed = [*built.assumed, *([how] if how else [])]
    if gpus < per_node:
        raise NoSetupError(f"{per_node} ranks per node, and {built.name} has {gpus} GPUs")
    costly = {name: value for name, value in env.items() if name not in settings}
    if hosts > 1 and leaves_out(env.get(HCA, ""), nets_of(built.tree)):
        costly[HCA] = env[HCA]
    assumed += [f"modelled without {name}={value}" for name, value in costly.items()]
    minor, nccl = _version(version)
    assumed += [nccl] if nccl else []
    tree = _used(built.tree, run, per_node)
    domain = _domain(built, hosts, minor, settings)
    assumed += _implied(built.gpu, domain, settings)
    if hosts > domain and not nets_of(tree):
        raise NoSetupError(f"{hosts} nodes, and no NIC of {built.name} is known", "name the system or give a topology")
    return Setup(
        machine=built.name,
        tree=tree,
        nodes=hosts,
        ranks=ranks,
        version=spell_version(minor),
        env=settings,
        sm=_sm(tree),
        network=(given.get("network") or network_of(settings, _usual_network(built))) if hosts > domain else "",
        confidence=built.confidence,
        assumed=tuple(assumed),
        others=_variants(built, run, per_node, across=hosts > domain),
        gpu=built.gpu,
        domain=domain,
        as_found=_used(built.as_found, run, per_node) if built.as_found is not None else None,
        faults=built.faults,
        narrow=built.narrow,
        guessed=_doubt(built, hosts > domain, nics),
        versions=() if version else OTHER_VERSIONS,
        costly=costly,
    )


def _ranks(run: BenchRun) -> int:
    """The ranks of a run that communicates. Raises NoSetupError."""
    if not run.nranks or not 1 < run.nranks <= MOST_RANKS:
        raise NoSetupError("the number of ranks is not known" if not run.nranks else "one rank communicates nothing")
    return run.nranks


def _refuse_shared_gpus(run: BenchRun) -> None:
    """Two ranks on one GPU move nothing between GPUs. Raises NoSetupError."""
    seen: dict[tuple[str, str], int] = {}
    for device in run.devices:
        if not device.bus_id:
            continue
        first = seen.setdefault((device.host, device.bus_id), device.rank)
        if first != device.rank:
            where = f"ranks {first} and {device.rank} name one GPU, {device.bus_id} of {device.host}"
            raise NoSetupError(f"{where}: they share it, or two nodes go by one name")


def _implied(gpu: GpuSpec | None, domain: int, settings: dict[str, str]) -> list[str]:
    """Settings that the machine implies, added to those of the run, and what is said of them."""
    texts = []
    if domain > 1:
        settings.setdefault("NCCL_MNNVL_ENABLE", "1")
        texts.append(f"{domain} nodes in one NVLink domain")
    if gpu is not None and not gpu.p2p_pcie and not gpu.nvlinks:
        settings.setdefault("NCCL_P2P_DISABLE", "1")
        texts.append(f"{gpu.name}: its driver offers no peer-to-peer over PCIe")
    return texts


def _variants(machine: _Machine, run: BenchRun, per_node: int, *, across: bool) -> tuple[Variant, ...]:
    """The other machines that it may be as well, those without a NIC left out where the run goes `across` nodes."""
    return tuple(
        Variant(layout.instance, _used(tree_of_layout(layout), run, per_node))
        for layout in machine.others
        if layout.gpus >= per_node and (layout.nics or not across)
    )


def _machine(
    run: BenchRun, node: Node | None, system: str | None, nics: tuple[int, float] | None, env: Mapping[str, str]
) -> _Machine:
    if node is not None and system is None:
        try:
            settings = {**{setting.name: setting.value for setting in node.settings}, **env}
            whole = whole_network(node, settings)
            detected = tree_of(node, whole)
        except LackingError:
            pass
        else:
            gpu = next((catalog.gpu_by_name(gpu.name.value) for gpu in node.gpus if gpu.name.value), None)
            product = catalog.system_by_product(node.system.value) if node.system.value else None
            virtual = node.is_vm is True or bool(product is not None and product.virtual)
            return _machine_of(node, detected, whole, gpu, virtual)
    if system is not None:
        spec = catalog.system_by_product(system) or catalog.system_by_name(system)
        layout = layout_of(spec, nics=nics) if spec is not None else None
        if spec is None or layout is None:
            raise NoSetupError(f"no system {system!r} in the catalogue")
        note = (f"laid out as {spec.name} is built ({spec.source})",)
        tree = tree_of_layout(_data_direct(layout, env))
        return _Machine(spec.name, tree, layout.gpu, Confidence.MEDIUM, note, virtual=spec.virtual)
    return _recognised(run, nics, env)


def _data_direct(layout: Layout, env: Mapping[str, str]) -> Layout:
    """GB300's ConnectX-8 reach GPUs over PCIe 6.0; without data direct over Grace's PCIe 5.0 (NVIDIA GB300 NVL72
    datasheet; NCCL user guide, NCCL_IB_DATA_DIRECT)."""
    direct = layout.gpu.name.startswith("GB300") and env.get("NCCL_IB_DATA_DIRECT") != "0"
    return replace(layout, nic_gen=6) if direct else layout


def _machine_of(node: Node, detected: Detected, env: Mapping[str, str], gpu: GpuSpec | None, virtual: bool) -> _Machine:
    """A node as it should be: a part that falls short of its siblings is a fault to find, no reason to expect less."""
    tree = built_tree(node, detected, env, gpu)
    element = detected.tree if tree.faults else None
    assumed = (*detected.assumed, *tree.assumed)
    name, narrow = node.host or "the node", tuple(narrow_links(node))
    return _Machine(name, tree.tree, gpu, Confidence.HIGH, assumed, (), True, virtual, element, tree.faults, narrow)


def _recognised(run: BenchRun, nics: tuple[int, float] | None, env: Mapping[str, str]) -> _Machine:
    """From the GPU names and the ranks per host alone."""
    gpu = _only_gpu(run)
    least = _most_per_host(run)
    specs = [s for s in catalog.systems() if s.gpus >= least and gpu.name in (s.gpu, *s.other_gpus)]
    distinct = _fitting(run, gpu, specs, nics, env)
    if distinct:
        first, *rest = distinct
        if least == 1 < first.nics == first.gpus and nics is None:
            # Whether one GPU alone goes over the NICs of its siblings too, the output does not show.
            rest.append(replace(first, nics=1, instance=f"{first.instance} with one NIC in use"))
        note = f"taken for {first.instance} by its GPUs alone; {len(rest)} other machines fit as well"
        name, fits = f"{first.instance} (by GPU names)", any(spec.gpus == least for spec in specs)
        return _Machine(name, tree_of_layout(first), gpu, Confidence.LOW, (note,), tuple(rest), fits)
    nvlink = "nvswitch" if gpu.nvswitch else "none"
    layout = Layout(gpu, least, nvlink, gpu.nvlinks if nvlink != "none" else 0, *(nics or (0, 0.0)))
    wiring = "its NVLinks through switches" if nvlink != "none" else "no NVLink"
    note = f"{least} x {gpu.name} with {wiring}: no such machine is in the catalogue"
    others: tuple[Layout, ...] = ()
    if gpu.bridged and least > 1:
        others = (replace(layout, nvlink="pairs", nvlinks=gpu.nvlinks, instance="with NVLink bridges"),)
    return _Machine(f"{least} x {gpu.name}", tree_of_layout(layout), gpu, Confidence.LOW, (note,), others)


def _only_gpu(run: BenchRun) -> GpuSpec:
    """The product that all devices of the output are. Raises NoSetupError."""
    names = {device.name for device in run.devices if device.name}
    specs = {spec for name in names if (spec := catalog.gpu_by_name(name)) is not None}
    if len(specs) != 1 or len(names) != 1:
        what = "several GPU products" if len(names) > 1 else "a GPU that is not in the catalogue" if names else "no GPU"
        raise NoSetupError(f"the output names {what}", "give a topology, a bundle, --system or --nics")
    return specs.pop()


def _fitting(
    run: BenchRun, gpu: GpuSpec, specs: list[SystemSpec], nics: tuple[int, float] | None, env: Mapping[str, str]
) -> list[Layout]:
    """Layouts of machines of the catalogue that the run may have been on, the likeliest first, each kind once."""
    least, across = _most_per_host(run), len(run.hosts) > 1
    fitting = sorted(
        specs, key=lambda s: (across and not (s.compute_nics or nics), s.gpus != least, s.virtual, not s.compute_nics)
    )
    layouts = [_data_direct(fitted, env) for spec in fitting if (fitted := layout_of(spec, gpu, nics)) is not None]
    layouts = [layout for layout in layouts if layout.gpus == layouts[0].gpus or layout.gpus >= 8 > least]
    distinct: dict[tuple[object, ...], Layout] = {}
    for layout in layouts:
        distinct.setdefault((layout.gpus, layout.nvlink, layout.nvlinks, layout.nics * layout.gbps), layout)
    return list(distinct.values())


def _most_per_host(run: BenchRun) -> int:
    listed = max((sum(device.host == host for device in run.devices) for host in run.hosts), default=0)
    ranks = run.nranks or 0
    if listed and len(run.devices) != ranks and run.hosts and ranks % len(run.hosts) == 0 and len(run.hosts) > 1:
        return max(listed, ranks // len(run.hosts))
    return listed


def _placed(run: BenchRun, nodes: int | None, gpus: int) -> tuple[int, int, str]:
    """Nodes, ranks on each, and what had to be assumed. A device list may be cut short."""
    ranks = run.nranks or 0
    if nodes is not None:
        if nodes < 1 or ranks % nodes:
            raise NoSetupError(f"{ranks} ranks do not spread evenly over {nodes} nodes")
        return nodes, ranks // nodes, ""
    hosts = len(run.hosts)
    if hosts and len(run.devices) == ranks:
        if run.ranks_per_host is None:
            raise NoSetupError("the hosts do not have the same number of ranks")
        return hosts, ranks // hosts, ""
    if hosts > 1 and ranks % hosts == 0 and ranks // hosts <= gpus:
        return hosts, ranks // hosts, f"{ranks // hosts} ranks on each of {hosts} hosts: the device list is cut short"
    if ranks <= gpus:
        return 1, ranks, "all ranks on one node: the output does not list them"
    if gpus and ranks % gpus == 0:
        return ranks // gpus, gpus, f"{gpus} ranks per node, as many as it has GPUs: the output does not list them"
    raise NoSetupError("the placement is not known, as the output lists no devices", "give --nodes")


def _version(text: str) -> tuple[int, str]:
    """The minor version to reckon with, and what to say where it is not the run's own."""
    if not text:
        return DEFAULT, f"NCCL {spell_version(DEFAULT)}: the output does not say which"
    try:
        return nearest_minor(text), assumption(text)
    except UnknownVersionError as unknown:
        return NEWEST_RUN, f"{unknown}: it is taken to decide as {spell_version(NEWEST_RUN)} does"


def _used(tree: Element, run: BenchRun, per_node: int) -> Element:
    """The tree with the GPUs that ranks run on: by bus id, else by device number, else the first ones."""
    gpus = gpus_of(tree)
    if len(gpus) <= per_node:
        return tree
    first = run.hosts[0] if run.hosts else ""
    mine = [device for device in run.devices if device.host == first]
    buses = {device.bus_id for device in mine if device.bus_id}
    wanted = {number for number, pci in gpus.items() if bus_of(pci) in buses}
    if len(wanted) != per_node:
        wanted = {device.device for device in mine} & set(gpus)
    if len(wanted) != per_node:
        wanted = set(sorted(gpus)[:per_node])
    for number in sorted(set(gpus) - wanted):
        tree = remove(f"GPU{number}").edit(tree)
    return tree


def _sm(tree: Element) -> int:
    numbers = [gpu.number("sm") for pci in gpus_of(tree).values() for gpu in pci.having("gpu")]
    return min(filter(None, numbers), default=0)


def _domain(machine: _Machine, nodes: int, minor: int, env: Mapping[str, str]) -> int:
    """Nodes of one NVLink domain: racks of GB200 and GB300, unless a setting keeps NCCL from using it."""
    gpu = machine.gpu
    racked = gpu is not None and gpu.name.startswith(("GB200", "GB300")) and "NVL4" not in machine.name
    off = env.get("NCCL_MNNVL_ENABLE") == "0" or env.get("NCCL_CUMEM_ENABLE") == "0"
    if nodes == 1 or not racked or off or not has(minor, Feature.MNNVL):
        return 1
    return min(nodes, RACK_NODES)


def _doubt(machine: _Machine, across: bool, nics: tuple[int, float] | None) -> float:
    if machine.confidence is not Confidence.LOW:
        return 0.0
    if not across or nics is not None:
        return GUESSED_NODE
    return GUESSED_NETWORK if machine.fits else ANY_NETWORK


def _usual_network(machine: _Machine) -> str:
    return "tcpx" if "a3-highgpu" in machine.name else "cloud" if machine.virtual else "rdma"


def network_of(env: Mapping[str, str], usual: str) -> str:
    """What joins the nodes: what the settings name, else the `usual` one."""
    if env.get("FI_PROVIDER") == "cxi":
        return "slingshot"
    return "sockets" if env.get("NCCL_NET", "").lower() == "socket" else usual
