"""The rate of a port that NCCL saw change while it went on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.evidence import said_by
from topodiag.checks.words import quoted
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Cost, Finding, Outcome
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.words.units import in_gbps, percent

_SPEED = regex(r"NET/IB ?: ([\w.\-]{1,40}):(\d{1,3}) speed change detected: (\d{1,9}) -> (\d{1,9}) Mbps")


@dataclass(frozen=True, slots=True)
class Fallen:
    """A port below its first rate at the end of the log: Mb/s before and last, and the lines."""

    host: str
    nic: str
    before: int
    after: int
    origins: tuple[Origin | None, ...]


class PortFellInLog(JobCheck[tuple[Fallen, ...]]):
    """NIC002 by a job's log: NCCL saw the rate of a port change, and it did not come back."""

    id = "NIC002"

    def observe(self, judged: Job, peers: Sequence[Job]) -> tuple[Fallen, ...] | Outcome:
        rates: dict[tuple[str, str], list[tuple[int, int, Origin | None]]] = defaultdict(list)
        for number, text, where in said_by(judged, "port speed"):
            match = _SPEED.search(text)
            if match is not None and number >= 0:
                change = (int(match[3]), int(match[4]), where)
                rates[judged.processes[number].host, match[1]].append(change)
        if not rates:
            return self.not_applicable(judged, "no line of NCCL 2.30 or later speaks of a change of rate")
        fell = [
            Fallen(host, nic, changes[0][0], changes[-1][1], tuple(where for _, _, where in changes))
            for (host, nic), changes in rates.items()
            if changes[-1][1] < changes[0][0]
        ]
        return tuple(fell) or self.clean(judged, "the rates that changed are not below what they were")

    def tell(self, judged: Job, observed: tuple[Fallen, ...]) -> Iterator[Finding]:
        for port in observed:
            lost = 1 - port.after / port.before
            yield self.finding(
                self.where([port.host] if port.host else [], nics=[port.nic]),
                self.advice("rate fell", nic=port.nic),
                f"{port.host or 'a node'}: {port.nic} fell from {in_gbps(port.before / 1000)} to"
                f" {in_gbps(port.after / 1000)} while the job ran",
                observed=quoted(next((where.text for where in port.origins if where is not None), "")),
                expected=f"{in_gbps(port.before / 1000)}, as when the job started",
                cost=Cost(share=lost, text=f"traffic over this NIC has {percent(lost)} less bandwidth"),
                evidence=port.origins,
            )
