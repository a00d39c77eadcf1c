"""NICs that a job leaves out: on the same nodes another job lists more, or the capture of the node shows more up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topodiag.checks.job.evidence import hcas_by_host, settings_of
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
    names, speeds = {hca.name for hca in mine}, {hca.speed_mbps for hca in mine}
    alike = tuple(hca for hca in up if hca.speed_mbps in speeds)
    return (mine, alike) if names < {hca.name for hca in alike} else None
