"""Settings of the host that RCCL warns of, and shared memory that is removed under a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.first_error import first_error
from topodiag.checks.shared.job.text import failed
from topodiag.checks.words import hosts_in, hosts_word, quoted
from topodiag.lazy import regex
from topodiag.model.finding import Finding, Outcome
from topodiag.model.job import Event, Job

BALANCED = regex(r"NUMA auto balancing enabled")
"""RCCL src/init.cc, ROCm 5.4 and later: it reads /proc/sys/kernel/numa_balancing at init."""


class HostSettingWarned(JobCheck[tuple[Event, ...]]):
    """HST003 by a job's log: RCCL warns of automatic NUMA balancing on its node, or NCCL's shared memory is removed
    under a job that fails of it."""

    id = "HST003"

    def observe(self, judged: Job, peers: Sequence[Job]) -> tuple[Event, ...] | Outcome:
        events = removed(judged) or [event for event in judged.events if BALANCED.search(event.text)]
        if not events:
            return self.not_applicable(judged, "no line speaks of NUMA balancing: `topodiag scan` of the node does")
        return tuple(events)

    def tell(self, judged: Job, observed: tuple[Event, ...]) -> Iterator[Finding]:
        hosts = hosts_in(observed)
        if BALANCED.search(observed[0].text) is None:
            yield self._removed(observed)
            return
        yield self.finding(
            self.where(hosts),
            "job settings",
            f"automatic NUMA balancing is on{f' on {hosts_word(hosts)}' if hosts else ''}",
            observed=quoted(observed[0].text),
            evidence=[event.origin for event in observed],
        )

    def _removed(self, observed: tuple[Event, ...]) -> Finding:
        hosts = hosts_in(observed)
        return self.finding(
            self.where(hosts),
            "shared memory removed",
            f"{hosts_word(hosts) or 'a node'}: a file of NCCL's shared memory was removed while the job began",
            observed=quoted(observed[0].text),
            evidence=[event.origin for event in observed],
        )


def removed(job: Job) -> list[Event]:
    """Lines of a failed job whose first error is a file of shared memory that is gone. A job that goes down for another
    reason may clear up twice."""
    events = [event for event in job.events if event.details.get("fault") == "removed"]
    first = first_error(job) if events and failed(job) else None
    return events if first is not None and first.details.get("fault") == "removed" else []
