"""PCIe links that trained narrower or slower than both their ends can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.pcie.hops import ADAPTER_LANES, BUSY_PERCENT, FEWEST_LANES, Hop, hops, nothing_to_judge, where_of
from topodiag.checks.shared.devices import gpu_spec
from topodiag.checks.shared.prices import narrow_link, usable_gbs
from topodiag.model.devices import PciKind
from topodiag.model.events import Event, Value
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.words.units import grouped, in_gbs, percent, spell_gbs

STUMP_LANES = 2
"""Lanes up to which a link of a card for eight or more is broken whatever its slot: server slots are wired with 4, 8 or
16, and bifurcation divides them into no less than 4."""

MOST_BESIDE = 2
"""Times as many peers of another width that show what a link can do, where neither of its ends says so."""

RESTING_GEN = 1
"""The generation at which drivers rest the link of an idle GPU."""

_OURS = frozenset({"mlx5_core", "mlx4_core", "bnxt_en", "ice", "ionic", "nvidia", "amdgpu", "efa"})
_WHOLE = 16
"""Lanes of a device whose kind the line does not tell (`pci 0000:03:00.0`) from which on it is no disk."""


class NarrowPcieLink(NodeCheck, id="PCI001"):
    """PCI001: a GPU or NIC trained at fewer PCIe lanes than it and its slot can do

    What it finds
        A link that came up with some of its lanes missing, at the GPU or compute NIC itself or at a PCIe switch
        anywhere between it and the root port (a narrow uplink throttles everything below the switch).

    Why it matters
        Lanes carry bandwidth in proportion: a Gen5 x16 link is 48 GB/s to NCCL, at x4 it is 12 GB/s. A GPU at x4
        cannot feed a 400 Gb/s NIC (50 GB/s), and every ring that passes it slows to its pace. NCCL up to 2.29 reads
        the link's ability and not its state, so it plans with the full bandwidth.

    Evidence it reads
        `current_link_width` and `max_link_width` of the device and of the port above it in /sys/bus/pci/devices;
        NVML or `nvidia-smi -q` for GPUs; `LnkCap` and `LnkSta` of `lspci -vv`. Where none of them is there, what the
        kernel says at boot (`available PCIe bandwidth, limited by`), with low confidence.

    When it stays silent
        The slot is narrower than the card (the port's own maximum says so). All devices of the same product are narrow
        alike, or there is no other and the width of the slot was not read (a guest, or `nvidia-smi -q` alone):
        unknown, because boards divide the lanes of a slot and cloud instances wire cards with 8 lanes on purpose; one
        or two lanes of a card for eight or more, and one of an adapter for four, are no wiring, but on a guest. Width
        is judged even when the device is idle, because power saving lowers speed and never width. Widths of 0 or 255
        (virtual machines) are no reading: unknown. The kernel's lines: devices that are all limited alike, a lower
        speed alone, guests; a link where LnkCap of one end allows no more lanes (a card with a switch of its own,
        a laptop); four lanes and more of a device without a driver's name, where LnkCap of both ends is not known.
        Storage and management NICs are not judged.

    How to confirm
        nvidia-smi --query-gpu=index,pci.bus_id,pcie.link.width.current,pcie.link.width.max --format=csv
        sudo lspci -vv -s BUS_ID | grep -E 'LnkCap:|LnkSta:'
        dmesg | grep 'available PCIe bandwidth, limited by'

    How to fix
        Reseat the card or its riser, cable or retimer and look for bent contacts; swap it with a healthy slot to see
        whether the card or the slot is at fault. Check the BIOS for a bifurcation setting of that slot. A power cycle
        retrains the link, a reboot may not. A width that comes back after reseating and is lost again is a failing
        part.

    References
        PCI Express Base Specification (link training); NCCL src/graph/xml.cc (link_width).
    """

    def judge(self, judged: Node, peers: Sequence[Node] = ()) -> Outcome:
        outcome = super().judge(judged, peers)
        if outcome.status in (Status.FINDING, Status.CLEAN) or judged.is_vm:
            return outcome
        findings = list(_narrow_at_boot(self, judged))
        return self.with_findings(judged, findings) if findings else outcome

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        links = hops(judged)
        if not links:
            return nothing_to_judge(self, judged)
        seen = [hop for hop in links if hop.lower.width.known]
        coverage = Coverage(len(seen), len(links), "PCIe links")
        if not seen:
            return self.unknown(judged, links[0].lower.width.why or "no link width in the evidence")
        short = [hop for hop in seen if (hop.lower.width.value or 0) < (_able(hop, seen) or 0)]
        certain = [hop for hop in short if _is_proven(hop, seen) or _is_stump(judged, hop)]
        findings = [_narrow(self, judged, hop, links) for hop in certain]
        why = _widths_that_differ(seen)
        if short:
            hop, able = short[0], _able(short[0], seen)
            why = f"{hop.name} is at x{hop.lower.width.value} of x{able}: nothing tells whether it is built so"
        return self.any_of(judged, findings, coverage, unknown=why)


def _able(hop: Hop, seen: Sequence[Hop]) -> int | None:
    """Lanes that a link can do: as its ends say, else as the product has, else as its peers run, where these are
    most or `lspci` says that it lost some."""
    mine = hop.lower.width.value
    if hop.able_width is not None or mine is None:
        return hop.able_width
    if not hop.is_shared and hop.gpus and (spec := gpu_spec(hop.gpus[0])) is not None:
        return spec.pcie_width or None
    widths = [other.lower.width.value or 0 for other in seen if other.family == hop.family]
    if hop.lower.narrowed.value:
        return max(*widths, 2 * mine)
    return _shown_by_most(widths, mine)


def _shown_by_most(values: Sequence[int], mine: int) -> int | None:
    """The value of most peers, where they are enough beside those that are as this one; None elsewhere."""
    usual = max(set(values), key=lambda value: (values.count(value), value))
    return usual if values.count(usual) >= MOST_BESIDE * values.count(mine) else None


def _widths_that_differ(seen: Sequence[Hop]) -> str:
    """Peers with unlike widths of which nothing tells which ones are built so; nothing where there are none."""
    for hop in seen:
        for other in seen:
            mine, its = hop.lower.width.value or 0, other.lower.width.value or 0
            if other.family == hop.family and mine < its and _able(hop, seen) is None:
                return f"{hop.name} is at x{mine} and {other.name} at x{its}: nothing tells whether it is built so"
    return ""


def _is_proven(hop: Hop, seen: Sequence[Hop]) -> bool:
    """Whether a peer of another width, or without peers the slot, speaks against a width, and not only the device's own
    word: cloud slots give T4 and A10G 8 lanes by design, and all cards of a machine may be wired so."""
    if _is_alone(hop, seen):
        return hop.upper is not None and hop.upper.max_width.known
    return any(other.family == hop.family and other.lower.width.value != hop.lower.width.value for other in seen)


def _is_stump(node: Node, hop: Hop) -> bool:
    """Whether so few lanes trained that no slot for such a card is wired so."""
    width, able = hop.lower.width.value or 0, _able(hop, (hop,)) or 0
    few = width <= STUMP_LANES and able >= ADAPTER_LANES
    lone = width == 1 and able >= FEWEST_LANES and not hop.gpus
    return (few or lone) and not node.is_vm


def _is_alone(hop: Hop, links: Sequence[Hop]) -> bool:
    """Whether none of these links is a peer to compare with."""
    return not any(other.family == hop.family and other is not hop for other in links)


def _narrow(check: NodeCheck, node: Node, hop: Hop, links: Sequence[Hop]) -> Finding:
    width, able = hop.lower.width.value or 0, _able(hop, [link for link in links if link.lower.width.known]) or 0
    single = _is_alone(hop, links) or not hop.labels
    gen = hop.able_gen
    now, full = hop.gbs(gen, width), hop.gbs(gen, able)
    return check.finding(
        where_of(check, node, hop),
        "fewer lanes",
        f"{hop.name} trained at x{width} instead of x{able}",
        sure=not single,
        observed=f"x{width}" + (f" at {hop.place}" if hop.place else "") + (f", {in_gbs(now)}" if now else ""),
        expected=_wanted(hop, able, gen, full),
        cost=_loss(hop, now, full),
        evidence=[hop.lower.width, hop.lower.max_width, hop.upper.max_width if hop.upper else None],
    )


def _wanted(hop: Hop, able: int, gen: int | None, full: float | None) -> str:
    ends = "both ends can do it" if hop.upper is not None else "the device can do it"
    ends = ends if hop.able_width is not None else "as its peers and the product"
    return f"x{able} ({ends})" + (f": Gen{gen} x{able} is {in_gbs(full)} to NCCL" if full else "")


def _loss(hop: Hop, now: float | None, full: float | None) -> Cost:
    if now is None or full is None:
        return Cost(text="the speed of the link is unknown, so the loss is known only in proportion to its lanes")
    usable, lost = usable_gbs(full, hop.needed_gbs), narrow_link(now, full, hop.needed_gbs)
    share = lost / usable if usable else 0.0
    what = f"{spell_gbs(now)} of {in_gbs(usable)} left"
    return Cost(round(lost, 3), round(share, 4), f"{what}: {percent(share)} of what {hop.name} can use is lost")


class SlowPcieLink(NodeCheck, id="PCI002"):
    """PCI002: PCIe speed below capability while the device is busy

    What it finds
        A GPU under load, or a compute NIC with an active port, whose link runs at a lower PCIe generation than both
        of its ends can do; and the uplink of a PCIe switch above one of them. Without evidence of the ports, as in
        `lspci` alone, a NIC's link below both ends is a warning.

    Why it matters
        Each generation doubles the bandwidth: Gen5 x16 is 48 GB/s to NCCL, Gen4 24, Gen3 12. A link that fell back
        after errors stays slow until it is retrained.

    Evidence it reads
        `current_link_speed` and `max_link_speed` of the device and the port above it; NVML's generations, utilization
        and performance state.

    When it stays silent
        The GPU is idle: drivers lower the link to Gen1 on purpose. At full clocks (P0) without load: a warning only.
        The slot or the host is of an older generation. All devices of the product run alike, and not at rest. The
        GPUs of superchips, which hang on their processor's own links. Utilization was not observed: unknown. A NIC
        below its own ability, where the slot's is not in the evidence: unknown, because a newer card in an older host
        runs so by design. Uplinks in guests are the host's to draw.

    How to confirm
        Run a load on the GPU, and look while it runs:
        nvidia-smi dmon -s u                                             the load, GPU by GPU
        nvidia-smi --query-gpu=index,utilization.gpu,pcie.link.gen.current,pcie.link.gen.max --format=csv
        sudo lspci -vv -s BUS_ID | grep -E 'LnkSta:|LnkCtl2:'      a low target speed is a BIOS or setpci limit

    How to fix
        Look for AER errors of the same device (PCI003): links fall back after errors. Reseat card, riser, cable or
        retimer. Check the BIOS for a speed limit of the slot. Power-cycle to retrain.

    References
        NVML API reference (nvmlDeviceGetCurrPcieLinkGeneration); PCI Express Base Specification.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        all_hops = hops(judged)
        links = [hop for hop in all_hops if not hop.is_shared]
        if not links:
            return nothing_to_judge(self, judged)
        seen = [hop for hop in links if hop.lower.gen.known and _able_gen(hop, links) is not None]
        coverage = Coverage(len(seen), len(links), "PCIe links")
        if not seen:
            return self.unknown(judged, links[0].lower.gen.why or "no link speed in the evidence")
        low = [hop for hop in links if _below(hop, links)]
        uplinks, low_uplinks = _low_uplinks(judged, all_hops)
        load = [(hop, hop.is_busy) for hop in (*low, *low_uplinks) if not _all_at_one_speed(hop, [*seen, *uplinks])]
        at_fault = [hop for hop, is_busy in load if is_busy is not False and _is_told(hop, seen, is_busy)]
        findings = [self._report(judged, hop, links) for hop in at_fault]
        return self.any_of(judged, findings, coverage, _resting(low), _why_unknown(load))

    def _report(self, node: Node, hop: Hop, links: Sequence[Hop]) -> Finding:
        gen, able, width = hop.lower.gen.value or 0, _able_gen(hop, links) or 0, hop.lower.width.value
        now, full = hop.gbs(gen, width), hop.gbs(able, width)
        use = hop.gpus[0].utilization if hop.gpus and not hop.is_shared else None
        certain = bool(hop.is_busy) if use is None else (use.value or 0) >= BUSY_PERCENT
        ends = "both ends can do it" if hop.able_gen is not None else "as its peers run"
        load = f" while {percent(use.value / 100)} busy" if use is not None and use.value else ""
        return self.finding(
            where_of(self, node, hop),
            "slow link",
            f"{hop.name} runs at PCIe Gen{gen}{load} instead of Gen{able}",
            sure=certain,
            observed=f"Gen{gen} x{width or '?'}"
            + (f" at {hop.place}" if hop.place else "")
            + (f", {in_gbs(now)}" if now else ""),
            expected=f"Gen{able} ({ends})" + (f": {in_gbs(full)} to NCCL" if full else ""),
            cost=_loss(hop, now, full),
            evidence=[hop.lower.gen, hop.lower.max_gen, hop.upper.max_gen if hop.upper else None, use],
        )


def _able_gen(hop: Hop, links: Sequence[Hop]) -> int | None:
    """The generation that a link can do: as its ends say, else as most of its peers run, where these are faster."""
    if hop.able_gen is not None or hop.lower.gen.value is None or hop.is_shared:
        return hop.able_gen
    gens = [other.lower.gen.value or 0 for other in links if other.family == hop.family]
    return _shown_by_most(gens, hop.lower.gen.value)


def _why_unknown(load: Sequence[tuple[Hop, bool | None]]) -> str:
    """Why slow links of which none is at fault for sure leave the question open; nothing where all of them rest."""
    for hop, is_busy in load:
        if is_busy:
            why = f"{hop.name} is at Gen{hop.lower.gen.value} of Gen{hop.able_gen}"
            return f"{why}, and what its slot can do is not in the evidence"
    unsure = next((hop for hop, is_busy in load if is_busy is None), None)
    return f"{unsure.name} is at Gen{unsure.lower.gen.value}, idle or busy is not known" if unsure else ""


def _low_uplinks(node: Node, all_hops: Sequence[Hop]) -> tuple[list[Hop], list[Hop]]:
    """Uplinks of switches whose both ends were seen, and those of them that are slow and do not rest."""
    uplinks = [] if node.is_vm else [hop for hop in all_hops if hop.is_shared and hop.both_told]
    return uplinks, [hop for hop in uplinks if _below(hop, uplinks) and hop.lower.gen.value != RESTING_GEN]


def _resting(low: Sequence[Hop]) -> str:
    names = ", ".join(hop.name for hop in low[:8])
    return f"idle, so a low speed is power saving: {names}" if names else ""


def _below(hop: Hop, links: Sequence[Hop]) -> bool:
    able = _able_gen(hop, links)
    return hop.lower.gen.value is not None and able is not None and hop.lower.gen.value < able


def _all_at_one_speed(hop: Hop, seen: Sequence[Hop]) -> bool:
    """Whether every peer runs at the same speed, and not because it rests: then the machine is built so."""
    family = [other for other in seen if other.family == hop.family]
    same = {other.lower.gen.value for other in family} == {hop.lower.gen.value}
    resting = hop.lower.gen.value == RESTING_GEN and not all(other.is_busy for other in family)
    return same and len(family) > 1 and not resting


def _is_told(hop: Hop, seen: Sequence[Hop], busy: bool | None) -> bool:
    """Whether the evidence shows that the link could be faster: a driver says what a GPU's slot can do; of a NIC the
    slot, or a faster peer, must have been seen. Without knowing whether it works, only both ends convict a NIC."""
    if hop.lower.kind is PciKind.GPU or (hop.gpus and not hop.is_shared):
        return busy is True
    gen = hop.lower.gen.value or 0
    faster = any(other.family == hop.family and (other.lower.gen.value or 0) > gen for other in seen)
    return hop.both_told or (busy is True and faster)


def _narrow_at_boot(check: NodeCheck, node: Node) -> Iterator[Finding]:
    """A warning for each device whose last word is a link with fewer lanes than it has. A lower speed alone is how a
    board is built; so are fewer lanes where all devices alike have them, unless one had more at an earlier boot."""
    by_device = grouped((event.bus_id or "", event) for event in node.events if _is_limited_at_boot(event))
    last = {bus_id: own[-1] for bus_id, own in by_device.items()}
    for bus_id, event in last.items():
        had = max(int(own.fields["count"]) for own in by_device[bus_id])
        alike = {place: other for place, other in last.items() if _driver_and_lanes(other) == _driver_and_lanes(event)}
        cards = {place.rpartition(".")[0] for place in alike}  # functions of one card share its link
        lanes, able = int(event.fields["count"]), int(event.fields["expected"])
        built_so = len(cards) > 1 and all(other.fields["count"] == lanes for other in alike.values())
        if lanes < able and (had > lanes or not (built_so or _has_no_more(node, event, lanes))):
            yield _boot_finding(check, node, event, had)


def _has_no_more(node: Node, event: Event, lanes: int) -> bool:
    """Whether an end of the narrow link has no more lanes than it trained. The line compares the link with the device,
    which may stand behind a switch on its card. Of a device that no driver names, laptops and desktops are wired so:
    there both ends must be known to have more, unless no slot is wired with so few."""
    port = str(event.fields.get("address", ""))
    ends = [device.max_width.value for at, device in node.pci.items() if port in (at, device.parent)]
    known = [width for width in ends if width]
    by_driver = event.fields["module"] in _OURS or lanes <= STUMP_LANES
    return any(width <= lanes for width in known) or not (by_driver or len(known) > 1)


def _is_limited_at_boot(event: Event) -> bool:
    fields = event.fields
    named = event.kind == "pcie-bandwidth" and "module" in fields and "expected" in fields
    return named and (fields["module"] in _OURS or int(fields["expected"]) >= _WHOLE)


def _driver_and_lanes(event: Event) -> tuple[Value, Value]:
    """The driver of a device, and its own lanes."""
    return event.fields["module"], event.fields["expected"]


def _boot_finding(check: NodeCheck, node: Node, event: Event, had: int) -> Finding:
    fields, bus_id = event.fields, event.bus_id or ""
    lanes, able = int(fields["count"]), int(fields["expected"])
    gbs, able_gbs = in_gbs(float(fields["size"]) / 8), in_gbs(float(fields["value"]) / 8)
    lost = had > lanes
    words = f", x{had} at an earlier boot" if lost else ""
    return check.finding(
        check.where(node, links=[bus_id]),
        check.advice("narrow at boot", lanes=had if lost else able, able_gbs=able_gbs, gbs=gbs),
        f"{bus_id}: the kernel found a link of x{lanes} above a device of x{able}{words}",
        severity=Severity.ERROR if lost else Severity.WARNING,
        observed=f"{gbs} at {fields['address']}",
        evidence=[event],
        confidence=Confidence.HIGH if lost else Confidence.LOW,
    )
