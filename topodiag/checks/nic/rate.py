"""Rate of the ports of compute NICs. Their state: nic.py."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.checks.nic.state import NO_COMPUTE, ONE_OF_MORE, Family, Port, able_gbps, lists_no_nics, ports_of, product
from topodiag.checks.peers import of_everyone
from topodiag.checks.shared.comparisons import majority, tallied
from topodiag.checks.shared.devices import compute_nics
from topodiag.checks.shared.prices import GBPS_PER_GBS, slow_ports
from topodiag.lazy import regex
from topodiag.model.devices import FabricPort
from topodiag.model.finding import Cost, Coverage, Finding, Outcome
from topodiag.model.node import Node
from topodiag.words.units import few, fold_runs, grouped, in_gbps, in_gbs, plural, spell_gbs

FULL_LANES = 4
"""Lanes of every InfiniBand port of the last ten years; two of them are sold as HDR100 and NDR200."""


class NicPortSlow(NodeCheck, id="NIC002"):
    """NIC002: a port rate below its capability or its peer ports

    What it finds
        Active ports of compute NICs that negotiated a lower rate, or fewer lanes, than the same ports of the node's
        other NICs of that product, or than the same NICs of the other nodes in evidence.

    Why it matters
        A 400 Gb/s port that came up at 200 carries 25 GB/s instead of 50. Collectives that use all NICs give each the
        same share, so the whole node, and with it every node of the job, runs at the pace of the slow port.

    Evidence it reads
        `rate` of each port in /sys/class/infiniband, `ibstat`, `ibv_devinfo`, the interface's speed; the datasheet of
        the product; `iblinkinfo`, where it says what a link could be. A job's log: `NET/IB : mlx5_0:1 speed change
        detected: 400000 -> 200000 Mbps` (NCCL 2.30.7 and later), where the last rate is below the first.

    When it stays silent
        Ports that are down: their rate is a meaningless default. All ports of the product are alike, even below the
        product's ability: the fabric is built this way (ConnectX-7 on a 200 Gb/s fabric). A single port at half of
        its product's ability: many products are sold at several rates. Elastic Fabric Adapters have no rated speed
        here; they are compared only with each other. No rate was read: unknown. Output that shows one port only,
        from a tool that can be asked for one port: unknown.

    How to confirm
        ibstat | grep -E "^CA|Rate"
        sudo mlxlink -d DEVICE -m                 speeds that port, cable and far end can do
        iblinkinfo | grep 'Could be'

    How to fix
        Reseat or swap the cable or transceiver: a damaged lane makes the port train at half of its rate, and a cable
        of an older generation limits it. Look whether the switch port is split or limited, and whether the port is
        forced to a lower speed (`mlxlink -d DEVICE`, supported and enabled speeds).

    References
        InfiniBand Architecture Specification (link width and speed negotiation); rdma-core iblinkinfo; NVIDIA
        ConnectX datasheets.
    """

    def observe(self, node: Node, peers: Sequence[Node]) -> Outcome:
        nics = compute_nics(node)
        links = [port for port in node.fabric_ports if port.runs.known]
        slower = [*slow_links(self, node, links), *odd_links(self, node, links)]
        if slower:
            return self.with_findings(node, slower, Coverage(len(links), len(links), "links of the fabric"))
        if not nics:
            return self.clean(node) if links else self.not_applicable(node, NO_COMPUTE)
        ports = ports_of(node)
        seen = [port for port in ports if port.rate]
        coverage = Coverage(len({port.nic.name for port in seen}), len(nics), "compute NICs")
        if not seen:
            return self._without_rates(node, ports)
        elsewhere = of_everyone(node, peers, _rates_by_family)
        slow = grouped(
            ((port.family[:2], port.rate, port.port.lanes.value, *wanted), port)
            for port in seen
            if (wanted := _wanted(port, seen, elsewhere)) is not None
        )
        findings = [self._report(node, *key[-3:], bad) for key, bad in slow.items()]
        unseen = ONE_OF_MORE.format(fold_runs([nic.name for nic in nics])) if lists_no_nics(node, nics) else ""
        return self.any_of(node, findings, coverage, _built_so(node, seen), unseen)

    def _without_rates(self, node: Node, ports: Sequence[Port]) -> Outcome:
        if ports and all(port.state and not port.is_up for port in ports):
            return self.not_applicable(node, "no port is active: NIC001 says which")
        why = next((port.port.rate_gbps.why for port in ports if port.port.rate_gbps.why), "")
        return self.unknown(node, why or "no source says the rates of the ports")

    def _report(self, node: Node, rate: float, why: str, certain: bool, bad: Sequence[Port]) -> Finding:
        """Ports that run alike and should have another rate; why, and whether that is sure."""
        now = bad[0].rate or 0.0
        names = list(dict.fromkeys(port.nic.name for port in bad))
        lost = slow_ports(now, rate, len(bad))
        where, lanes = fold_runs([port.label for port in bad]), bad[0].port.lanes.value
        width = f" on {plural(lanes, 'lane')}" if lanes and lanes != FULL_LANES else ""
        return self.finding(
            self.where(node, nics=names),
            "slow port",
            f"{where} {'runs' if len(bad) == 1 else 'run'} at {in_gbps(now)}{width} instead of {in_gbps(rate)}",
            sure=certain,
            observed=f"{in_gbps(now)}{width} ({in_gbs(now / GBPS_PER_GBS)})",
            expected=f"{in_gbps(rate)} ({in_gbs(rate / GBPS_PER_GBS)}), {why}" + _ability(node, bad[0], rate),
            cost=Cost(
                round(lost, 3),
                round(1 - now / rate, 4) if rate else None,
                f"{spell_gbs(now / GBPS_PER_GBS)} of {in_gbs(rate / GBPS_PER_GBS)} per port left, and rings over all"
                " NICs run at the pace of the slowest",
            ),
            evidence=[fact for port in bad for fact in (port.port.rate_gbps, port.port.lanes)],
        )


Rates = Mapping[Family, Tally[float]]
"""How many ports of each family run at which rate."""


def _rates_by_family(nodes: Sequence[Node]) -> Rates:
    """How many ports of each family run at which rate, over all nodes."""
    return tallied((port.family, port.rate) for node in nodes for port in ports_of(node) if port.rate)


def _wanted(port: Port, seen: Sequence[Port], everywhere: Rates) -> tuple[float, str, bool] | None:
    """The rate that a port should have, why, and whether that is sure; None when it has no better peer."""
    now = port.rate or 0.0
    family = [other for other in seen if other.family == port.family]
    rates = [other.rate or 0.0 for other in family]
    usual, faster = majority(rates), sum(rate > now for rate in rates)
    want = max(rates) if usual is None else usual
    if now < want:
        return want, f"as {plural(faster, 'peer')} of the same product", usual is not None or rates.count(now) == 1
    return None if faster else _wanted_elsewhere(port, family, everywhere)


def _wanted_elsewhere(port: Port, family: Sequence[Port], everywhere: Rates) -> tuple[float, str, bool] | None:
    """The rate of most ports of the product on other nodes, where it is higher. `family` are its own node's."""
    rates = everywhere[port.family] - Tally(other.rate for other in family if other.rate)
    common = majority(rates)
    if common is None or (port.rate or 0.0) >= common:
        return None
    return common, f"as {plural(rates[common], 'port')} of the same product on other nodes", False


def _ability(node: Node, port: Port, rate: float) -> str:
    able = able_gbps(node, port.nic)
    return f"; {product(port.nic)} can do {in_gbps(able)}" if able and able >= rate else ""


def _built_so(node: Node, seen: Sequence[Port]) -> str:
    for port in seen:
        able = able_gbps(node, port.nic)
        alike = {other.rate for other in seen if other.family == port.family} == {port.rate}
        if able and alike and (port.rate or able) < able:
            return f"all {product(port.nic)} ports run at {port.rate:g} of {in_gbps(able)}: the fabric is built so"
    return ""


# Links of an InfiniBand fabric that run below what both their ends can do (NIC002).


LINKS_NAMED = 8
MIN_SIBLINGS = 3
"""Links to adapters of one name from which on one that differs is odd."""
MOST_ODD = 3
"""One in so many may differ: more are hosts of another generation."""
_ADAPTER = regex(r" ((?:HCA-\d{1,3}|[a-z][a-z0-9]{1,20}_\w{1,20})) port \d{1,4}\Z")
_RUNS = regex(r"(\d{1,2})x([A-Z]{2,4}\d{0,3})")
_LANE = {"SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.3125, "FDR": 14.0625, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0,
         "XDR": 200.0}  # fmt: skip
"""Gb/s of a lane (InfiniBand Trade Association)."""


def slow_links(check: NodeCheck, node: Node, links: Sequence[FabricPort]) -> list[Finding]:
    """One finding for links that run alike below the same ability. The tool shows each from both of its ends."""
    once: dict[frozenset[str], FabricPort] = {}
    for port in links:
        if port.able.value:
            once.setdefault(frozenset((port.label, port.peer.get(""))), port)
    alike = grouped(((port.runs.get(""), port.able.get("")), port) for port in once.values())
    return [
        _finding(check, node, check.advice("fabric link", able=able), bad, f"both ends can do {able}")
        for (_, able), bad in alike.items()
    ]


def odd_links(check: NodeCheck, node: Node, links: Sequence[FabricPort]) -> Iterator[Finding]:
    """Links to adapters of one name below one switch, of which a few run slower than all others."""
    read = ((port, _ADAPTER.search(port.peer.get("")), _RUNS.fullmatch(port.runs.get(""))) for port in links)
    alike = grouped(
        ((port.node, named[1]), (int(rate[1]) * _LANE[rate[2]], port))
        for port, named, rate in read
        if named is not None and rate is not None and rate[2] in _LANE
    )
    for (_, adapter), ports in alike.items():
        best = max(gbps for gbps, _ in ports)
        bad = [port for gbps, port in ports if gbps < best]
        if len(ports) < MIN_SIBLINGS or not bad or len(bad) * MOST_ODD > len(ports):
            continue
        usual = next(port.runs.get("") for gbps, port in ports if gbps == best)
        than = f"{plural(len(ports) - len(bad), 'other link')} to {adapter} at {usual}"
        yield _finding(check, node, check.advice("slower than other links", usual=usual), bad, than)


def _finding(check: NodeCheck, node: Node, advice: Advice, bad: Sequence[FabricPort], than: str) -> Finding:
    ends = few([f"{port.label} to {port.peer.value}" for port in bad], LINKS_NAMED, "; ")
    runs = few(list(dict.fromkeys(port.runs.get("") for port in bad)))
    return check.finding(
        check.where(node),
        advice,
        f"{ends}: {'runs' if len(bad) == 1 else 'run'} at {runs}, {than}",
        observed=f"{runs} on {plural(len(bad), 'link')}",
        evidence=[fact for port in bad[:LINKS_NAMED] for fact in (port.able, port.runs)],
    )
