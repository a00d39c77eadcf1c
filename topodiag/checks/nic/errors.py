"""Error counters of compute NICs: growth between two samples is judged; totals since boot are a hint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.checks.nic.events import of_log, troubles
from topodiag.checks.nic.state import NO_COMPUTE, Port, ports_of
from topodiag.checks.shared.devices import compute_nics
from topodiag.checks.shared.node.nic_counters import LIMITS, Limit, limit_name
from topodiag.lazy import dataclass
from topodiag.model.devices import Counters, FabricPort, Nic
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Counter, Topic
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_runs, grouped, in_s, plural, spell_s

FLAPS_PER_DAY = 5.0
"""Link flaps in 24 hours from which Azure's node health check fails a node (check_ib_link_flapping)."""

ODD_FLAPS = 10
"""Flaps since boot above which one port among quiet peers is bad (error_thresholds of rdma-core: LinkDowned 10)."""
ODD_PER_DAY = 1.0
"""... and at least so many a day: one bad afternoon a year ago is no fault of today."""
QUIET_SIBLINGS = 3
"""Peers that must have been quiet. They saw the same boots and the same work on the switches."""
QUIET_SHARE = 0.1
"""How much of the odd port's flaps a peer may have and still be quiet."""

ODD_TOTAL = 1000
"""Errors since boot from which a total is worth a word: of one port that stands out, or of all as an open question."""
ODD_SHARE = 0.01
"""How much of an odd port's total a peer may have, and still not share what made it."""
CORRECTED = frozenset({"symbol_error"})
"""Counters that alone prove nothing: links from HDR on count what forward error correction mends."""

DAY_S = 86400.0

Judged = tuple[Port | None, Counter, Limit]
"""A counter with its port, where it has one, and what its growth means."""
ByNic = Mapping[str, Sequence[Judged]]


@dataclass(frozen=True, slots=True)
class Count:
    """One counter of one NIC that says something: what grows, what is much since boot (`total`) or in the fabric's
    report, what counts no more (`stuck`). Counters of one kind make one finding."""

    nic: Nic
    counter: Counter
    amount: int
    severity: Severity
    confidence: Confidence
    meaning: str
    kind: Literal["grown", "total", "fabric", "stuck"] = "grown"
    expected: str = "no growth while the job runs"

    @property
    def weight(self) -> tuple[int, int, int]:
        """The count that names the finding is the heaviest: an error first, then as the table of limits has them."""
        return self.severity, self.confidence, -list(LIMITS).index(limit_name(self.counter.name))


_FEW_FLAPS = f"at most {FLAPS_PER_DAY:g} flaps a day (Azure's node health check), and no port alone above {ODD_FLAPS}"
_FEW_ERRORS = f"fewer than {ODD_TOTAL} on this port, as on the others that carried as much"


def flaps_a_day(node: Node, nic: Nic, counter: Counter, total: int, limit: Limit) -> Iterator[Count]:
    """Flaps a day since boot, where the uptime is known."""
    uptime = node.os.uptime_s.value
    if limit.per_flap and uptime is not None and total / limit.per_flap > FLAPS_PER_DAY * max(1.0, uptime / DAY_S):
        yield Count(nic, counter, total, Severity.WARNING, Confidence.MEDIUM, limit.meaning, "total", _FEW_FLAPS)


