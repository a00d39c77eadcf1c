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
from topodiag.words.hosts import address_of, short_name
from topodiag.words.units import grouped

SAME_S = 2.0
"""Seconds by which prints of one event differ in two logs of one clock: some are cut to whole seconds."""
MOST_APART_S = 15 * 3600.0
"""Two logs of one machine are not further apart than zones are."""
MOST_COMPARED = 500
"""Events of a log by which it is compared with another."""


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
    offset = _clock_difference(node.events, log.events, start)
    events = list(node.events)
    places = grouped(((event.kind, event.text), place) for place, event in enumerate(node.events))
    for event in log.events:
        own, time = places.get((event.kind, event.text), []), wall_s(event, start)
        at = next((at for at in own if _is_one(wall_s(node.events[at], start), time, offset)), None)
        if at is None:
            events.append(event)
            continue
        own.remove(at)  # each print of an event stands for one of the other log's
        if event.time_s is not None and event.time_s >= EPOCH_S:
            events[at] = event  # the wall's time needs no reckoning from boot
    reports, topics = (*node.reports, *log.reports), node.topics | log.topics
    gaps = tuple(dict.fromkeys((*node.not_observed, *log.not_observed)))
    return replace(node, events=tuple(events), reports=reports, topics=topics, not_observed=gaps)


def _clock_difference(own: Sequence[Event], other: Sequence[Event], start: float | None) -> float | None:
    """How many seconds a log is behind another one of the same machine, by the difference that most events share which
    both print; None without one.

    `dmesg -T` adds to the time of boot what the machine slept and how NTP slewed its clock, and a zone may be untold.
    """
    walls = (((event.kind, event.text), wall_s(event, start)) for event in own)
    times = grouped((key, wall) for key, wall in walls if wall is not None)
    hosts: dict[int, set[str]] = defaultdict(set)
    for event in other[:MOST_COMPARED]:
        wall = wall_s(event, start)
        if wall is None:
            continue
        for time in times.get((event.kind, event.text), ())[:8]:
            if abs(time - wall) <= MOST_APART_S:
                hosts[round((time - wall) / SAME_S)].add(event.text)
    if not hosts:
        return None
    near = {step: texts | hosts.get(step + 1, set()) for step, texts in hosts.items()}
    best = max(sorted(near), key=lambda step: (len(near[step]), -abs(step)))
    texts = len({event.text for event in other[:MOST_COMPARED]})
    return best * SAME_S if len(near[best]) > 1 or texts == 1 else None


def wall_s(event: Event, start: float | None) -> float | None:
    """Seconds of the epoch, None where they cannot be told."""
    if event.time_s is None or event.time_s >= EPOCH_S:
        return event.time_s
    return None if start is None else start + event.time_s


def _is_one(one: float | None, other: float | None, offset: float | None) -> bool:
    """Whether two prints of equal words are of one event."""
    if one is None or other is None:
        return True
    return abs(one - other) <= SAME_S or (offset is not None and abs(one - other - offset) <= 2 * SAME_S)
