"""What Gloo says of the interface by which ranks meet: none that has the name, or loopback for several nodes."""

from __future__ import annotations

from topodiag.checks.words import hosts_in, hosts_word, quoted
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence
from topodiag.model.job import Event, Job

ONE_NODE = 8
"""As many ranks may share a node, and meet over loopback."""
OWN = "own"
"""In place of an address: torch says that it took loopback, for want of an address of the host."""


@dataclass(frozen=True, slots=True)
class GlooFault:
    """Lines of one fault, and what is said of it."""

    events: tuple[Event, ...]
    message: str
    observed: str
    fix: tuple[str, ...]
    sure: Confidence
    setting: bool
    """Whether GLOO_SOCKET_IFNAME is what is wrong."""


def gloo_faults(job: Job) -> list[GlooFault]:
    """An interface that Gloo does not find, and loopback addresses that ranks of other nodes were sent to."""
    unnamed = tuple(event for event in job.events if "gloo" in event.details)
    if unnamed:
        return [_unnamed(unnamed)]
    met = tuple(event for event in job.events if "mesh" in event.details)
    own = tuple(event for event in job.events if event.details.get("loopback") == OWN)
    looped = tuple(event for event in met if event.details.get("loopback"))
    if not looped and met and own:
        looped = own
    return [_looped(looped)] if looped and _on_several_nodes(job, (*met, *own)) else []


def _on_several_nodes(job: Job, events: tuple[Event, ...]) -> bool:
    """Whether the ranks of a job are on more than one node, by hosts or by more ranks than one holds."""
    hosts = {event.details.get("host") or event.host for event in events} - {""}
    return (
        len(hosts | set(job.hosts)) > 1
        or any(int(event.details.get("size") or 0) > ONE_NODE for event in events)
        or any(event.rank >= ONE_NODE for event in events)
    )


def _unnamed(events: tuple[Event, ...]) -> GlooFault:
    value = events[0].details["gloo"]
    why = "it has to be the name of one interface of this node"
    if value.startswith("^"):
        why = "Gloo takes the name of one interface; a list of what to leave out is NCCL_SOCKET_IFNAME's"
    elif value.replace(".", "").isdigit() or value.count(":") > 1:
        why = "Gloo takes the name of an interface, and this is an address"
    return GlooFault(
        events,
        f"{_at(events)}Gloo finds no interface {value} (GLOO_SOCKET_IFNAME): {why}",
        quoted(events[0].text, 200),
        (
            "GLOO_SOCKET_IFNAME: the name that `ip route get` the address of another node gives, on each node its own",
            "or unset it: Gloo then takes the address that the node's own name resolves to",
        ),
        Confidence.HIGH,
        True,
    )


def _looped(events: tuple[Event, ...]) -> GlooFault:
    address, size = events[0].details["loopback"], events[0].details.get("size")
    what = f"looks for a peer{f' of {size} ranks' if size else ''} at {address}"
    if address == OWN:
        what = "finds no address of this host by its own name, and takes loopback"
    return GlooFault(
        events,
        f"{_at(events)}Gloo {what}: loopback leads to no other node",
        quoted(events[0].text, 200),
        (
            "`getent hosts $(hostname)` on each node: its own name must not resolve to 127.x (/etc/hosts)",
            "or GLOO_SOCKET_IFNAME: the one name that `ip route get` the address of another node gives",
        ),
        Confidence.MEDIUM,
        False,
    )


def _at(events: tuple[Event, ...]) -> str:
    hosts = hosts_in(events)
    return f"{hosts_word(hosts)}: " if hosts else ""