def odd_ports(node: Node, nic: Nic, judged: ByNic) -> Iterator[Count]:
    """Single readings of one port that its peers, three and more, do not share: what all ports went through is not in
    them. Whoever pastes counters of flaps alone asks about them; it may be long ago."""
    uptime = node.os.uptime_s.value
    for _, counter, limit in judged[nic.name]:
        total = _once(counter)
        others = [
            value
            for name, counters in judged.items()
            for _, other, _ in counters
            if name != nic.name and other.name == counter.name and (value := _once(other)) is not None
        ]
        if total is None or counter.name in CORRECTED or len(others) < QUIET_SIBLINGS:
            continue
        confidence, expected = Confidence.MEDIUM, _FEW_ERRORS
        is_odd = total >= ODD_TOTAL and max(others) <= ODD_SHARE * total
        if limit.per_flap:
            confidence, expected = Confidence.MEDIUM if uptime is not None else Confidence.LOW, _FEW_FLAPS
            least = limit.per_flap * ODD_PER_DAY * (uptime or 0.0) / DAY_S
            is_odd = total > limit.per_flap * ODD_FLAPS and total >= least and max(others) <= QUIET_SHARE * total
            is_odd = is_odd and not (uptime is None and (node.gpus or node.pci))
        if is_odd:
            meaning = f"{limit.meaning}, and on no other port,"
            yield Count(nic, counter, total, Severity.WARNING, confidence, meaning, "total", expected)


def _once(counter: Counter) -> int | None:
    """What a counter had where it was read once."""
    return None if counter.later.known else counter.first.value


def high_totals(judged: ByNic) -> str:
    """Errors since boot that are too many to call a machine well, and that no second reading explains."""
    totals: dict[str, int] = defaultdict(int)
    for counters in judged.values():
        for _, counter, limit in counters:
            total = _once(counter)
            if not limit.per_flap and counter.name not in CORRECTED and total is not None and total >= ODD_TOTAL:
                totals[counter.name] += total
    high = ", ".join(f"{name} {total}" for name, total in list(totals.items())[:4])
    return high and f"{high} since boot: only a second reading shows whether it goes on (`--sample 60s` under load)"


SYMBOL_GROWTH = 10
"""Symbol errors between two samples up to which nothing is said (error_thresholds of rdma-core: SymbolError 10)."""

SYMBOLS_PER_HOUR = 120.0
"""Symbol errors an hour that the specified bit error rate of 1e-12 allows a link (IBTA, at 10 Gb/s)."""

FEC_GBPS_PER_LANE = 50.0
"""From HDR on, lanes are PAM4 with forward error correction, and symbol errors are part of normal work."""

STUCK = {"symbol_error": 0xFFFF, "link_downed": 0xFF, "link_error_recovery": 0xFF}
"""Where PMA counters of 16 and 8 bits stop counting (InfiniBand Architecture Specification, PortCounters)."""

REPORTED: dict[str, int] = own_data("checks/shared/node/nic_counters")["reported"]
"""Totals above which a port of the fabric's report is bad."""

LOST_PACKETS = ("port_rcv_errors", "port_xmit_discards")
LOST_SHARE = 1e-7
"""Share of a port's packets up to which lost ones are no fault, whatever their number: the bit error rate of 1e-12
costs 3e-8 of packets of 4 KiB."""

_FIRST_STEP = {"grown": "", "fabric": "which grow again", "total": "does it still happen", "stuck": "look after a day"}
"""What to do first, by kind of count."""

HOUR_S = 3600.0
ONE_SAMPLE = "one sample: totals since boot only, --sample shows growth"
NO_RDMA_PORTS = "the interfaces count no errors; counters of the RDMA ports are not in the evidence"


