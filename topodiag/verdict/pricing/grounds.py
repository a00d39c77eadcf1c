"""From a case to what its causes are priced on: each measured run, and each job, with the machines of its hosts.

A host is taken as its capture shows it, else as NCCL printed it, else like the best known host beside it. Hosts that
are alike become one and the same machine, so that each is searched once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from operator import attrgetter

from topodiag.checks.shared.topo_file import alone
from topodiag.expect.as_built import built_tree
from topodiag.expect.calibration import calibration, generation_of
from topodiag.expect.rates import NCCL_NAMES, Rates, rates_of
from topodiag.expect.settings import is_costly, whole_network
from topodiag.expect.setup import NoSetupError, Setup, setup_of
from topodiag.expect.unlike import MixedHosts
from topodiag.hardware import catalog
from topodiag.lazy import dataclass, regex
from topodiag.model.bench import BenchDevice, BenchRun
from topodiag.model.devices import Gpu
from topodiag.model.job import Hca, Job
from topodiag.model.job_wires import nics_of, seen_kind
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.nccl_versions import DEFAULT, minor_or_default
from topodiag.model.node import Node
from topodiag.model.provenance import known
from topodiag.model.result import Case
from topodiag.nccl.connect.communicator import Member
from topodiag.nccl.graph.bandwidths import nvlink_bandwidth
from topodiag.nccl.topo.changes import bus_of, edited, gpus_of, with_values
from topodiag.nccl.topo.detect import LackingError, tree_of
from topodiag.nccl.topo.merge import loaded
from topodiag.nccl.topo.printed import tree_of_print
from topodiag.nccl.topo.repair import repair
from topodiag.nccl.tuning.choice import LARGE_BYTES
from topodiag.verdict.pricing.edits import canonical, rates
from topodiag.verdict.pricing.mend import Ground, HostGround, Machine
from topodiag.words.hosts import short_name
from topodiag.words.units import grouped

_TESTED: Mapping[str, str] = {name: tested for tested, name in NCCL_NAMES.items()}
_VERSION = regex(r"[0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?")
NEAR = 0.01
"""Share by which NVLink's sum in a print may differ from a product's: prints have one digit."""


class NoGroundError(ValueError):
    """Why there is nothing to price on, in a sentence."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What the causes of a case are about, so that a machine as built has it otherwise: `settings` by name; hosts, by
    what the case calls them, whose topology `files` are wrong, and that lack `nics`."""

    settings: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    nics: frozenset[str] = frozenset()


@dataclass
class _Open:
    """A host under construction."""

    name: str
    node: Node | None
    given: dict[str, str]
    env: dict[str, str]
    built: Element | None = None
    views: list[Element] = field(default_factory=list)


def ground_of(run: BenchRun, job: Job | None, case: Case, claims: Claims) -> Ground:
    """A measured run, with the job whose log tells of the same hosts where there is one. Raises NoGroundError."""
    if not run.devices or len(run.devices) != run.nranks:
        if job is None or run.nranks not in (None, job.world_size):
            raise NoGroundError("the output does not say which rank ran where")
        run = replace(run, devices=devices_of(job, case), nranks=job.world_size)
    return _ground(run, job, case, claims)


def ground_of_job(job: Job, case: Case, claims: Claims) -> Ground:
    """A job that nobody measured: its largest communicator. Raises NoGroundError."""
    devices = devices_of(job, case)
    if len(devices) != job.world_size:
        raise NoGroundError(f"{len(devices)} of {job.world_size} ranks of {job.name} have a known GPU")
    version = next((match[0] for version in job.nccl_versions if (match := _VERSION.match(version))), "")
    run = BenchRun(_collective(job), (), devices, job.world_size, nccl=version, source=job.name)
    return _ground(run, job, case, claims)


def devices_of(job: Job, case: Case) -> tuple[BenchDevice, ...]:
    """The ranks of a job as the device list of a benchmark has them."""
    names = {node.host: name for node in case.nodes if (name := _product(node))}
    only = next(iter(set(names.values()))) if len(set(names.values())) == 1 else ""
    return tuple(
        BenchDevice(rank.rank, rank.host, max(rank.nvml_dev, rank.cuda_dev, 0), only, rank.bus_id)
        for rank in job.ranks
        if rank.bus_id
    )


def _product(node: Node) -> str:
    return next((str(gpu.name.value) for gpu in node.gpus if gpu.name.value), "")


def _collective(job: Job) -> str:
    """The collective that moves most bytes over the job's largest communicator; all_reduce where no log says."""
    moved: dict[str, int] = {}
    for operations in job.world.operations.values() if job.world is not None else ():
        for name, count in operations.bytes_by_collective.items():
            moved[name] = moved.get(name, 0) + count
    best = max(moved, key=lambda name: moved[name], default="AllReduce")
    return _TESTED.get(best, "all_reduce")


