"""What wires alone allow, where NCCL's model has no say: machines of which only the NICs are known, and RCCL.

The plain alpha-beta model at large sizes: a collective made of rings runs at the rate at which bytes leave a node, an
alltoall at the rate at which what is meant for other nodes does. AMD's nodes run rings over all links of their GPUs.
How much of the wire healthy machines reach is fitted as for any transport (`rdma-wires`, `xgmi`). Between nodes RCCL's
rings leave a node over NICs in place of some of its links, and healthy ones are faster than on one node: `xgmi-nodes`.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.expect.rates import NCCL_NAMES, Rates
from topodiag.expect.setup import MOST_RANKS, GivenSetup, NoSetupError, network_of
from topodiag.expect.stages import Terms
from topodiag.hardware.amd import AmdGpu, AmdSystem, amd_gpu_by_name, amd_system_by_name
from topodiag.lazy import dataclass
from topodiag.model.bench import BenchRun
from topodiag.model.finding import Confidence
from topodiag.model.nccl_enums import busbw_factor
from topodiag.words.units import in_gbps, in_gbs

GUESSED_WIRES = 0.25
"""What is normal below the expectation where neither GPUs nor GPUDirect are known: NCCL's maintainers call 20 GB/s of a
200 Gb/s NIC usual (nccl issue 320), and 24 is what it reaches at best."""
XGMI, XGMI_NODES = "xgmi", "xgmi-nodes"
WIRES = "wires"
"""The kind of transport, as `rdma-wires`."""


@dataclass(frozen=True, slots=True)
class Wires:
    """`nics` of `gbps` Gb/s each leave a node; `nodes` and `ranks` None where the run does not say (several nodes are
    then taken for granted). `gpu`: AMD's, whose links join the ranks of a node."""

    machine: str
    nics: int
    gbps: float
    nodes: int | None
    ranks: int | None
    network: str
    gpu: AmdGpu | None = None
    confidence: Confidence = Confidence.LOW
    assumed: tuple[str, ...] = ()
    guessed: float = GUESSED_WIRES

    @property
    def node_gbs(self) -> float:
        return self.nics * self.gbps / 8

    @property
    def per_node(self) -> int | None:
        return self.ranks // self.nodes if self.ranks is not None and self.nodes else None


def wires_of(run: BenchRun, lacking: NoSetupError, given: GivenSetup) -> Wires:
    """The wires of a run that `lacking` refused. Raises NoSetupError where they are not known either, `lacking` itself
    where nothing was said of them."""
    spec, gpu = _amd(run, given.get("system"))
    chosen = given.get("nics") or (spec.nics if spec is not None else None)
    unlikely = run.nranks is not None and not 1 < run.nranks <= MOST_RANKS
    if unlikely or (chosen is None and gpu is None):
        raise lacking
    hosts, assumed = _nodes(run, given.get("nodes"), spec)
    if hosts == 1 and gpu is None:
        raise lacking
    product = spec or gpu
    if hosts != 1 and chosen is None:
        raise _no_nic(product)
    if run.nranks is not None and hosts is not None and run.nranks % hosts:
        raise NoSetupError(f"{run.nranks} ranks do not spread evenly over {hosts} nodes")
    count, gbps = chosen or (0, 0.0)
    return Wires(
        machine=_name(product, count, gbps),
        nics=count,
        gbps=gbps,
        nodes=hosts,
        ranks=run.nranks,
        network=given.get("network") or _network({**run.env, **(given.get("env") or {})}),
        gpu=gpu,
        confidence=Confidence.MEDIUM if spec is not None or _is_whole_board(run, hosts, gpu) else Confidence.LOW,
        assumed=(*assumed, *_wired(spec, gpu)),
    )


def _is_whole_board(run: BenchRun, hosts: int | None, gpu: AmdGpu | None) -> bool:
    """Whether a run is of all GPUs of one board, which its product's links join: nothing else is guessed."""
    return gpu is not None and hosts == 1 and run.nranks == gpu.links + 1


def _wired(spec: AmdSystem | None, gpu: AmdGpu | None) -> list[str]:
    """What is assumed of the inside of a node."""
    if gpu is None:
        return ["GPUs and links inside a node are not known: only NICs are counted"]
    return [f"wired as {spec.name} is built ({spec.source})"] if spec is not None else []


def _no_nic(product: AmdSystem | AmdGpu | None) -> NoSetupError:
    name = product.name if product is not None else "the machine"
    return NoSetupError(f"RCCL between nodes, and no NIC of {name} is known", "give --nics 8x400")


def _name(product: AmdSystem | AmdGpu | None, count: int, gbps: float) -> str:
    if product is None:
        return f"nodes with {count} x {in_gbps(gbps)}"
    return product.name if isinstance(product, AmdSystem) else f"{product.name} nodes"


