"""The causes of a low bandwidth that can be priced: changes of the machine, of NCCL's settings, of the placement.

What is said of each, and what speaks for it, stands in causes.toml. Changes are those of `topodiag topo what-if`
(nccl/topo/changes.py), applied to every node alike: a collective runs at the speed of its worst node, so one bad node
and all bad nodes look the same here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from topodiag.expect.rates import Rates, share_left
from topodiag.expect.settings import HCA, nics_left
from topodiag.expect.setup import Setup
from topodiag.expect.stages import net_speeds
from topodiag.expect.unlike import one_of
from topodiag.expect.wires import Wires
from topodiag.lazy import dataclass
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import nearest_minor, path_types
from topodiag.nccl.settings import level
from topodiag.nccl.topo.changes import (
    Change,
    apply,
    down,
    gpus_of,
    nets_of,
    nvlinks_of,
    off,
    rate,
    remove,
    width,
)
from topodiag.nccl.topo.hca_list import HcaFilter
from topodiag.words.own_data import own_data
from topodiag.words.units import in_gbps

SOCKET_GBS = (0.05, 10.0)
"""What NCCL's sockets bring between two nodes, GB/s: from 1 Gb/s Ethernet to 100 Gb/s with several threads and sockets
(NCCL user guide, NCCL_SOCKET_NTHREADS; nccl issues 229, 489)."""


HOST_MEMORY = 0.3
"""What a way through host memory may bring of NCCL's figure for it, which knows links and not memory: 33 of 93 GB/s are
reported without GPUDirect RDMA (nccl issue 1412), 4 of 12 without P2P on GeForce cards."""


NARROW_LEAST = 0.8
"""What a narrow link may bring of its share of the lanes: headers and flow control take more of few lanes."""


def _unchanged(setup: Setup) -> Setup:
    return setup


@dataclass(frozen=True, slots=True)
class Cause:
    """`change` makes the changed machine; `gbs` and `span` a known figure
    or range instead. `prior`: how common, 1 for the most common. `checks` find it on a node or in a log; `settings`
    cause it; `networks` imply it; `slow_start`: whether it also raises the latency of small sizes.
    `least`: the share of the model's figure down to which it may fall, where NCCL's model is an upper bound.
    `cleared_by_log`, `cleared_by_nodes`: checks of which a single clean verdict excludes it: on a log, or on bundles
    of all nodes."""

    words: str
    change: Callable[[Setup], Setup] = _unchanged
    prior: float = 0.5
    checks: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    gbs: float | None = None
    span: tuple[float, float] | None = None
    least: float = 1.0
    slow_start: bool | None = None
    cleared_by_log: tuple[str, ...] = ()
    cleared_by_nodes: tuple[str, ...] = ()
    both_ways: bool = False
    """Whether it costs only where a link carries both directions at once."""
    of_part: bool = False
    """Whether it is a fault of one part, which two nodes do not have by the same amount."""
    shown: str = ""
    """What shows the fault itself, where the machine or a setting does."""

    def share_left(self, setup: Setup, whole: Rates, collective: str) -> float | None:
        """What it leaves of the bandwidth of a whole machine; None where the model has no answer."""
        return share_left(whole, lambda: self.change(setup), collective)


def cause_of(name: str, change: Callable[[Setup], Setup] = _unchanged, **words: object) -> Cause:
    """The cause that causes.toml knows by this name, `words` filled into its words."""
    row = own_data("expect/causes")[name]
    lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
    return Cause(**{**row, **lists, "words": row["words"].format(**words), "change": change})


def causes_of(setup: Setup, collective: str, expected: float) -> Iterator[Cause]:
    """Those that could be of this machine and run, of which `expected` GB/s were expected."""
    if setup.as_found is not None:
        least = HOST_MEMORY if any("GPUDirect" in fault for fault in setup.faults) else 1.0
        yield replace(cause_of("as_found", _as_found, faults="; ".join(setup.faults[:3])), least=least)
    if setup.narrow and (setup.nodes > setup.domain or not any(_nvlinks(setup.tree).values())):
        worst = min(setup.narrow, key=lambda link: link.share)
        span = (NARROW_LEAST * worst.share * expected, expected)
        yield replace(cause_of("narrow_link", link=worst.words), gbs=expected, span=span)
    if setup.nodes > setup.domain:
        yield from _network(setup, expected)
    if setup.per_node > 1:
        yield from _inside(setup, collective)
    if setup.domain > 1:
        yield cause_of(
            "no_mnnvl",
            lambda s: replace(s, domain=1, network=s.network or "rdma", env={**s.env, "NCCL_MNNVL_ENABLE": "0"}),
        )


def wire_causes(wires: Wires, expected: float) -> Iterator[Cause]:
    """The same of the network alone, where only wires are known: each as a share of `expected`, GB/s."""
    if wires.nodes == 1:
        return
    for lost in _counts(wires.nics):
        share = expected * (wires.nics - lost) / wires.nics
        cause = cause_of("nics_lost_of_wires", lost=lost, count=wires.nics)
        yield replace(cause, prior=_lost_prior(wires.nics, lost), gbs=share)
    yield replace(cause_of("ports_slow_of_wires", rate=in_gbps(wires.gbps / 2)), gbs=expected / 2)
    yield replace(cause_of("gdr_off"), gbs=expected, span=(HOST_MEMORY * expected, expected))
    yield _sockets(wires.gbps)
    yield _any_figure("fabric")


def _lost_prior(nics: int, lost: int) -> float:
    """How common it is that so many NICs are not used."""
    return 1.0 if lost == 1 else 0.5 if lost in (nics - 1, nics // 2) else 0.25


def _sockets(gbps: float) -> Cause:
    """`gbps`: of the fastest NIC of a node, whose port may carry them."""
    least, most = SOCKET_GBS
    return replace(cause_of("sockets"), gbs=most, span=(least, min(most, max(gbps / 16, 1.0))))


def _any_figure(name: str) -> Cause:
    """A cause that may leave any bandwidth."""
    return replace(cause_of(name), gbs=1.0, span=(0.0, float("inf")))


def _as_found(setup: Setup) -> Setup:
    return replace(setup, tree=setup.as_found) if setup.as_found is not None else setup


def _with(*changes: Change) -> Callable[[Setup], Setup]:
    def with_changes(setup: Setup) -> Setup:
        changed = apply(setup.tree, changes, setup.env)
        return replace(setup, tree=changed.tree, env=dict(changed.env))

    return with_changes


def _network(setup: Setup, expected: float) -> Iterator[Cause]:
    names = nets_of(setup.tree)
    count = len(names)
    speeds = {name: speed for name, speed in zip(names, net_speeds(setup.tree), strict=False) if speed >= 2}
    filtered = nics_left(setup.costly.get(HCA, ""), names)
    if filtered is not None and filtered < count:
        yield _filter_cause(setup, names, filtered)
    for lost in _counts(count) if filtered is None else ():
        changes = _with(*(remove(name) for name in names[-lost:]))
        cause = cause_of("nics_lost" if count - lost > 1 else "one_nic_left", changes, lost=lost, count=count)
        yield replace(cause, prior=_lost_prior(count, lost))
    yield replace(cause_of("gdr_off", _with(off("gdr"))), least=HOST_MEMORY)
    yield _sockets(max(net_speeds(setup.tree), default=80.0))
    yield from host_bridge(setup, expected)
    if speeds:
        first, speed = next(iter(speeds.items()))
        half = int(speed / 2)
        slow = in_gbps(half)
        yield cause_of("one_port_slow", lambda s: one_of(s, _with(rate(f"{first}={half}"))(s)), rate=slow)
        yield cause_of("all_ports_slow", _halved_network, rate=slow)
        yield cause_of("one_direction", _halved_network)
        yield cause_of("nic_link_narrow", _with(width(f"{first}={max(_lanes(setup.tree, first) // 2, 1)}")))
    yield _any_figure("fabric")


def _filter_cause(setup: Setup, names: Sequence[str], left: int) -> Cause:
    """The setting itself, with the NICs that it takes away."""
    value = setup.costly[HCA]
    kept = [name for name in names if HcaFilter(value).takes(name, 1)]
    lost = [name for name in names if name not in kept] if len(kept) == left else names[left:]
    return cause_of("hca_list", _with(*(remove(name) for name in lost)), value=value, left=left, count=len(names))


def _counts(nics: int) -> list[int]:
    """How many NICs may be lost, of those worth a search each."""
    return sorted({lost for lost in (1, 2, nics // 2, nics - 1) if 0 < lost < nics})


def _halved_network(setup: Setup) -> Setup:
    speeds = zip(nets_of(setup.tree), net_speeds(setup.tree), strict=False)
    return _with(*(rate(f"{name}={int(speed / 2)}") for name, speed in speeds if speed >= 2))(setup)


def _lanes(tree: Element, net: str) -> int:
    for element in tree.walk():
        if any(port.get("name") == net for port in element.nets):
            lanes = element.number("link_width")
            return lanes if lanes in (2, 4, 8, 16) else 16
    return 16


def _inside(setup: Setup, collective: str) -> Iterator[Cause]:
    links = _nvlinks(setup.tree)
    most = max(links.values(), default=0)
    if most:
        first = min(links)
        for lost in sorted({1, most // 3, most // 2} - {0}):
            cause = cause_of("nvlinks_down", _with(down(f"nvlink:GPU{first}:{lost}")), lost=lost, most=most)
            yield replace(cause, prior=0.7 if lost == 1 else 0.5)
        if setup.per_node > 2:
            yield cause_of("no_nvlink", _with(down(f"nvlink:GPU{first}")))
        if setup.sm >= 90 and collective == "all_reduce" and setup.env.get("NCCL_NVLS_ENABLE") != "0":
            yield cause_of("nvls_off", _with(off("nvls")))
    inside = "inside a node " if most else ""
    yield replace(cause_of("p2p_off", _with(off("p2p"), off("nvls")), inside=inside), least=HOST_MEMORY)
    gpus = gpus_of(setup.tree)
    if gpus and not most:
        number, pci = next(iter(gpus.items()))
        lanes = pci.get("link_width") or ""
        if lanes in ("4", "8", "16"):
            half = int(lanes) // 2
            yield cause_of("gpu_link_narrow", _with(width(f"GPU{number}={half}")), lanes=half)
    yield _any_figure("gpus_slow")
    if setup.nodes == 1 and nets_of(setup.tree) and setup.per_node % 2 == 0:
        yield cause_of("two_nodes", lambda s: replace(s, nodes=2, network=s.network or "rdma"))


def _nvlinks(tree: Element) -> Mapping[int, int]:
    """Links of every GPU that has some."""
    links = {number: sum(link.number("count") for link in nvlinks_of(pci)) for number, pci in gpus_of(tree).items()}
    return {number: count for number, count in links.items() if count}


LEAVES = (0.3, 0.85)
"""What peer-to-peer traffic through a host bridge leaves of the rate in both directions at once: root complexes split
and reorder it, and how well depends on the processor. NCCL's own choice stops before it (NCCL user guide,
NCCL_NET_GDR_LEVEL)."""
GDR_LEVEL = "NCCL_NET_GDR_LEVEL"


def host_bridge(setup: Setup, expected: float) -> Iterator[Cause]:
    """The cause where no GPU has a NIC below its own root port and a setting lets GPUDirect RDMA go farther. `expected`
    is the bus bandwidth without it, GB/s."""
    if not _beyond(setup.tree) or not _reaches(setup):
        return
    span = (LEAVES[0] * expected, LEAVES[1] * expected)
    yield replace(cause_of("host_bridge", level=setup.env[GDR_LEVEL]), gbs=expected, span=span)


def _reaches(setup: Setup) -> bool:
    minor = nearest_minor(setup.version)
    farthest = level(setup.env.get(GDR_LEVEL), minor)
    return farthest is not None and farthest >= path_types(minor).numbers["PHB"]


def _beyond(tree: Element) -> bool:
    below = [{node.tag for node in port.walk()} for cpu in tree.having("cpu") for port in cpu.having("pci")]
    return bool(below) and not any({"gpu", "net"} <= tags for tags in below)
