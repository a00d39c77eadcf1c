"""NICs of a job's nodes, by its log: ports that fell, and fewer NICs than the others have."""

from __future__ import annotations

import math
from collections.abc import Sequence

from topodiag.checks.interface import JobCheck, hosts_word
from topodiag.checks.shared.job import logs
from topodiag.checks.shared.job.nic_uses import FewerThanOthers, cost_of_fewer, port_names, short_of_captures
from topodiag.checks.shared.job.text import ask_for
from topodiag.model.finding import Cost, Coverage, Finding, Outcome
from topodiag.model.job import Hca, Job
from topodiag.model.provenance import Origin
from topodiag.words.units import fold_runs, grouped, in_gbps, in_gbs, percent, plural


class PortFellInLog(JobCheck, id="NIC002"):
    """NIC002 by a job's log: NCCL saw the rate of a port change, and it did not come back."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        lines = [line for line in logs.named_by(judged, "nic", "port speed") if line.process >= 0]
        rates = grouped(((line.host, line.details["nic"]), line) for line in lines)
        if not rates:
            return self.not_applicable(judged, "no line of NCCL 2.30 or later speaks of a change of rate")
        findings = (self._fell(host, nic, changes) for (host, nic), changes in rates.items())
        return self.any_of(judged, findings, clean="the rates that changed are not below what they were")

    def _fell(self, host: str, nic: str, changes: Sequence[logs.Line]) -> Finding | None:
        """A port below its first rate at the end of the log."""
        before, after = int(changes[0].details["before_mbps"]), int(changes[-1].details["after_mbps"])
        if after >= before:
            return None
        lost, was, now = 1 - after / before, in_gbps(before / 1000), in_gbps(after / 1000)
        return self.finding(
            self.where([host] if host else [], nics=[nic]),
            self.advice("rate fell", nic=nic, was=was),
            f"{host or 'a node'}: {nic} fell from {was} to {now} while the job ran",
            cost=Cost(share=lost, text=f"traffic over this NIC has {percent(lost)} less bandwidth"),
            evidence=changes,
        )


ANOTHER = "another node"
"""What a node is called whose name was taken off the log, beside one that has its name."""


class FewerNicsThanSiblings(JobCheck, id="NIC005"):
    """NIC005 by a job's log: a node lists fewer RDMA devices than the other nodes of the job, or than its capture."""

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        # Lines about single devices (GPUDirect RDMA off for HCA 0) are no list: they name a link layer for none.
        # A device that a node has and may not open is no missing one: NET007 tells it.
        left_out = {event.host for event, _ in logs.unopened(job)} | (cut := logs.with_cut_lists(job))
        listed = {
            host: hcas
            for host, hcas in logs.hcas_by_host(job).items()
            if host not in left_out and (not hcas or any(hca.link_layer for hca in hcas.values()))
        }
        short = [self._short(job, shorter) for shorter in short_of_captures(job, listed)]
        if short and len(listed) < 2:
            return self.with_findings(job, short)
        if len(job.hosts) < 2:
            return self.not_applicable(job, "one node: nothing to compare with")
        if not any(listed.values()) and len(counts := nics_of_plugin(job)) > 1:
            return self._by_plugin(job, counts)
        if len(listed) < 2:
            whole = ", to the end of the line" if cut else ""
            return self.unknown(job, f"fewer than two nodes list their RDMA devices{whole}; {ask_for(job)}")
        if not any(listed.values()):
            return self.unknown(job, "NCCL found no RDMA device on any node, so a missing one does not show")
        coverage = Coverage(len(listed), len(job.hosts), "nodes")
        return self.any_of(job, self._unlike_others(job, listed) or short, coverage)

    def _unlike_others(self, job: Job, listed: dict[str, dict[str, Hca]]) -> list[Finding]:
        """Nodes that list fewer devices than most."""
        usual = logs.most(len(hcas) for hcas in listed.values())
        groups = grouped((len(hcas), host) for host, hcas in listed.items() if len(hcas) < usual)
        return [self._report(job, *item, usual, listed) for item in groups.items()]

    def _short(self, job: Job, shorter: FewerThanOthers) -> Finding:
        """Against the captures of machines: both sources are named, and which of them is of another time is open."""
        hosts, up = list(shorter.hosts), len(shorter.more)
        names = port_names(shorter.kept)
        lacking = [hca for hca in shorter.more if hca.name not in names]
        lost = math.fsum(hca.speed_mbps or 0 for hca in lacking) / 8000
        text = f"{in_gbs(lost)} of each node"
        return self.finding(
            self.where(hosts, ranks=logs.ranks_on(job, hosts), nics=[hca.name for hca in lacking]),
            self.advice("short of capture", up=up),
            f"{hosts_word(hosts)}: NCCL lists {plural(up - len(lacking), 'RDMA device')},"
            f" and the capture of the machine shows {up} up",
            observed=f"not in NCCL's list: {fold_runs([hca.name for hca in lacking])}",
            cost=Cost(lost, len(lacking) / up, text)
            if logs.multi_node(job)
            else Cost(text=f"{text}, for jobs on several"),
            evidence=(*shorter.kept[:1], *lacking[:3]),
            coverage=Coverage(len(hosts), len(job.machines), "nodes with a capture"),
        )

    def _by_plugin(self, job: Job, counts: dict[str, tuple[int, Origin | None]]) -> Outcome:
        """By the plugin's own count, where it lists no devices by name."""
        coverage = Coverage(len(counts), len(job.hosts), "nodes")
        usual = logs.most(count for count, _ in counts.values())
        groups = grouped((count, host) for host, (count, _) in counts.items() if count < usual)
        model = next((host for host, (count, _) in counts.items() if count == usual), "")
        alike = sum(count == usual for count, _ in counts.values())
        findings = [
            self.finding(
                self.where(hosts, ranks=logs.ranks_on(job, hosts)),
                self.advice("fewer by the plugin", usual=usual, others=plural(alike, "other node")),
                f"{hosts_word(hosts)}: the network plugin finds {plural(count, 'NIC')}, where {model or ANOTHER}"
                f" has {usual}",
                observed=f"found {count} nics",
                cost=Cost(share=1 - count / usual, text="of the node's network bandwidth; the other nodes wait for it"),
                evidence=[counts[host][1] for host in (*hosts[:3], model)],
                coverage=Coverage(len(hosts), len(counts), "nodes"),
            )
            for count, hosts in groups.items()
        ]
        return self.any_of(job, findings, coverage)

    def _report(self, job: Job, count: int, hosts: list[str], usual: int, listed: dict[str, dict[str, Hca]]) -> Finding:
        model = next(host for host, hcas in listed.items() if len(hcas) == usual)
        mine = {hca.name for hca in listed[hosts[0]].values()}
        lacking = [hca for hca in listed[model].values() if hca.name not in mine]
        differs = len({given.value for _, given in logs.settings_of(job, "NCCL_IB_HCA").get("NCCL_IB_HCA", [])}) > 1
        return self.finding(
            self.where(hosts, ranks=logs.ranks_on(job, hosts), nics=[hca.name for hca in lacking]),
            "job count",
            f"{hosts_word(hosts)}: {plural(count, 'RDMA device')}, where {model or ANOTHER} has {usual}"
            + (" (NCCL_IB_HCA differs between nodes)" if differs else ""),
            observed=f"{count} listed; not there: {fold_runs([hca.name for hca in lacking]) if lacking else 'unnamed'}",
            expected=f"{usual}, as on {plural(sum(len(h) == usual for h in listed.values()), 'other node')}",
            cost=cost_of_fewer(count, usual, listed[model].values()),
            evidence=(*list(listed[hosts[0]].values())[:3], *lacking[:3]),
            coverage=Coverage(len(hosts), len(listed), "nodes"),
        )


def nics_of_plugin(job: Job) -> dict[str, tuple[int, Origin | None]]:
    """NICs that the plugin counts, by host, with the line; of several processes the one that sees most."""
    nics: dict[str, tuple[int, Origin | None]] = {}
    for line in logs.named_by(job, "nics", "ofi"):
        count = int(line.details["nics"])
        if line.process >= 0 and (line.host not in nics or nics[line.host][0] < count):
            nics[line.host] = (count, line.origin)
    return nics