def _ground(run: BenchRun, job: Job | None, case: Case, claims: Claims) -> Ground:
    sources = _Sources(case, job)
    hosts = [_opened(host, run, sources, claims) for host in run.hosts]
    sm = _sm(hosts, run, sources)
    for host in hosts:
        _look(host, sources, sm, minor_or_default(run.nccl), claims)
    _like_captures(hosts, case, claims)
    _like_siblings(hosts, claims)
    first = next(iter(hosts), None)
    if first is None or first.built is None:
        raise NoGroundError("no capture, topology file or system print of its nodes is in the evidence")
    setup = _setup(run, first, job, claims)
    grounds = tuple(_closed(host, case, job, setup) for host in hosts)
    members = tuple(_members(run, hosts))
    size = max((row.size for row in run.rows), default=LARGE_BYTES) or LARGE_BYTES
    whole = with_machines(setup, [host.built for host in grounds], members)
    try:
        rates = rates_of(whole, run.collective, (size,))
    except NoSetupError as error:
        raise NoGroundError(str(error)) from None
    factor = calibration().of(generation_of(setup.sm), rates.transport, run.collective)
    reached = rates.busbw.get(size, rates.peak) * factor.factor
    return Ground(run, setup, grounds, members, size, rates, reached, job)


def with_machines(setup: Setup, machines: Sequence[Machine], members: Sequence[Member]) -> Setup:
    """The set-up with these machines, by host. Equal ones are taken as NCCL takes equal nodes."""
    network = next((machine.network for machine in machines if machine.network), setup.network)
    kinds = dict.fromkeys((machine.tree, machine.env) for machine in machines)
    ((tree, env), *others) = kinds
    setup = replace(setup, network=network if setup.network else "")
    if not others and len(gpus_of(tree)) == setup.per_node:
        return replace(setup, tree=tree, env={**setup.env, **dict(env)}, unlike=None)
    hosts = tuple((machine.tree, tuple(sorted({**setup.env, **dict(machine.env)}.items()))) for machine in machines)
    return replace(setup, unlike=MixedHosts(hosts, tuple(members)))


def figures(setup: Setup, collective: str, *sizes: int) -> Rates | None:
    """What NCCL's search and tuning say of a set-up; None where it would not run, or the model has no figure."""
    try:
        return rates_of(setup, collective, sizes)
    except NoSetupError:
        return None


def figures_of_group(
    setup: Setup, machines: Sequence[Machine], members: Sequence[Member], collective: str
) -> Rates | None:
    """`figures` of some ranks alone, on the machines that they are on: `Member.host` is a place in these."""
    network = (setup.network or "rdma") if len(machines) > 1 else ""
    own = replace(setup, nodes=len(machines), ranks=len(members), network=network)
    return figures(with_machines(own, machines, members), collective)


def _opened(host: str, run: BenchRun, sources: _Sources, claims: Claims) -> _Open:
    given = dict(run.env) or sources.env(host)
    env = {name: value for name, value in given.items() if name not in claims.settings and not is_costly(name, value)}
    return _Open(host, sources.node(host), given, env)