class NicPortErrors(NodeCheck, id="NIC003"):
    """NIC003: symbol, CRC, FEC, link_downed, discard counters above threshold, or a flap between samples

    What it finds
        Ports of compute NICs that went down or recovered between two samples, or whose integrity, congestion or loss
        counters grew: link_downed, link_error_recovery, port_rcv_errors and the like on InfiniBand; out_of_sequence,
        packet_seq_err, local_ack_timeout_err, discards and CRC errors on Ethernet; retransmission timeouts on EFA. With
        one sample only: more flaps a day since boot than is normal, more than ten on one port while its peers stayed
        up, a thousand errors and more on one port while its peers had hardly any (three of them), counters that reached
        their end, links that come up again and again in the kernel log (a link that was lost once where the log stands
        alone: low confidence), lanes of a transceiver without light, and ports in the report of `ibqueryerrors` or
        `perfquery` whose totals are above the thresholds of rdma-core. An adapter that runs the loader of its flash and
        no firmware (`Flash Recovery` in lspci, livefish).

    Why it matters
        While a link is down or retrains, every ring that passes it stands still, for seconds when NCCL must retry. A
        lost packet on RoCE makes the sender repeat all that followed: 0.1 % of loss costs far more than 0.1 % of
        bandwidth. Retries that run out kill the job (NCCL's completion status 12).

    Evidence it reads
        `counters` and `hw_counters` of each port in /sys/class/infiniband, `carrier_changes` and `statistics` of the
        interface, `ethtool -S`, `ethtool -m`; logs of switches; the kernel log (firmware that is stuck, transmit
        timeouts, links that come and go, too little power, bad modules); `mlxlink` (the firmware's word on the signal);
        `ibqueryerrors`, `perfquery`; the uptime. Growth needs two readings: `--sample`, or two pasted ones.

    When it stays silent
        Totals since boot or driver load, because the time of the errors is unknown (a thousand and more: unknown, never
        clean), unless they stand on one port alone, links went down more than five times a day, or one port went down
        and its peers did not (at least once a day; all alike is a boot or work on a switch). Symbol errors of at
        most ten, or of 120 an hour; on links with forward error correction (HDR and later) more than that is only a
        warning of low confidence. Congestion notifications alone (np_cnp, rp_cnp): that is ECN at work. Flush errors,
        which every closed connection counts. Lost packets of a report that are less than 1e-7 of the port's packets.
        Loss counters of RoCE on InfiniBand links. Waiting for credits (PortXmitWait), whatever its value: that is
        congestion, no error. Links that change while the machine boots, that somebody sets down, and those of drivers
        without RDMA that are lost once in an hour. Counters that went back were reset: no verdict from them. No
        counters at all: unknown.

    How to confirm
        topodiag scan --sample 60s                 while a job runs: what grows?
        sudo mlxlink -d DEVICE -c                  effective and symbol bit error rate: alarm above 1e-12
        ethtool -S IF | grep -E 'discard|crc|seq|link_down'
        dmesg | grep -iE 'link (up|down)|module'

    How to fix
        Flaps and integrity errors: clean or swap the cable or transceiver, then the switch port, then the NIC.
        Congestion or loss on RoCE: check PFC on the priority in use and ECN, the same at host and switch, and
        NCCL_IB_TC. EFA: report the peers that do not answer to the provider.

    References
        rdma-core error_thresholds; Linux mlx5 counters documentation (Documentation/networking/device_drivers); Azure
        azurehpc-health-checks; AWS EFA driver statistics.
    """

    def observe(self, node: Node, peers: Sequence[Node]) -> Outcome:
        return self.add_findings(self._judge_counters(node), of_log(self, node, troubles(node)))

    def _judge_counters(self, node: Node) -> Outcome:
        compute = compute_nics(node)
        nics = compute or _interfaces(node)
        ports = {port.label: port for port in node.fabric_ports}
        if not nics and not ports:
            return self.not_applicable(node, NO_COMPUTE)
        judged = {nic.name: list(_judged(node, nic)) for nic in nics}
        judged |= {name: list(_judged_counters(None, port.counters, {"InfiniBand"})) for name, port in ports.items()}
        counters = {name: [counter for _, counter, _ in own] for name, own in judged.items()}
        counters |= {name: [*counters[name], *port.counters.values()] for name, port in ports.items()}
        readable = [name for name, own in counters.items() if any(map(_readable, own))]
        what = "compute NICs with counters" if compute else "ports with counters"
        coverage = Coverage(len(readable), len(nics) + len(ports), what)
        if not readable:
            if any(judged.values()):
                return self.unknown(node, "the counters went back between the samples (reset), or could not be read")
            return self.unknown(node, "no error counters of the compute NICs in the evidence")
        findings = [self._report(node, counts) for counts in _groups(node, nics, ports, judged)]
        unseen = high_totals(judged) if compute or ports else NO_RDMA_PORTS
        return self.any_of(node, findings, coverage, "" if _is_sampled(judged) else ONE_SAMPLE, unseen)

    def _report(self, node: Node, counts: Sequence[Count]) -> Finding:
        worst = max(counts, key=lambda count: count.weight)
        advice = LIMITS[limit_name(worst.counter.name)].advice
        names = list(dict.fromkeys(count.nic.name for count in counts))
        totals: dict[str, int] = defaultdict(int)
        for count in counts:
            totals[count.counter.name] += count.amount
        sign = "+" if worst.kind == "grown" else ""
        shown = ", ".join(f"{name} {sign}{amount}" for name, amount in list(totals.items())[:6])
        more = f" and {plural(len(totals) - 6, 'other counter')}" if len(totals) > 6 else ""
        return self.finding(
            self.where(node, nics=names),
            Advice(worst.severity, max(count.confidence for count in counts if count.severity is worst.severity)),
            f"{fold_runs(names)}: {worst.meaning} {_when(node, worst)} ({shown}{more})",
            observed=f"{shown}{more} {_when(node, worst)}"
            + (f", {plural(len(names), 'NIC')} together" if names[1:] else ""),
            expected=worst.expected,
            fix=(*self.steps(_FIRST_STEP[worst.kind]), *(advice.fix if worst.kind != "stuck" else ())),
            cost=advice.cost,
            evidence=[count.counter.latest for count in counts],
        )


