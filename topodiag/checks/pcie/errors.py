"""PCIe error counters: AER and replays. What grows now is judged; totals since boot are a hint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.pcie.hops import Hop, hops, nothing_to_judge, where_of
from topodiag.checks.shared.node.kernel import times
from topodiag.lazy import dataclass
from topodiag.model.devices import PciDevice
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Counter
from topodiag.words.units import grouped, in_s, plural, spell_s

REPLAYS_PER_LANE_MINUTE_GTS = 0.06
"""Replays to be expected per lane, minute and GT/s at the specified bit error rate of 1e-12: 1e-12 x 60 s x 1e9.
DCGM (GetExpectedPcieReplayRate) gives the same: 31 a minute on Gen5 x16."""

GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}

UNCORRECTABLE = ("aer_fatal_total", "aer_nonfatal_total")
CORRECTABLE = ("aer_correctable_total", "replay")
PLAIN = dict(
    zip((*UNCORRECTABLE, *CORRECTABLE), ("fatal", "uncorrectable non-fatal", "corrected", "replays"), strict=True)
)
"""What messages call the counters."""

PROBING = {"aer_nonfatal_total": "aer_nonfatal_UnsupReq"}
"""Unsupported requests are what probing a bus at boot leaves behind: totals since boot count without them."""

STATUS = "aer_correctable_status"
"""Bits of the AER status register: each says that there was an error of its kind since it was cleared, not how many."""

MIN_SINCE_BOOT = 100
"""Corrected errors since boot below which nothing is said: link training at boot leaves a few."""

SECONDS_PER_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class _Count:
    """One counter of one device with how bad it is; `growing` when it was seen to grow."""

    device: PciDevice
    counter: Counter
    amount: int
    allowed: float
    growing: bool

    @property
    def fatal(self) -> bool:
        return self.counter.name in UNCORRECTABLE


_OURS = ("pcieport", "nvidia", "mlx4_core", "mlx5_core", "bnxt_en", "ice")
"""Drivers whose lines count: others are of disks and the like, as `nvme 0000:9a:00.0: PCIe Bus Error`."""

MIN_LOGGED = 100
"""Lines of corrected errors from which on the kernel log speaks against a link: a few come with every boot."""


def _logged(node: Node) -> list[tuple[str, list[Event]]]:
    """AER lines by device, those of disks and of other adapters left out, where they are uncorrectable or many."""
    lines = (event for event in node.events if event.kind == "aer")
    own = [event for event in lines if str(event.fields.get("module", _OURS[0])).startswith(_OURS)]
    return [
        (place, events)
        for place, events in grouped((event.bus_id or "a PCIe device", event) for event in own).items()
        if len(events) >= MIN_LOGGED or any("reason" in event.fields for event in events)
    ]


class PcieErrors(NodeCheck, id="PCI003"):
    """PCI003: AER errors or replay counters

    What it finds
        PCIe errors of GPUs, compute NICs and the bridges above them: any uncorrectable error, and corrected errors
        (and replays) at a higher rate than the specified bit error rate of the link explains.

    Why it matters
        Each corrected error is a packet sent twice; a link with many of them loses bandwidth, adds stalls of
        microseconds, and often retrains to fewer lanes or a lower speed (PCI001, PCI002) or drops the device (Xid 79).

    Evidence it reads
        AER lines of the kernel log; `aer_dev_correctable`, `aer_dev_nonfatal`, `aer_dev_fatal` in sysfs, the
        replay counter of NVML or `nvidia-smi -q`. With `--sample 60s` the growth between two readings. Bits of `CESta`
        in `lspci -vv` are a note: they say that there was an error, not when or how many.

    When it stays silent
        Corrected errors within the specified rate: at 1e-12 a Gen5 x16 link may replay 31 times a minute. Fewer than
        100 since boot without a second sample. Unsupported requests since boot, which probing the bus leaves behind.
        Counters that went back between samples were reset: no verdict from them. No AER counters (firmware owns AER,
        virtual machines): unknown.

    How to confirm
        topodiag scan --sample 60s                    under load: do they grow?
        grep . /sys/bus/pci/devices/BUS_ID/aer_dev_*
        dmesg | grep -i AER

    How to fix
        Reseat card, riser, cable or retimer of the device; update its firmware and the BIOS. If the same slot goes on
        with another card, the board or retimer is at fault. Uncorrectable errors: take the node out of service.

    References
        Linux Documentation/PCI/pcieaer-howto.rst; PCI Express Base Specification (bit error rate 1e-12); NVIDIA DCGM
        health watches for PCIe replays.
    """

    def observe(self, node: Node, peers: Sequence[Node]) -> Outcome:
        outcome = self._judge_counters(node)
        uncounted = [hop for hop in hops(node) if outcome.status is Status.UNKNOWN and _has_status(hop)]
        notes = (self._of_status(node, hop) for hop in uncounted)
        return self.add_findings(outcome, [*notes, *(self._of_log(node, *logged) for logged in _logged(node))])

    def _of_status(self, node: Node, hop: Hop) -> Finding:
        return self.finding(
            where_of(self, node, hop),
            "status bits",
            f"{hop.name} had corrected PCIe errors since its AER status was last cleared",
            observed=plural(hop.lower.counters[STATUS].latest.get(0), "bit") + " of CESta set",
            evidence=[hop.lower.counters[STATUS].latest],
        )

    def _of_log(self, node: Node, place: str, events: Sequence[Event]) -> Finding:
        hard = [event for event in events if "reason" in event.fields]
        kind = "uncorrectable" if hard else "corrected"
        return self.finding(
            self.where(node, links=[place] if ":" in place else ()),
            "errors in the log",
            f"{place} has {kind} PCIe errors in the kernel log{times(hard or events)}",
            observed=plural(len(hard or events), f"{kind} error"),
            evidence=hard or events,
            confidence=Confidence.HIGH if hard else Confidence.MEDIUM,
        )

    def _judge_counters(self, node: Node) -> Outcome:
        links = hops(node)
        if not links:
            return nothing_to_judge(self, node)
        counted = [hop for hop in links if any(_names(end) for end in _ends(hop))]
        coverage = Coverage(len(counted), len(links), "PCIe links")
        if not counted:
            return self.unknown(node, "no AER or replay counters in the evidence")
        findings = []
        texts: set[str] = set()  # functions of one card share the port above them
        for hop in counted:
            counts = [c for c in _counts(node, hop) if c.amount > c.allowed and c.device.bus_id not in texts]
            texts |= {count.device.bus_id for count in counts}
            if counts:
                findings.append(self._report(node, hop, counts))
        return self.any_of(node, findings, coverage)

    def _report(self, node: Node, hop: Hop, counts: Sequence[_Count]) -> Finding:
        fatal = any(count.fatal for count in counts)
        growing = any(count.growing for count in counts)
        words = ", ".join(f"{PLAIN[c.counter.name]} {'+' if c.growing else ''}{c.amount}" for c in counts)
        period = _period(node, counts)
        places = list(dict.fromkeys(count.device.bus_id for count in counts))
        worst = max(counts, key=lambda count: (count.fatal, count.growing, count.amount))
        return self.finding(
            self.where(node, gpus=[gpu.label for gpu in hop.gpus], nics=[nic.name for nic in hop.nics], links=places),
            "errors",
            f"{hop.name} has PCIe errors {'now' if growing else 'since boot'}: {words}",
            severity=Severity.ERROR if growing and fatal else Severity.WARNING,
            observed=f"{words} {period} at {', '.join(places)}",
            expected="no uncorrectable errors" if worst.fatal else _allowance(hop, worst, period),
            fix=self.steps("drain" if growing else "sample under load", "reseat the card", "board at fault"),
            evidence=[count.counter.later if count.growing else count.counter.first for count in counts],
            confidence=Confidence.HIGH if growing else Confidence.MEDIUM,
        )


def _has_status(hop: Hop) -> bool:
    return STATUS in hop.lower.counters and bool(hop.lower.counters[STATUS].latest.value)


def _ends(hop: Hop) -> tuple[PciDevice, ...]:
    """Both ends of a link count what they receive."""
    return (hop.lower,) if hop.upper is None else (hop.lower, hop.upper)


def _names(device: PciDevice) -> tuple[str, ...]:
    return tuple(name for name in (*UNCORRECTABLE, *CORRECTABLE) if name in device.counters)


def _counts(node: Node, hop: Hop) -> Iterator[_Count]:
    for device in _ends(hop):
        for name in _names(device):
            counter, correctable = device.counters[name], name in CORRECTABLE
            if counter.later.known:
                if counter.delta is not None:
                    allowed = _allowed(hop, counter.interval_s) if correctable else 0.0
                    yield _Count(device, counter, counter.delta, allowed, growing=True)
            elif counter.first.value is not None:
                allowed = _allowed_since_boot(node, hop) if correctable else 0.0
                yield _Count(device, counter, counter.first.value - _probing(device, name), allowed, growing=False)


def _probing(device: PciDevice, name: str) -> int:
    harmless = device.counters.get(PROBING.get(name, ""))
    return harmless.first.get(0) if harmless is not None else 0


def _allowed(hop: Hop, seconds: float) -> float:
    """Corrected errors that the bit error rate explains in this time, rounded up to whole ones."""
    width = hop.lower.width.value or hop.able_width or 16
    gts = GTS.get(hop.able_gen or 5, 32.0)
    return math.ceil(width * REPLAYS_PER_LANE_MINUTE_GTS * gts * max(seconds, 1.0) / SECONDS_PER_MINUTE)


def _allowed_since_boot(node: Node, hop: Hop) -> float:
    uptime = node.os.uptime_s.value
    # Without an uptime a month is assumed: a false alarm costs more than a miss.
    return max(_allowed(hop, uptime if uptime is not None else 30 * 86400.0), MIN_SINCE_BOOT)


def _period(node: Node, counts: Sequence[_Count]) -> str:
    grown = [count.counter.interval_s for count in counts if count.growing]
    if grown:
        return f"in {in_s(max(grown))}"
    uptime = node.os.uptime_s.value
    return f"in {spell_s(uptime)} since boot" if uptime is not None else "since boot"


def _allowance(hop: Hop, count: _Count, period: str) -> str:
    gen, width = hop.able_gen, hop.lower.width.value
    return f"at most {count.allowed:.0f} {period} (bit error rate 1e-12 on Gen{gen or 5} x{width or 16})"