class _Sources:
    """A case by host: captures that hold GPUs, and the processes and system prints of one job."""

    def __init__(self, case: Case, job: Job | None) -> None:
        self.case = case
        processes = job.processes if job is not None else ()
        communicators = job.communicators if job is not None else ()
        self.processes = grouped((process.host, process) for process in processes)
        # What several have of a host is that of the largest communicator, else of its first process.
        self.prints = {process.host: process.system for process in processes[::-1] if process.system is not None}
        for comm in sorted(communicators, key=attrgetter("nranks"), reverse=True)[::-1]:
            self.prints |= comm.systems
        self._by_name: dict[str, Node] = {}
        self._by_short: dict[str, Node] = {}
        for node in case.nodes:
            if node.gpus:
                self._by_name.setdefault(case.identity.name(node.host), node)
                self._by_short.setdefault(short_name(node.host), node)

    def node(self, host: str) -> Node | None:
        """The capture of a host."""
        return self._by_name.get(self.case.identity.name(host)) or self._by_short.get(short_name(host))

    def env(self, host: str) -> dict[str, str]:
        """The variables that NCCL's processes on a host say, the first value of each."""
        settings: dict[str, str] = {}
        for process in self.processes.get(host, ()):
            for given in process.settings.values():
                settings.setdefault(given.name, given.value)
        return settings


def _sm(hosts: Iterable[_Open], run: BenchRun, sources: _Sources) -> int | None:
    """The compute capability of the GPUs: from a capture, from the run's device names, else from what NVLink's sum in
    NCCL's print says of the product. None where nothing tells it."""
    for host in hosts:
        for gpu in host.node.gpus if host.node is not None else ():
            spec = catalog.gpu_by_name(gpu.name.get(""))
            if gpu.sm.value or spec is not None:
                return gpu.sm.value or (spec.sm if spec is not None else None)
    names = {device.name for device in run.devices if device.name}
    named = {spec.sm for name in names if (spec := catalog.gpu_by_name(name)) is not None}
    return named.pop() if len(named) == 1 else _sm_by_sums(run, sources)


def _sm_by_sums(run: BenchRun, sources: _Sources) -> int | None:
    switched = (link for system in sources.prints.values() for link in system.links if link.b.startswith("NVS"))
    largest = max((link.gbs for link in switched if link.kind == "NVL"), default=0.0)
    minor = minor_or_default(run.nccl)
    sums = {spec: spec.nvlinks * nvlink_bandwidth(spec.sm, minor) for spec in catalog.gpus() if spec.nvswitch}
    numbers = {spec.sm for spec, gbs in sums.items() if gbs > 0 and abs(largest - gbs) <= NEAR * gbs}
    return numbers.pop() if len(numbers) == 1 else None


def _look(host: _Open, sources: _Sources, sm: int | None, minor: int, claims: Claims) -> None:
    """Fills in what the sources show of a host."""
    processes = sources.processes.get(host.name, ())
    if host.node is not None:
        _look_at_capture(host, host.node, sources.case.identity.name(host.name) in claims.files)
    printed = sources.prints.get(host.name)
    tree = tree_of_print(printed, sm, minor) if printed is not None and sm is not None else None
    if tree is not None:
        _take(host, _with_names(tree, max((nics_of(process) for process in processes), key=len, default={})))


def _look_at_capture(host: _Open, node: Node, file_is_wrong: bool) -> None:
    file = node.nccl_file
    gpu = catalog.gpu_by_name(_product(node))
    if file is not None and alone(node):
        _take(host, file.tree)
        return
    bare = replace(node, nccl_file=None)
    settings = {setting.name: setting.value for setting in node.settings}
    try:
        detected = tree_of(bare, whole_network(node, {**settings, **host.env}))
        element = tree_of(bare, {**settings, **host.given}).tree
    except LackingError:
        if file is not None and not file_is_wrong:
            _take(host, file.tree)
        return
    built = built_tree(bare, detected, {**settings, **host.env}, gpu).tree
    if file is not None and not file_is_wrong:
        built = loaded(file.tree, built)
    host.built = canonical(built)
    host.views.append(canonical(loaded(file.tree, element) if file is not None else element))


def _take(host: _Open, tree: Element) -> None:
    """The host is what this tree says, a file's or a print's, where nothing else says how it is built."""
    tree = canonical(tree)
    host.views.append(tree)
    if host.built is None:
        host.built = _repaired(tree)