def _interfaces(node: Node) -> tuple[Nic, ...]:
    """Interfaces with counters where nothing else is known of the machine: the output of `ethtool -S` alone."""
    if node.nics or node.topics & {Topic.GPUS, Topic.RDMA_DEVICES}:
        return ()
    return tuple(Nic(netdev.name, netdevs=(netdev.name,)) for netdev in node.netdevs if netdev.counters)


def _judged(node: Node, nic: Nic) -> Iterator[Judged]:
    """The counters of a NIC that are errors: of its ports, of itself, and of its interfaces."""
    ports = [port for port in ports_of(node) if port.nic is nic]
    layers = {port.layer for port in ports}
    for port in ports:
        yield from _judged_counters(port, port.port.counters, {port.layer})
    first = ports[0] if ports else None
    yield from _judged_counters(first, nic.counters, layers)
    for device in node.netdevs:
        if device.name in nic.netdevs and "." not in device.name:
            yield from _judged_counters(first, device.counters, layers)


def _judged_counters(port: Port | None, counters: Counters, layers: set[str]) -> Iterator[Judged]:
    for name, counter in counters.items():
        limit = LIMITS.get(limit_name(name))
        if limit is not None and not (limit.ethernet_only and "InfiniBand" in layers):
            yield port, counter, limit


def _readable(counter: Counter) -> bool:
    """Whether a counter can be judged: not when it went back between the samples."""
    return counter.delta is not None or (counter.first.known and not counter.later.known)


def _is_sampled(judged: ByNic) -> bool:
    return any(counter.later.known for counters in judged.values() for _, counter, _ in counters)


