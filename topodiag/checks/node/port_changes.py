"""The ups and downs of network ports by the kernel log, port by port. nic_events.py judges them."""

from __future__ import annotations

import re
from collections import defaultdict

from topodiag.checks.shared.devices import BOOT_S
from topodiag.lazy import dataclass, regex
from topodiag.model.devices import Nic, NicRole
from topodiag.model.node import Node
from topodiag.model.system import KernelEvent

_DRIVER = r"(?:mlx[45]_(?:core|ib|en)|bnxt_(?:en|re)|ionic|irdma|hns3)"
_BUS = r"[0-9a-fA-F:.]{7,16}"
_NAME = r"[A-Za-z][\w.-]{1,31}"
_ADAPTER = regex(rf"\b{_DRIVER}\b|\bbond[\w.-]{{1,12}}: (?:\(?slave |link status definitely )")
"""Adapters that jobs use, and ports that somebody joined into one: the drivers of all other ports log the same."""
_INTERFACE = regex(
    rf"\b{_DRIVER} {_BUS}:? ({_NAME}): |\bslave ({_NAME})\)|\bstatus definitely \w{{2,4}} for interface ({_NAME})\b"
    rf"|\b({_NAME}):? (?:NIC )?[Ll]ink is (?:[Uu]p|[Dd]own|UP|DOWN)\b"
)
_OF_ANY_DRIVER = regex(r"\b(?:NIC )?Link is (?:up|down)\b", re.IGNORECASE)
_DOWN = regex(r"\bLink (?:is |status definitely )?down\b|lost carrier|Cable unplugged", re.IGNORECASE)
_UP = regex(r"\bLink (?:is |status definitely )?(?:up|active)\b|gained carrier|Cable plugged", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Changes:
    """What the log says of one port after the machine has booted, in its order. `plain`: the log does not show that
    jobs use such ports."""

    name: str
    nic: Nic | None
    events: tuple[KernelEvent, ...]
    plain: bool = False


def is_up(event: KernelEvent) -> bool:
    return _UP.search(event.text) is not None


def is_down(event: KernelEvent) -> bool:
    return _DOWN.search(event.text) is not None


def changes(node: Node) -> list[Changes]:
    """The ups and downs of each port that no evidence keeps from the job's traffic. A bond repeats what a driver says
    of a port: one of both is kept. A port that is set down, and comes back, has not changed by itself."""
    found: dict[tuple[str | None, str], list[KernelEvent]] = defaultdict(list)
    plain: dict[tuple[str | None, str], bool] = {}
    buses: dict[str, str] = {}
    set_down: set[str] = set()
    for event in node.events:
        if event.kind == "link-set":
            set_down |= set(re.findall(_NAME, event.text))
            continue
        of_adapter = _ADAPTER.search(event.text) is not None
        if not _counts(event) or not (of_adapter or _OF_ANY_DRIVER.search(event.text)):
            continue
        interface = _interface(event)
        if interface and event.bus_id is not None:
            buses.setdefault(interface, event.bus_id)
        if interface in set_down:
            if is_up(event):
                set_down.discard(interface)
            continue
        key = (event.bus_id, "" if event.bus_id is not None else interface)
        if key != (None, "") or of_adapter:
            found[key].append(event)
            plain[key] = plain.get(key, True) and not of_adapter
    _leave_repeats(found, buses)
    return [
        Changes(name_of(node, key[0], events), nic, tuple(events), plain[key])
        for key, events in found.items()
        if not is_foreign(nic := nic_of(node, key[0])) and not (plain[key] and node.nics and nic is None)
    ]


def _counts(event: KernelEvent) -> bool:
    booted = event.time_s is None or event.time_s > BOOT_S
    return booted and event.kind in ("mlx5", "link") and (is_down(event) or is_up(event))


def _leave_repeats(found: dict[tuple[str | None, str], list[KernelEvent]], buses: dict[str, str]) -> None:
    for interface, bus_id in buses.items():
        of_bond, of_driver = (None, interface), (bus_id, "")
        if of_bond in found and of_driver in found:
            drivers_own = sum(map(is_down, found[of_driver])) >= sum(map(is_down, found[of_bond]))
            del found[of_bond if drivers_own else of_driver]


def _interface(event: KernelEvent) -> str:
    found = _INTERFACE.search(event.text)
    return next(filter(None, found.groups()), "") if found is not None else ""


def nic_of(node: Node, bus_id: str | None) -> Nic | None:
    return next((nic for nic in node.nics if bus_id is not None and nic.bus_id == bus_id), None)


def is_foreign(nic: Nic | None) -> bool:
    """Whether the evidence shows that the job's traffic does not use this adapter."""
    return nic is not None and nic.role in (NicRole.STORAGE, NicRole.MANAGEMENT)


def name_of(node: Node, bus_id: str | None, events: list[KernelEvent] | None = None) -> str:
    nic = nic_of(node, bus_id)
    if nic is not None and nic.rdma_name:
        return nic.rdma_name
    interface = next(filter(None, map(_interface, events or ())), "")
    return f"{bus_id} ({interface})" if bus_id and interface else bus_id or interface or "an adapter"


__all__ = ["Changes", "changes", "is_down", "is_foreign", "is_up", "name_of", "nic_of"]