@lru_cache(maxsize=64)
def _repaired(tree: Element) -> Element:
    """A canonical tree with every part as its peers are. Kept, for most hosts of a job are alike."""
    return canonical(repair(tree).tree)


def _with_names(tree: Element, nics: Mapping[int, Hca]) -> Element:
    """A printed tree with the names that NCCL's lines give its NICs."""
    names = {str(number): nic.name for number, nic in nics.items()}

    def edit(element: Element) -> Element:
        name = names.get(element.get("dev") or "") if element.tag == "net" else None
        return with_values(element, {"name": name}) if name else element

    return edited(tree, edit)


def _like_captures(hosts: Sequence[_Open], case: Case, claims: Claims) -> None:
    """Hosts that no capture is tied to, where captures lie beside them of machines with the very same GPUs on the very
    same buses: they are taken as the best of those is built (a container shows its own name, and sees less)."""
    if any(host.node is not None for host in hosts):
        return
    captures = [_Open(node.host, node, {}, {}) for node in case.nodes if node.gpus]
    sources = _Sources(case, None)
    for capture in captures:
        _look(capture, sources, None, DEFAULT, claims)
    captures = [capture for capture in captures if capture.built is not None]
    best = max(captures, key=_network_mbps, default=None)
    if best is None or best.built is None:
        return
    for host in hosts:
        alike = host.built is None or _buses(host.built) == _buses(best.built)
        if alike and (host.built is None or _network_mbps(host) < _network_mbps(best)):
            host.built = best.built


def _buses(tree: Element) -> frozenset[str]:
    return frozenset(bus_of(pci) for pci in gpus_of(tree).values())


def _like_siblings(hosts: Sequence[_Open], claims: Claims) -> None:
    """Hosts of which nothing is known, and those that are said to lack NICs, are taken as the best known one is
    built."""
    known_hosts = [host for host in hosts if host.built is not None]
    if not known_hosts:
        return
    best = max(known_hosts, key=_network_mbps)
    for host in hosts:
        poor = host.built is not None and _network_mbps(host) < _network_mbps(best)
        lacking = host.name in claims.nics or short_name(host.name) in map(short_name, claims.nics)
        if host.built is None or (poor and lacking):
            host.built = best.built


def _network_mbps(host: _Open) -> int:
    return sum(rates(host.built).values()) if host.built is not None else 0


def _setup(run: BenchRun, first: _Open, job: Job | None, claims: Claims) -> Setup:
    """The set-up of the run on machines as built. Raises NoGroundError."""
    assert first.built is not None  # noqa: S101 - the caller asked
    name = next((device.name for device in run.devices if device.name), "")
    node = first.node
    if node is None:
        label = known(name) if name else Gpu(0).name
        gpus = tuple(Gpu(number, bus_of(pci), name=label) for number, pci in sorted(gpus_of(first.built).items()))
        node = Node(first.name, gpus=gpus)
    node = replace(node, nccl_file=NcclFile(first.name, first.built))
    kind = seen_kind((job,)) if job is not None else ""
    run = replace(run, env={name: value for name, value in run.env.items() if name not in claims.settings})
    try:
        return setup_of(run, node, network=kind if kind not in ("", "sockets", "rdma") else None)
    except NoSetupError as error:
        raise NoGroundError(str(error)) from None


def _closed(host: _Open, case: Case, job: Job | None, setup: Setup) -> HostGround:
    assert host.built is not None  # noqa: S101 - filled in by then
    env = {**host.env, **{name: value for name, value in setup.env.items() if name not in host.given}}
    machine = Machine(host.built, tuple(sorted(env.items())))
    return HostGround(host.name, machine, tuple(host.views), host.given, job)


def _members(run: BenchRun, hosts: Sequence[_Open]) -> Iterator[Member]:
    """Who runs where, on GPUs of the trees: by bus id, else by number."""
    places = {host.name: place for place, host in enumerate(hosts)}
    gpus = [{number: bus_of(pci) for number, pci in gpus_of(host.built).items()} for host in hosts if host.built]
    for device in run.devices:
        place = places[device.host]
        bus = device.bus_id.lower()
        if bus not in gpus[place].values():
            bus = gpus[place].get(device.device, bus)
        yield Member(device.rank, place, bus)