def _counts(node: Node, nic: Nic, judged: Sequence[Judged], port: FabricPort | None) -> Iterator[Count]:
    if port is not None:
        yield from _reported(nic, judged, port.counters)
    for at, counter, limit in judged:
        if counter.delta is not None:
            if counter.name == "symbol_error":
                yield from _symbols(nic, at, counter, counter.delta, limit)
            elif counter.delta > 0:
                severity, confidence = limit.advice.severity, limit.advice.confidence
                if counter.name == "carrier_changes" and at is not None and at.layer == "InfiniBand":
                    # IP over InfiniBand loses its carrier when its multicast group does: the link may have held.
                    severity, confidence = Severity.WARNING, Confidence.MEDIUM
                yield Count(nic, counter, counter.delta, severity, confidence, limit.meaning)
        elif counter.first.value is not None and not counter.later.known:
            yield from flaps_a_day(node, nic, counter, counter.first.value, limit)
        if counter.name in STUCK and counter.latest.value == STUCK[counter.name] and not counter.delta:
            amount, words = STUCK[counter.name], "a counter has reached its end and counts no more:"
            ends = f"below {amount}, where the counter ends"
            yield Count(nic, counter, amount, Severity.INFO, Confidence.LOW, words, "stuck", ends)


def _reported(nic: Nic, judged: Sequence[Judged], counters: Counters) -> Iterator[Count]:
    """Totals of a port in the fabric's report that are above the thresholds, lost packets for what it carried too."""
    packets = (counters[name].latest.get(0) for name in ("port_xmit_packets", "port_rcv_packets") if name in counters)
    least = LOST_SHARE * max(packets, default=0)
    high = [
        (counter, limit, total)
        for _, counter, limit in judged
        if not counter.later.known
        and (total := counter.first.get(0)) > REPORTED.get(counter.name, total)
        and (counter.name not in LOST_PACKETS or total > least)
    ]
    corrected = all(counter.name in CORRECTED for counter, _, _ in high)
    confidence = Confidence.LOW if corrected else Confidence.MEDIUM
    for counter, limit, total in high:
        expected = f"at most {REPORTED[counter.name]} (suggested threshold of rdma-core)"
        yield Count(nic, counter, total, Severity.WARNING, confidence, limit.meaning, "fabric", expected)


def _symbols(nic: Nic, port: Port | None, counter: Counter, grown: int, limit: Limit) -> Iterator[Count]:
    if grown <= max(SYMBOL_GROWTH, SYMBOLS_PER_HOUR * counter.interval_s / HOUR_S):
        return
    # Without a known generation the doubt is the port's: modern links correct errors as a matter of course.
    lanes = port.port.lanes.value if port is not None else None
    per_lane = port.rate / lanes if port is not None and port.rate and lanes else None
    certain = per_lane is not None and per_lane < FEC_GBPS_PER_LANE
    confidence = Confidence.MEDIUM if certain else Confidence.LOW
    expected = f"at most {SYMBOL_GROWTH} (rdma-core), or {SYMBOLS_PER_HOUR:g} an hour (bit error rate 1e-12 at 10 Gb/s)"
    yield Count(nic, counter, grown, limit.advice.severity, confidence, limit.meaning, expected=expected)


def _groups(node: Node, nics: Sequence[Nic], ports: Mapping[str, FabricPort], judged: ByNic) -> list[list[Count]]:
    """What says something, ports with the same counters and severity together: one fault, one finding."""
    alike: dict[tuple[object, ...], list[Count]] = defaultdict(list)
    for nic in (*nics, *(Nic(name) for name in ports)):
        counts = _counts(node, nic, judged[nic.name], ports.get(nic.name))
        kinds = grouped((count.kind, count) for count in counts)
        if nic.name not in ports and "total" not in kinds and (outliers := list(odd_ports(node, nic, judged))):
            kinds["total"] = outliers
        for kind, alike_counts in kinds.items():
            names = frozenset(count.counter.name for count in alike_counts)
            alike[kind, names, max(count.severity for count in alike_counts)] += alike_counts
    return list(alike.values())


def _when(node: Node, count: Count) -> str:
    if count.kind == "grown":
        return f"in {in_s(count.counter.interval_s)}" if count.counter.interval_s > 0 else "between the samples"
    if count.kind != "total":
        return f"since {'the counters were' if count.kind == 'fabric' else 'it was'} last cleared"
    uptime = node.os.uptime_s.value
    return f"in {spell_s(uptime)} since boot" if uptime else "since boot"
