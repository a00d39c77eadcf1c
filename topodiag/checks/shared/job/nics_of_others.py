"""NICs that a job leaves out: on the same nodes another job lists more, or the capture of the node shows more up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.checks.shared.job.evidence import hcas_by_host, local_ranks, ranks_per_node, settings_of, with_cut_lists
from topodiag.lazy import dataclass
from topodiag.model.devices import NicRole
from topodiag.model.job import Given, Hca, Job


@dataclass(frozen=True, slots=True)
class FewerThanOthers:
    """`hosts` on which this job lists `kept` where another job lists `more`, or where their captures show `more` up:
    `captured`. `filters` are the settings of NCCL_IB_HCA that leave NICs out."""

    hosts: tuple[str, ...]
    kept: tuple[Hca, ...]
    more: tuple[Hca, ...]
    filters: tuple[Given, ...]
    captured: bool = False


def fewer_than_others(job: Job, peers: Sequence[Job]) -> FewerThanOthers | None:
    """None where no other job of these hosts lists more, and no capture shows more. A host that is down or a NIC that
    was lost between two jobs would show so too: only where a setting of this job names the NICs it is the job."""
    mine = hcas_by_host(job)
    found: dict[str, tuple[tuple[Hca, ...], tuple[Hca, ...]]] = {}
    for host in with_cut_lists(job):
        mine.pop(host, None)
    for host, hcas in mine.items():
        for peer in peers:
            theirs = hcas_by_host(peer).get(host, {})
            if {hca.name for hca in hcas.values()} < {hca.name for hca in theirs.values()}:
                found[host] = tuple(hcas.values()), tuple(theirs.values())
    filters = tuple(given for _, given in settings_of(job, "NCCL_IB_HCA").get("NCCL_IB_HCA", []))
    if not filters:
        return None
    captured = not found
    if captured:
        found = {host: sides for host, hcas in mine.items() if (sides := _beside_capture(job, host, hcas)) is not None}
    if not found:
        return None
    kept, more = next(iter(found.values()))
    return FewerThanOthers(tuple(found), kept, more, filters, captured)


def short_of_captures(job: Job, listed: Mapping[str, Mapping[str, Hca]]) -> list[FewerThanOthers]:
    """Hosts that list fewer NICs than their captures show up, those with the same ones together. None where a setting
    names NICs, or where the job has a part of the GPUs: its container may rightly have a part of the NICs."""
    if settings_of(job, "NCCL_IB_HCA"):
        return []
    made: dict[tuple[str, ...], FewerThanOthers] = {}
    for host, hcas in listed.items():
        sides = _beside_capture(job, host, hcas)
        if sides is not None and ranks_of(job, host) >= len(job.machines[host].gpus) > 0:
            key = tuple(hca.name for side in sides for hca in side)
            known = made.get(key, FewerThanOthers((), *sides, (), captured=True))
            made[key] = replace(known, hosts=(*known.hosts, host))
    return list(made.values())


def ranks_of(job: Job, host: str) -> int:
    """Ranks of a host: those seen, or as many as a node has where only some left a log."""
    world = job.world
    partial = world is not None and len(world.known) < world.nranks
    return ranks_per_node(job) if partial else local_ranks(job).get(host, 0)


def ports_of(hcas: Sequence[Hca]) -> set[str]:
    """The names of the ports, also of those that a virtual NIC joins: `mlx5_0+mlx5_1`."""
    return {name for hca in hcas for name in hca.name.split("+")}


def _beside_capture(job: Job, host: str, hcas: Mapping[str, Hca]) -> tuple[tuple[Hca, ...], tuple[Hca, ...]] | None:
    """What the job lists, and what the capture of the host shows up for the traffic of jobs; None where that is no
    more. Only NICs of the rate and the link layer of those in use: others may be there for storage."""
    machine = job.machines.get(host)
    mine = tuple(hcas.values())
    if machine is None or not mine:
        return None
    up = tuple(
        Hca(number, nic.rdma_name, port.number, speed_mbps=int(port.rate_gbps.value * 1000), origin=port.state.origin)
        for number, nic in enumerate(machine.nics)
        for port in nic.ports[:1]
        if nic.rdma_name and nic.role is NicRole.COMPUTE and port.state.value == "ACTIVE" and port.rate_gbps.value
    )
    names = ports_of(mine)
    speeds = {hca.speed_mbps for hca in mine} - {None} or {hca.speed_mbps for hca in up if hca.name in names}
    alike = tuple(hca for hca in up if hca.speed_mbps in speeds)
    return (mine, alike) if names < {hca.name for hca in alike} else None