def _amd(run: BenchRun, system: str | None) -> tuple[AmdSystem | None, AmdGpu | None]:
    spec = amd_system_by_name(system) if system is not None else None
    if spec is not None:
        return spec, spec.gpu
    names = {device.name for device in run.devices if device.name} if system is None else set()
    gpu = amd_gpu_by_name(names.pop()) if len(names) == 1 else None
    return None, gpu if gpu is not None and gpu.mesh else None  # of other boards nobody says which pairs are joined


def _nodes(run: BenchRun, nodes: int | None, spec: AmdSystem | None) -> tuple[int | None, list[str]]:
    if nodes is not None:
        return nodes, []
    hosts = len(run.hosts)
    if hosts > 1 or (hosts == 1 and len(run.devices) == run.nranks):
        return hosts, []
    if spec is not None and run.nranks is not None and (run.nranks <= spec.gpus or run.nranks % spec.gpus == 0):
        node_count = max(run.nranks // spec.gpus, 1)
        return node_count, [f"{spec.gpus} ranks per node, as many as it has GPUs: the output does not list them"]
    return None, ["ranks on several nodes: the output does not list them (--nodes)"]


def _network(env: Mapping[str, str]) -> str:
    return "cloud" if env.get("FI_PROVIDER") == "efa" else network_of(env, "rdma")


def wire_rates(wires: Wires, collective: str, sizes: tuple[int, ...]) -> Rates:
    """Raises NoSetupError for a collective that these wires do not bound."""
    parts: list[tuple[float, float, str, tuple[str, str, str]]] = []
    if wires.gpu is not None and wires.per_node != 1:
        parts.append(_inside(wires, wires.gpu, collective))
    if wires.nodes != 1:
        parts.append(_across(wires, collective))
    peak, _, transport, _ = min(parts, key=lambda part: part[0])
    limit = min(part[1] for part in parts)
    terms: Terms = (*(part[3] for part in parts), ("physical limit", in_gbs(limit), "line rate of these links"))
    return Rates(peak, limit, transport, "wires", {size: peak for size in sizes if size >= _BULK}, {}, None, terms)


_BULK = 1 << 30
"""From here on latency is taken for nothing: there is no model of it."""


def _inside(wires: Wires, gpu: AmdGpu, collective: str) -> tuple[float, float, str, tuple[str, str, str]]:
    if collective not in NCCL_NAMES:
        raise NoSetupError(f"no model of {collective or 'an unknown collective'} on {gpu.name}")
    # Rings of fewer GPUs have fewer links: one to each other GPU of the node.
    links = min(gpu.links, (wires.per_node or gpu.links + 1) - 1)
    term = ("links inside a node", in_gbs(links * gpu.rccl_gbs), f"{links} xGMI links x {in_gbs(gpu.rccl_gbs)}, "
            f"as RCCL models them ({gpu.source})")  # fmt: skip
    return links * gpu.rccl_gbs, links * gpu.line_gbs, XGMI if wires.nodes == 1 else XGMI_NODES, term


def _across(wires: Wires, collective: str) -> tuple[float, float, str, tuple[str, str, str]]:
    transport = f"{wires.network}-{WIRES}"
    nics = f"{wires.nics} NICs x {in_gbps(wires.gbps)}"
    if collective in NCCL_NAMES:
        # In a ring every byte leaves a node once per step: bus bandwidth is the rate of its NICs.
        how = f"{nics}: a ring's bus bandwidth is the rate at which it leaves a node"
        return wires.node_gbs, wires.node_gbs * _beyond(wires, collective), transport, _term(wires.node_gbs, how)
    if collective == "alltoall" and wires.ranks is not None and wires.nodes is not None:
        per, n = wires.ranks // wires.nodes, wires.ranks
        peak = wires.node_gbs * (n - 1) / (per * (n - per))
        how = f"{nics} x {n - 1} / ({per} x {n - per}): what leaves a node per GPU"
        return peak, peak, f"{wires.network}-p2p", _term(peak, how)
    raise NoSetupError(
        f"NICs alone do not bound {collective or 'an unknown collective'}", "name the machine (--system)"
    )


def _term(gbs: float, how: str) -> tuple[str, str, str]:
    return "NICs of a node", in_gbs(gbs), how


def _beyond(wires: Wires, collective: str) -> float:
    """Bus bandwidth that the NICs allow over that of a ring: trees, reduction in switches, and two nodes, which send
    each byte once. The most that ranks and nodes which are not known could be."""
    n, nodes = wires.ranks, wires.nodes
    if collective == "all_reduce":
        return busbw_factor("AllReduce", n) if n is not None else 2.0
    if collective in ("broadcast", "reduce"):
        return 1.0
    share = busbw_factor("AllGather", n) if n is not None else 1.0
    return share * (nodes / (nodes - 1) if nodes is not None else 2.0)
