"""Whether all nodes of a job brought the same network, NICs and channels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word
from topodiag.checks.shared.comparisons import majority
from topodiag.checks.shared.job.logs import by_host, hcas_by_host, ranks_on, unopened
from topodiag.checks.shared.job.text import ask_for
from topodiag.model.finding import Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Hca, Job
from topodiag.model.provenance import Origin
from topodiag.words.units import grouped, in_gbps, plural

NETWORK_LINES = ("network", "no hca", "sockets", "hcas")
"""Kinds of lines that show which network a process took, the plainest first."""

ONE_NODE = "one node: nothing to compare with"
V = TypeVar("V")


class NodesDiffer(JobCheck, id="NET007"):
    """NET007: nodes of one job bring different networks, NICs or channel counts

    What it finds
        Nodes whose network (IB, Socket, plugin), rates of RDMA devices, link layer, GPUDirect state or number of
        channels is not that of the others, or that cannot open an RDMA device; and connections in which sockets met
        NCCL's own IB.

    Why it matters
        Collectives wait for the slowest member: one node at 100 Gb/s, or on sockets, makes the whole job run at its
        speed. Different networks do not connect at all.

    Evidence it reads
        `Using network`, `NET/IB: [0] .. speed=`, `GPU Direct RDMA Enabled for HCA`, `16 coll channels`,
        `socketFinalizeAccept from ..: wrong type 3 != 4`.

    When it stays silent
        One node. Names that differ while rates are equal: they depend on the order of discovery. The count of devices
        alone: NIC005. A node that printed none of it is not compared.

    How to confirm
        grep -h 'Using network' LOGS | sort | uniq -c
        ibstat -s; ethtool INTERFACE | grep Speed           on the node that differs

    How to fix
        Remove the difference, or exclude the node from the job. Look at cable, transceiver, switch port
        speed, the container's devices, the settings of one node.

    References
        NCCL src/init.cc (initTransportsRank) v2.30: graphs are cut down to the least of all ranks.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        met = list(self._met_other(job))
        if len(job.hosts) < 2:
            return self.with_findings(job, met) if met else self.not_applicable(job, ONE_NODE)
        networks = {
            host: value
            for host, group in by_host(job).items()
            if (value := "/".join(sorted({process.network for _, process in group if process.network})))
        }
        listed = {host: hcas for host, hcas in hcas_by_host(job).items() if hcas}
        findings = [
            *self._compare(job, "network", networks, Severity.ERROR, str),
            *self._devices(job, listed),
            *self._channels(job),
            *self._unopened(job),
        ]
        if not any("network differs" in finding.message for finding in findings):
            findings += met
        seen = set(networks) | set(listed)
        unseen = f"fewer than two nodes say what they use; {ask_for(job)}" if len(seen) < 2 else ""
        return self.any_of(job, findings, Coverage(len(seen), len(job.hosts), "nodes"), unknown=unseen)

    def _devices(self, job: Job, listed: Mapping[str, Mapping[str, Hca]]) -> list[Finding]:
        """Rates, link layers and GPUDirect states of the RDMA devices of nodes."""
        rates = _of_each(listed, lambda hca: hca.speed_mbps or None)
        layers = _of_each(listed, lambda hca: hca.link_layer or None)
        states = _of_each(listed, lambda hca: hca.gdr)
        best = {host: max(of) for host, of in rates.items()}
        fastest = list(self._compare(job, "fastest RDMA device", best, Severity.WARNING, _rate))
        layer = {host: "/".join(sorted(set(of))) for host, of in layers.items()}
        gdr = {host: all(of) for host, of in states.items()}
        findings = [
            *fastest,
            *self._compare(job, "link layer", layer, Severity.WARNING, str),
            *self._compare(job, "GPUDirect RDMA", gdr, Severity.WARNING, lambda on: "on" if on else "off"),
        ]
        if not fastest:
            slowest = {host: min(of) for host, of in rates.items()}
            findings += self._compare(job, "slowest RDMA device", slowest, Severity.WARNING, _rate)
        return findings

    def _compare(
        self, job: Job, what: str, values: Mapping[str, Hashable], severity: Severity, word: Callable[[Any], str]
    ) -> Iterator[Finding]:
        if len(set(values.values())) < 2:
            return
        usual = majority(values.values())
        if usual is None:
            usual = max(set(values.values()), key=_merit)
        texts = [host for host, value in values.items() if value != usual]
        shown = grouped((value, host) for host, value in values.items())
        listed = hcas_by_host(job)
        yield self.finding(
            self.where(
                texts,
                ranks=ranks_on(job, texts),
                nics=sorted({hca.name for hca in listed.get(texts[0], {}).values()})[:16] if what != "network" else (),
            ),
            self.advice("nodes differ", what=what, odd=hosts_word(texts), usual=word(usual)),
            f"{what} differs between nodes: {hosts_word(texts)} {word(values[texts[0]])}, elsewhere {word(usual)}",
            severity=severity,
            observed="; ".join(f"{word(value)} on {hosts_word(hosts)}" for value, hosts in shown.items()),
            cost=_cost(usual, [values[host] for host in texts]),
            evidence=_shown(job, what, listed, [*texts[:2], *shown[usual][:1]]),
            coverage=Coverage(len(texts), len(values), "nodes"),
        )

    def _met_other(self, job: Job) -> Iterator[Finding]:
        """Ranks whose peer connected by the other network: it shows on one node's log alone."""
        events = [event for event in job.events if "socket_type" in event.details]
        if events:
            by_sockets = events[0].details["socket_type"].startswith("3")
            here, there = ("NET/IB", "NET/Socket") if by_sockets else ("NET/Socket", "NET/IB")
            yield self.of_events(
                events,
                "another network",
                f"{hosts_word(hosts_in(events)) or 'a node'}: a peer came by {there} where {here} listens: nodes of"
                " the job use different networks",
            )

    def _unopened(self, job: Job) -> Iterator[Finding]:
        """RDMA devices that some nodes cannot open: NCCL goes on without them, on those nodes alone."""
        for device, failures in grouped((device, event) for event, device in unopened(job)).items():
            hosts = list(dict.fromkeys(event.host for event in failures))
            if set(hosts) == set(job.hosts):
                continue  # as it may be meant for a device that no job is to use
            yield self.of_events(
                failures,
                "device not opened",
                f"{hosts_word(hosts)}: RDMA device {device} cannot be opened there, and NCCL goes without it",
                self.where(hosts, ranks=ranks_on(job, hosts), nics=[device]),
                coverage=Coverage(len(hosts), len(job.hosts), "nodes"),
            )

    def _channels(self, job: Job) -> Iterator[Finding]:
        world = job.world
        if world is None or not world.channels_by_rank or world.channels.coll < 0:
            return
        by_rank = {rank: channels.coll for rank, channels in world.channels_by_rank.items() if channels.coll >= 0}
        outliers = {rank: coll for rank, coll in by_rank.items() if coll != world.channels.coll}
        if outliers:
            counts = Counter(outliers.values())
            ranks = sorted(int(world.ranks[rank]) for rank in outliers if 0 <= rank < len(world.ranks))
            yield self.finding(
                self.where(ranks=[rank for rank in ranks if rank >= 0]),
                "channels",
                f"{plural(len(outliers), 'rank')} use {', '.join(map(str, sorted(counts)))} channels, the others"
                f" {world.channels.coll}",
                observed=f"{world.channels.coll} coll channels, and {dict(counts)}",
                evidence=[world],
                coverage=Coverage(len(outliers), world.nranks, "ranks"),
            )


