"""Hosts of a run that are not alike: one with fewer NVLinks, one that a setting keeps from its NICs."""

from __future__ import annotations

from dataclasses import dataclass

from topodiag.nccl.connect.communicator import Member
from topodiag.nccl.predict import Host


@dataclass(frozen=True, slots=True)
class Unlike:
    """The hosts, each as its ranks see it, and who runs where: `Member.host` is the place in `hosts`."""

    hosts: tuple[Host, ...]
    members: tuple[Member, ...]

    @property
    def kinds(self) -> tuple[Host, ...]:
        """Each distinct host once, in the order of the hosts."""
        return tuple(dict.fromkeys(self.hosts))
