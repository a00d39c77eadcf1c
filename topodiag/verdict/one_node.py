"""One node for a capture, the kernel's messages and the interfaces of one machine: a fault that two of them report
counts once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from topodiag.model.clock_text import EPOCH_S, booted
from topodiag.model.events import Event
from topodiag.model.node import Node
from topodiag.verdict.names import NOBODY, only_kernel_log
from topodiag.words.copies import copies
from topodiag.words.hosts import address_of, short_name

SAME_S = 2.0
"""Seconds by which prints of one event differ in two logs of one clock: some are cut to whole seconds."""
MOST_APART_S = 15 * 3600.0
"""Two logs of one machine are not further apart than zones are. `dmesg -T` adds to the time of boot what the machine
slept and how NTP slewed its clock, and a zone may be untold."""


def merged(nodes: Sequence[Node], name_of: Callable[[str], str] = str) -> tuple[Node, ...]:
    """The nodes, with kernel logs and lists of interfaces that are of a machine which has one other capture taken into
    that one. An event that both tell counts once. Two captures of one machine stay apart: each shows another time.
    `name_of` is what the case calls a host."""
    captures: dict[str, list[int]] = defaultdict(list)
    parts: dict[str, list[int]] = defaultdict(list)
    for at, node in enumerate(nodes):
        name = short_name(name_of(node.host))
        if name not in NOBODY:
            (parts if is_part(node) else captures)[name].append(at)
    by_number = dict(enumerate(nodes))
    for name, several in parts.items():
        if len(captures[name]) == 1:
            at = captures[name][0]
            if address_of(by_number[at].host):  # a part may know it by its name
                by_number[at] = replace(by_number[at], host=name_of(by_number[at].host))
            for part in several:
                by_number[at] = _with_interfaces(_with_log(by_number[at], by_number[part]), by_number.pop(part))
    left = [by_number[at] for at in sorted(by_number)]
    names = [node.host.partition("#")[0] for node in left]
    bare, rows = Counter(names), zip(left, names, strict=True)  # the number of a capture goes with the other ones
    return tuple(node if bare[name] > 1 or name == node.host else replace(node, host=name) for node, name in rows)


def is_part(node: Node) -> bool:
    """Whether nothing but the kernel's messages, or nothing but interfaces, is known of a node."""
    if only_kernel_log(node):
        return True
    others = (node.topics, node.gpus, node.nics, node.pci, node.events, node.reports, node.time.known)
    return bool(node.netdevs) and not any(others)


def _with_interfaces(node: Node, part: Node) -> Node:
    """The node with the addresses of its interfaces, and with interfaces that it does not tell itself."""
    if not part.netdevs:
        return node
    net_devs = {device.name: device for device in part.netdevs}
    own = [
        replace(device, addresses=net_devs[device.name].addresses)
        if device.name in net_devs and not device.addresses.known
        else device
        for device in node.netdevs
    ]
    known = {device.name for device in own}
    return replace(node, netdevs=(*own, *(device for name, device in net_devs.items() if name not in known)))


def _with_log(node: Node, log: Node) -> Node:
    """The node with the events of a log that it does not tell itself."""
    start = booted(node)
    own, other = ([((event.kind, event.text), wall_s(event, start)) for event in side.events] for side in (node, log))
    places = copies(own, other, SAME_S, MOST_APART_S)
    events = list(node.events)
    for at, event in enumerate(log.events):
        if at not in places:
            events.append(event)
        elif event.time_s is not None and event.time_s >= EPOCH_S:
            events[places[at]] = event  # the wall's time needs no reckoning from boot
    reports, topics = (*node.reports, *log.reports), node.topics | log.topics
    gaps = tuple(dict.fromkeys((*node.not_observed, *log.not_observed)))
    return replace(node, events=tuple(events), reports=reports, topics=topics, not_observed=gaps)


def wall_s(event: Event, start: float | None) -> float | None:
    """Seconds of the epoch, None where they cannot be told."""
    if event.time_s is None or event.time_s >= EPOCH_S:
        return event.time_s
    return None if start is None else start + event.time_s
