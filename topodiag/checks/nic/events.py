"""What the kernel log and the bus say of network adapters: links that went down, firmware that is stuck, adapters that
are gone. NIC001 and NIC003 make findings of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from math import inf

from topodiag.checks.interface import HasOrigin, NodeCheck
from topodiag.checks.shared.devices import BOOT_S
from topodiag.checks.shared.node.kernel import times
from topodiag.checks.shared.phrases import phrase_in
from topodiag.lazy import dataclass
from topodiag.model.devices import Nic, NicPort, NicRole, PciKind
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.own_data import own_data
from topodiag.words.states import GOOD
from topodiag.words.units import grouped, plural

MANY_FLAPS = 2
"""Link losses that came back, from which on a link is called unsteady: switches and ports recover by themselves once
(ByteRobust acts on two alerts in five minutes)."""

MANY_RETURNS = 3
"""Times that a link came up though it was up, from which on it is called unsteady: a piece of a log, or an old driver,
has the ups alone. An interface that somebody takes down and up again gives one or two."""

MOST_BER = 1e-12
"""Bit errors that remain after correction, of a link that is well (IBTA's limit; MFT user manual, mlxlink)."""
AT_FULL_POWER_GBPS = 50.0
"""Adapters with too little power leave their ports off or at the pace of passive cables."""

AGAIN_S = 3600.0
"""Longest time between two losses of a port of which nothing shows that jobs use it."""

ONCE_S = 900.0
"""Longest time for which a link that is lost once is down before it counts as work on the machine."""


@dataclass(frozen=True, slots=True)
class PortTrouble:
    """One trouble of one adapter by the kernel log."""

    name: str
    kind: str
    severity: Severity
    words: str
    evidence: Sequence[HasOrigin]
    confidence: Confidence = Confidence.HIGH


def of_bus(check: NodeCheck, node: Node) -> Iterator[Finding]:
    """A finding for each adapter that does not answer on the bus."""
    adapters = [(bus_id, pci.lost) for bus_id, pci in node.pci.items() if pci.lost.known and pci.kind is PciKind.NIC]
    lost = {bus_id: (words.value or "", words.origin) for bus_id, words in adapters}
    for event in _of_adapters(node):
        if event.signature == "kernel.nic_gone":
            lost.setdefault(event.bus_id or "", ("its driver no longer reads its registers", event.origin))
        elif is_up(event):
            lost.pop(event.bus_id or "", None)  # a reset brought it back
    for bus_id, (words, origin) in lost.items():
        name = name_of(node, bus_id)
        message = f"{name} has left the PCIe bus: {words}"
        where = check.where(node, nics=[name])
        yield check.finding(where, "off the bus", message, observed=words, evidence=[origin])


def _of_adapters(node: Node) -> Iterator[Event]:
    """The lines of the kernel log on an adapter whose place they name."""
    return (event for event in node.events if event.kind in ("mlx5", "link") and event.bus_id is not None)


def of_start(check: NodeCheck, node: Node) -> Iterator[Finding]:
    """A finding for each adapter that its driver could not start, where nothing shows it at work after that."""
    failed: dict[str, list[Event]] = defaultdict(list)
    for event in _of_adapters(node):
        if event.signature == "kernel.nic_not_started":
            failed[event.bus_id or ""].append(event)
        elif is_up(event):
            failed.pop(event.bus_id or "", None)
    for bus_id, events in failed.items():
        nic = nic_of(node, bus_id)
        if is_foreign(nic) or (nic is not None and (nic.rdma_name or nic.netdevs)):
            continue
        yield check.finding(
            check.where(node, nics=[bus_id]),
            "not started",
            f"the driver of the adapter {bus_id} could not start it{times(events[-1:])}",
            evidence=events,
        )


def of_log(check: NodeCheck, node: Node, events: Iterable[PortTrouble]) -> Iterator[Finding]:
    """A finding for each trouble of an adapter by the kernel log."""
    for event in events:
        yield check.finding(
            check.where(node, nics=[event.name]),
            "event in the log" if event.kind == "down" else "errors in the log",
            f"{event.name}: {event.words}",
            severity=event.severity,
            observed=event.words,
            fix=own_data("checks/advice/node_faults")["adapter"][event.kind],
            evidence=event.evidence,
            confidence=event.confidence,
        )


def links_down(node: Node) -> Iterator[PortTrouble]:
    """Adapters whose last word in the log is that their link went down, where nothing else says how the port is."""
    for port in changes(node):
        known = port.plain or (port.nic is not None and any(port.state.known for port in port.nic.ports))
        last = port.events[-1]
        if is_down(last) and not known:
            words = f"its link went down{times([last])}, and the log does not show it up again"
            yield PortTrouble(port.name, "down", Severity.ERROR, words, (last,), Confidence.MEDIUM)


def troubles(node: Node) -> tuple[PortTrouble, ...]:
    """Unsteady links, stuck firmware, too little power, heat and bad modules."""
    return (*_unsteady(node), *_told_by_driver(node), *_poor_signals(node))


def _unsteady(node: Node) -> Iterator[PortTrouble]:
    lines_only = not (node.nics or node.gpus or node.pci)
    for port in changes(node):
        shown: Sequence[Event] = port.events
        downs = [one for one, other in pairwise(shown) if is_down(one) and is_up(other)]
        again = sum(is_up(one) and is_up(other) for one, other in pairwise(shown))
        words, confidence = f"its link went down and came back {plural(len(downs), 'time')}", Confidence.HIGH
        if port.plain and _close_together(downs):
            confidence = Confidence.MEDIUM
        elif not port.plain and not downs and again >= MANY_RETURNS:
            words = f"its link came up {plural(again, 'time')} more although it was up: it was lost in between"
        elif not port.plain and lines_only and len(downs) == 1 and (shown := _lost_once(shown)):
            # Of a whole machine one loss may be old and long over; whoever pastes these lines alone asks about them.
            words, confidence = f"its link went down and came back once{times(shown[:1])}", Confidence.LOW
        elif port.plain or len(downs) < MANY_FLAPS:
            continue
        yield PortTrouble(port.name, "flap", Severity.WARNING, words, shown, confidence)


def _close_together(downs: Sequence[Event]) -> bool:
    """Whether a port is lost again soon after it was lost: of a whole log, single losses are work on the machine."""
    times = pairwise(down.time_s for down in downs)
    return any(one is None or other is None or 0 <= other - one <= AGAIN_S for one, other in times)


def _lost_once(events: Sequence[Event]) -> list[Event]:
    """The loss of a link and its return, where it did not stay down as long as somebody works on it."""
    at = next(at for at, event in enumerate(events) if is_down(event))
    down, up = events[at], events[at + 1]
    known = down.time_s is not None and up.time_s is not None
    return [] if known and not 0 <= (up.time_s or 0.0) - (down.time_s or 0.0) <= ONCE_S else [down, up]


def _told_by_driver(node: Node) -> Iterator[PortTrouble]:
    kernel_events = grouped(
        ((name_of(node, event.bus_id, [event] if event.bus_id is None else None), phrase), event)
        for event in node.events
        if event.kind in ("mlx5", "link")
        and (phrase := phrase_in("adapter", event.text)) is not None
        and not is_foreign(nic_of(node, event.bus_id))
    )
    # No adapter short of power carries as much in a test of RDMA.
    carried_much = any(port.tested_gbps.get(0.0) >= AT_FULL_POWER_GBPS for nic in node.nics for port in nic.ports)
    for (name, phrase), events in kernel_events.items():
        kind, severity, words = phrase.kind, phrase.severity, phrase.says
        confidence = Confidence.LOW if kind == "power" else Confidence.HIGH
        if kind == "power" and (carried_much or _runs_fast(node, name)):
            well = "it carried as much as it should" if carried_much else "its port is up at full speed all the same"
            yield PortTrouble(name, kind, Severity.INFO, f"{words}: {well}", events)
        else:
            yield PortTrouble(name, kind, severity, f"{words}{times(events)}", events, confidence)


def _runs_fast(node: Node, name: str) -> bool:
    """Whether the adapter's ports, or all that are shown where its own are not named, are up at a speed that needs
    power: a short one leaves them off or slow."""
    named = [nic for nic in node.nics if nic.rdma_name == name]
    ports = [port for nic in named or node.nics for port in nic.ports]
    return bool(ports) and all(
        (port.state.value or "").strip().lower() in GOOD and port.rate_gbps.get(0.0) >= AT_FULL_POWER_GBPS
        for port in ports
    )


def _poor_signals(node: Node) -> Iterator[PortTrouble]:
    for nic in node.nics:
        for port in nic.ports:
            signal = port.signal if port.signal.known else _bit_errors(port)
            if signal.known and not is_foreign(nic):
                words = f"its link is up with a poor signal: {signal.value}"
                yield PortTrouble(nic.name, "signal", Severity.WARNING, words, (signal,))


def _bit_errors(port: NicPort) -> Fact[str]:
    """The first rate of bit errors that is above what a link that is well has, in words."""
    for name, fact in (("Effective Physical BER", port.effective_ber), ("Symbol BER", port.symbol_ber)):
        rate = fact.get("")
        with suppress(ValueError):
            if rate[:1].isdigit() and float(rate) > MOST_BER:
                return Fact(f"{name} {rate}, and {MOST_BER:g} is the most of a link that is well", fact.origin)
    return Fact()


# The ups and downs of network ports by the kernel log, port by port.


_STARTS = ("Command line: ", "PM: suspend exit")
"""How the kernel begins once the machine was off, or asleep."""
OPENED_S = 5.0
"""Longest time after which a driver that opened a port calls it down, as its link is not trained yet."""
_NAME = r"[A-Za-z][\w.-]{1,31}"
_UPS, _DOWNS = frozenset({"up", "active"}), frozenset({"down", "unplugged"})
_OF_ANY_DRIVER = "kernel.link_is"
"""What the drivers of all ports say alike; adapters that jobs use, and bonds, are named by their entries."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What the log says of one port after the machine has booted, in its order. `plain`: the log does not show that
    jobs use such ports."""

    name: str
    nic: Nic | None
    events: tuple[Event, ...]
    plain: bool = False


def is_up(event: Event) -> bool:
    return str(event.fields.get("reason", "")).lower() in _UPS


def is_down(event: Event) -> bool:
    return str(event.fields.get("reason", "")).lower() in _DOWNS


def changes(node: Node) -> list[Changes]:
    """The ups and downs of each port that no evidence keeps from the job's traffic. A bond repeats what a driver says
    of a port: one of both is kept. A port that is set down, and comes back, has not changed by itself, nor has one that
    goes down with its machine."""
    by_port: dict[tuple[str | None, str], list[Event]] = defaultdict(list)
    plain: dict[tuple[str | None, str], bool] = {}
    buses: dict[str, str] = {}
    for event in _by_themselves(node):
        if event.kind == "link-set":
            _leave_last_falls(by_port.values())
            continue
        interface, of_adapter = _interface(event), "module" in event.fields
        if interface and event.bus_id is not None:
            buses.setdefault(interface, event.bus_id)
        key = (event.bus_id, "" if event.bus_id is not None else interface)
        if key != (None, "") or of_adapter:
            by_port[key].append(event)
            plain[key] = plain.get(key, True) and not of_adapter
    _leave_repeats(by_port, buses)
    return [
        Changes(name_of(node, key[0], events), nic, tuple(events), plain[key])
        for key, events in by_port.items()
        if events and not is_foreign(nic := nic_of(node, key[0])) and not (plain[key] and node.nics and nic is None)
    ]


def _by_themselves(node: Node) -> Iterator[Event]:
    """The ups and downs without those of a port that somebody sets down, until it is back, or that a driver has just
    opened; and where the machine starts."""
    set_down: set[str] = set()
    opened_s = -inf
    for event in node.events:
        if event.kind == "link-set":
            set_down |= set(re.findall(_NAME, event.text))
            opened_s = opened_s if event.time_s is None else event.time_s
            if event.text.startswith(_STARTS):
                yield event
        elif _counts(event):
            untrained = is_down(event) and "module" not in event.fields
            if _interface(event) not in set_down:
                if not (untrained and 0 <= (event.time_s or -inf) - opened_s <= OPENED_S):
                    yield event
            elif is_up(event):
                set_down.discard(_interface(event))


def _counts(event: Event) -> bool:
    booted = event.time_s is None or event.time_s > BOOT_S
    named = "module" in event.fields or event.signature == _OF_ANY_DRIVER
    return booted and named and event.kind in ("mlx5", "link") and (is_down(event) or is_up(event))


def _leave_last_falls(ports: Iterable[list[Event]]) -> None:
    """Those before the machine starts again. An adapter's may be why somebody started it."""
    for events in ports:
        while events and is_down(events[-1]) and "module" not in events[-1].fields:
            events.pop()


def _leave_repeats(by_port: dict[tuple[str | None, str], list[Event]], buses: dict[str, str]) -> None:
    for interface, bus_id in buses.items():
        of_bond, of_driver = (None, interface), (bus_id, "")
        if of_bond in by_port and of_driver in by_port:
            drivers_own = sum(map(is_down, by_port[of_driver])) >= sum(map(is_down, by_port[of_bond]))
            del by_port[of_bond if drivers_own else of_driver]


def _interface(event: Event) -> str:
    return str(event.fields.get("nic", ""))


def nic_of(node: Node, bus_id: str | None) -> Nic | None:
    return next((nic for nic in node.nics if bus_id is not None and nic.bus_id == bus_id), None)


def is_foreign(nic: Nic | None) -> bool:
    """Whether the evidence shows that the job's traffic does not use this adapter."""
    return nic is not None and nic.role in (NicRole.STORAGE, NicRole.MANAGEMENT)


def name_of(node: Node, bus_id: str | None, events: list[Event] | None = None) -> str:
    nic = nic_of(node, bus_id)
    if nic is not None and nic.rdma_name:
        return nic.rdma_name
    interface = next(filter(None, map(_interface, events or ())), "")
    return f"{bus_id} ({interface})" if bus_id and interface else bus_id or interface or "an adapter"
