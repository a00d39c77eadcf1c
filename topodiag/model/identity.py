"""Who is who: hosts by every name that some source gives them, and what the sources say against each other.

Rank, node and GPU stay three things until a line maps them. What cannot be mapped keeps its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class Tie:
    """Names that a source says are of one machine, the machine's own name first: a pod, its node and its address.
    `how` is the reason in words."""

    names: tuple[str, ...]
    how: str = ""
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """One machine. `name` is what the case calls it, `aliases` every other name of it (FQDN, addresses, pods, container
    ids, the name of its capture), each with how it was tied to the machine in `ties`. `sources` are the kinds of
    evidence that speak of it ("bundle", "log", "nccl-tests", "hostfile", "kernel log").

    `boot` is when the machine booted by its last capture, as `2026-11-01 07:14:18` in UTC, "" where none tells it.
    `stale` says why its capture does not show the machine as the job met it, "" where nothing says so: then the capture
    counts for what cannot have changed.
    """

    name: str
    aliases: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    boot: str = ""
    stale: str = ""
    ties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that cannot both be right of one object, or that show different things of it: `a bundle shows 8 NICs
    that are up, the log of the same host shows none`. `check` is the finding that the contradiction is, "" for none."""

    subject: str
    text: str
    evidence: tuple[Origin, ...] = ()
    check: str = ""


@dataclass(frozen=True)
class Identity:
    """All hosts of a case, and what is in conflict."""

    hosts: tuple[Host, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @cached_property
    def _by_alias(self) -> dict[str, str]:
        known: dict[str, str] = {}
        for host in self.hosts:
            for alias in (host.name, *host.aliases):
                known.setdefault(alias.lower(), host.name)
        return known

    def name(self, alias: str) -> str:
        """What the case calls the host of this alias; the alias itself where no source ties it to a host. `n1#2`, the
        second capture of n1, is n1."""
        known = self._by_alias.get(alias.lower()) or self._by_alias.get(alias.partition("#")[0].lower())
        return known or alias
