"""NICs that a job leaves to others: on the same nodes another job of the evidence lists more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topodiag.checks.job.evidence import hcas_by_host, settings_of
from topodiag.model.job import Given, Hca, Job


@dataclass(frozen=True, slots=True)
class FewerThanOthers:
    """`hosts` on which this job lists `kept` where `other` lists `more`; `filters` are the settings of NCCL_IB_HCA that
    leave NICs out, () where none is in the log."""

    hosts: tuple[str, ...]
    kept: tuple[Hca, ...]
    more: tuple[Hca, ...]
    filters: tuple[Given, ...]


def fewer_than_others(job: Job, peers: Sequence[Job]) -> FewerThanOthers | None:
    """None where no other job of these hosts lists more. A host that is down or a NIC that was lost between two jobs
    would show so too: only where a setting of this job names the NICs, or all hosts differ alike, it is the job."""
    mine = hcas_by_host(job)
    found: dict[str, tuple[tuple[Hca, ...], tuple[Hca, ...]]] = {}
    for host, hcas in mine.items():
        for peer in peers:
            theirs = hcas_by_host(peer).get(host, {})
            if {hca.name for hca in hcas.values()} < {hca.name for hca in theirs.values()}:
                found[host] = tuple(hcas.values()), tuple(theirs.values())
    filters = tuple(given for _, given in settings_of(job, "NCCL_IB_HCA").get("NCCL_IB_HCA", []))
    if not found or not filters:
        return None
    kept, more = next(iter(found.values()))
    return FewerThanOthers(tuple(found), kept, more, filters)