def _shown(job: Job, what: str, listed: Mapping[str, Mapping[str, Hca]], hosts: Sequence[str]) -> list[Origin | None]:
    """The lines that show what these hosts have, each with the name of its host."""
    origins: list[Origin | None] = []
    for host in hosts:
        lines = [hca.gdr_origin or hca.origin for hca in list(listed.get(host, {}).values())[:2]]
        if what == "network":
            places = (m.origin for _, p in by_host(job).get(host, []) for kind in NETWORK_LINES for m in p.said(kind))
            lines = list(islice(places, 1))
        origins += [replace(line, text=f"{host}: {line.text}") for line in lines if line is not None]
    return origins


def _of_each(listed: Mapping[str, Mapping[str, Hca]], value_of: Callable[[Hca], V | None]) -> dict[str, list[V]]:
    """By host, what its devices say of one property; hosts none of whose devices says it are left out."""
    pairs = ((host, value_of(hca)) for host, hcas in listed.items() for hca in hcas.values())
    return grouped((host, value) for host, value in pairs if value is not None)


def _cost(usual: Hashable, outliers: Sequence[Hashable]) -> Cost:
    """What is lost by the slowest of the odd ones where the values are rates in Mb/s."""
    rates = [value for value in outliers if isinstance(value, int)]
    if isinstance(usual, int) and not isinstance(usual, bool) and len(rates) == len(outliers) and min(rates) < usual:
        low = min(rates)
        return Cost((usual - low) / 8000, 1 - low / usual, "for each NIC; every collective waits for it")
    return Cost(text="every collective waits for the slowest node")


def _rate(mbps: int) -> str:
    return in_gbps(mbps / 1000)


def _merit(value: Hashable) -> tuple[int, bool, str]:
    """Of values that tie: the faster rate, the state that is on, the network that is not sockets."""
    return (value if isinstance(value, int) else 0, "socket" not in str(value).lower(), str(value))
