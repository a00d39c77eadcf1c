"""Hosts of a run that are not alike: one with fewer NVLinks, one that a setting keeps from its NICs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass
from topodiag.nccl.connect.communicator import Member
from topodiag.nccl.predict import Host
from topodiag.nccl.topo.changes import bus_of, gpus_of

if TYPE_CHECKING:
    from topodiag.expect.setup import Setup

MOST_HOSTS = 16
"""Hosts of a run that are placed one by one; of more, all are taken to be as the one that differs."""


@dataclass(frozen=True, slots=True)
class MixedHosts:
    """The hosts, each as its ranks see it, and who runs where: `Member.host` is the place in `hosts`."""

    hosts: tuple[Host, ...]
    members: tuple[Member, ...]

    @property
    def kinds(self) -> tuple[Host, ...]:
        """Each distinct host once, in the order of the hosts."""
        return tuple(dict.fromkeys(self.hosts))


def one_of(setup: Setup, changed: Setup) -> Setup:
    """The run with its first host as `changed` has it, and the others as built. NCCL takes the fewest channels and the
    least bandwidth of all hosts, which is less than what hosts that are all changed agree on. `changed` itself for one
    host, for racks, and for hosts that are not alike already."""
    buses = [bus_of(gpu) for gpu in gpus_of(setup.tree).values()][: setup.per_node]
    if not 1 < setup.nodes <= MOST_HOSTS or setup.domain > 1 or setup.unlike is not None or len(buses) < setup.per_node:
        return changed
    hurt, built = ((one.tree, tuple(sorted(one.env.items()))) for one in (changed, setup))
    members = tuple(
        Member(place * setup.per_node + number, place, bus)
        for place in range(setup.nodes)
        for number, bus in enumerate(buses)
    )
    return replace(setup, unlike=MixedHosts((hurt, *[built] * (setup.nodes - 1)), members))
