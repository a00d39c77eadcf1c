"""An InfiniBand fabric as `ibnetdiscover` or `iblinkinfo` prints it: hosts, leaf switches, and what is above them.

Formats: infiniband-diags (src/ibnetdiscover.c, src/iblinkinfo.c), with and without `--line`. A host is the first word
of a node description (`gpu001 mlx5_0`, `gpu001 HCA-1`), as rdma-ndd and mlnx_ofed set it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import fsum
from statistics import median

import numpy as np

from topodiag.evidence.fabric_links import FabricLink, discovered_links, listed_links
from topodiag.evidence.interface import Blob
from topodiag.model.cluster_facts import ClusterFacts, Partition, partition_of
from topodiag.model.errors import InputError
from topodiag.words.hosts import natural
from topodiag.words.joined import Sets
from topodiag.words.node_sets import MAX_NODES
from topodiag.words.own_data import patterns

_USUAL_GBPS = 100.0
"""Of a link whose row does not say it: four lanes of EDR."""
_LIKE = patterns("evidence/network/lines", "descriptions")


_Rates = dict[str, dict[str, float]]
"""Gb/s from the first to the second, all cables together."""


class _Fabric:
    """Hosts with the switches that they are at, and switches with those that they join. `cables[host]` counts its
    ports."""

    def __init__(self, links: Sequence[FabricLink]) -> None:
        self.names: dict[str, str] = {}
        self.hosts: _Rates = defaultdict(lambda: defaultdict(float))
        self.links: _Rates = defaultdict(lambda: defaultdict(float))
        self.cables: Counter[str] = Counter()
        self.nameless: set[str] = set()
        rows = [link for link in links if _of_switch(link)]
        for link in rows:
            managed, _, name = link.here.name.partition(";")
            named = managed == "MF0" and ":" in name
            self.names.setdefault(link.here.number, name.partition(":")[0] if named else f"switch {link.here.number}")
        for link in rows:
            switch, peer, gbps = link.here.number, link.peer, link.gbps or _USUAL_GBPS
            if peer.of_switch or (peer.of_switch is None and peer.number in self.names):
                self.links[switch][peer.number] += gbps
            elif (host := host_of(peer.name)) is not None:
                self.hosts[host][switch] += gbps
                self.cables[host] += 1
            elif "Aggregation Node" not in peer.name:  # SHARP's own end in a switch
                self.nameless.add(peer.number)


def host_of(description: str) -> str | None:
    """The host that a node description names; None for one that names a product only."""
    match = _LIKE["host"].fullmatch(description.strip())
    return match[1] if match else None


def read_discover(blob: Blob) -> ClusterFacts:
    """The cluster of `ibnetdiscover`. Raises InputError where it shows no host behind a switch."""
    return _facts(blob, "ibnetdiscover", list(discovered_links(blob)))


def read_linkinfo(blob: Blob) -> ClusterFacts:
    """The cluster of `iblinkinfo`, with or without `--line`. Raises InputError where it shows no host."""
    return _facts(blob, "iblinkinfo", list(listed_links(blob)))


def _of_switch(link: FabricLink) -> bool:
    """Whether a row is a switch's. With --line a row names its own end, and a host's own rows repeat those of its
    switch."""
    name = link.here.name
    return bool(
        link.here.of_switch or (link.here.of_switch is None and not (" " in name and _LIKE["host"].fullmatch(name)))
    )


def _facts(blob: Blob, name: str, links: Sequence[FabricLink]) -> ClusterFacts:
    fabric = _Fabric(links)
    notes: list[str] = []
    if fabric.nameless:
        notes.append(f"{len(fabric.nameless)} adapters whose description names no host are left out")
    if not fabric.hosts:
        raise InputError(blob.name, f"shows no host behind a switch ({name})",
                         hint="node descriptions are set by rdma-ndd")  # fmt: skip
    usual = median(fabric.cables.values())
    few = [host for host, cables in fabric.cables.items() if cables * 2 < usual]
    if few:
        notes.append(f"{len(few)} hosts with less than half of the usual {usual:g} ports are left out (management or"
                     f" storage): {', '.join(few[:3])}")  # fmt: skip
    left_out = set(few)
    hosts = sorted((host for host in fabric.hosts if host not in left_out), key=natural)
    if len(hosts) > MAX_NODES:
        raise InputError(blob.name, f"shows more than {MAX_NODES} hosts")
    leaves = median(len(fabric.hosts[host]) for host in hosts)
    return ClusterFacts(
        name=blob.name,
        format=name,
        nodes=tuple(hosts),
        partitions=_levels(fabric, hosts),
        rails=max(int(leaves), 1),
        notes=tuple(notes),
    )


def _levels(fabric: _Fabric, hosts: list[str]) -> tuple[Partition, ...]:
    """Nodes that share leaf switches, then what each further tier of switches joins: first its links downwards, then
    those among its own (the global links of a dragonfly)."""
    sets = Sets[str]()
    tier = {switch: 0 for host in hosts for switch in fabric.hosts[host]}
    for host in hosts:
        first, *others = fabric.hosts[host]
        for switch in others:
            sets.join(first, switch)
    pairs = [_partition(fabric, hosts, sets, "leaf")]
    here, number = set(tier), 0
    while here:
        pairs_here = [(one, other) for one in here for other in fabric.links.get(one, {})]
        among = [(one, other) for one, other in pairs_here if tier.get(other) == number]
        above = {other for _, other in pairs_here if other not in tier}
        if among:
            for one, other in among:
                sets.join(one, other)
            known = len(pairs)
            _next(pairs, _partition(fabric, hosts, sets, "fabric"))
            if len(pairs) > known > 1:
                pairs[-2] = (replace(pairs[-2][0], kind="group"), pairs[-2][1])
        tier |= dict.fromkeys(above, number + 1)
        for one, other in pairs_here:
            if other in above:
                sets.join(one, other)
        if above:
            _next(pairs, _partition(fabric, hosts, sets, ("spine", "core")[number] if number < 2 else "fabric"))
        here, number = above, number + 1
    return tuple(_oversubscribed(fabric, hosts, pairs))


def _partition(fabric: _Fabric, hosts: list[str], sets: Sets[str], kind: str) -> tuple[Partition, dict[str, str]]:
    """The nodes by the set of their switches, and the set of every switch at this point."""
    roots = [sets.root(next(iter(fabric.hosts[host]))) for host in hosts]
    names = [fabric.names.get(next(iter(fabric.hosts[host])), "") if kind == "leaf" else "" for host in hosts]
    return partition_of(kind, roots, names), sets.roots()


def _next(pairs: list[tuple[Partition, dict[str, str]]], pair: tuple[Partition, dict[str, str]]) -> None:
    """Adds a level that joins more than the one before; where it joins the same, its switches belong to that one."""
    if np.array_equal(pair[0].group, pairs[-1][0].group):
        pairs[-1] = (pairs[-1][0], pair[1])
    else:
        pairs.append(pair)


def _oversubscribed(
    fabric: _Fabric, hosts: list[str], pairs: list[tuple[Partition, dict[str, str]]]
) -> list[Partition]:
    """What enters the groups of each level over what leaves them, the median group's."""
    entering: dict[str, float] = defaultdict(float)
    result: list[Partition] = []
    for number, (partition, roots) in enumerate(pairs):
        if number == 0:
            for host in hosts:
                entering[roots[next(iter(fabric.hosts[host]))]] += fsum(fabric.hosts[host].values())
        leaving: dict[str, float] = defaultdict(float)
        for one, root in roots.items():
            leaving[root] += fsum(gbps for other, gbps in fabric.links.get(one, {}).items() if roots.get(other) != root)
        ratios = [came / leaving[root] for root, came in entering.items() if leaving.get(root, 0.0) > 0 and came > 0]
        over = max(median(ratios), 1.0) if ratios else 0.0
        result.append(Partition(partition.kind, partition.group, partition.names, round(over, 3)))
        if number + 1 < len(pairs):
            above = pairs[number + 1][1]
            entering = defaultdict(float)
            for root, gbps in leaving.items():
                entering[above[root]] += gbps
    return result
