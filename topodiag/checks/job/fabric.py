"""The NVLink fabric of a job's nodes by NCCL's own words: registration, health, and IMEX between trays."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Never

from topodiag.checks.interface import JobCheck, OneStep
from topodiag.checks.job.evidence import ranks_on, said_by
from topodiag.checks.shared.words import hosts_word, quoted
from topodiag.evidence.nvidia.nvidia_words import fabric_bandwidth, fabric_problems
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.words.fold import plural

FABRIC = re.compile(
    r"MNNVL busId 0x([0-9a-f]{1,16}) fabric UUID \S{1,40} cliqueId 0x[0-9a-f]{1,8} state (\d)"
    r" healthMask 0x([0-9a-f]{1,8})"
)
"""fillInfo, src/init.cc v2.20 and later: nvmlGpuFabricInfoV_t."""

IMEX = re.compile(r"MNNVL .{0,60}(?:available but not (?:working|supported)|not supported) on this system")
"""ncclMnnvlCheck, src/init.cc v2.20 to v2.24, src/mnnvl.cc since v2.25: the communicator fails with it."""

COMPLETED = 3
STATES = {1: "not started", 2: "in progress"}
"""nvml.h, NVML_GPU_FABRIC_STATE."""


class FabricInLog(OneStep[Job], JobCheck[Never]):
    """NVL005 by a job's log: what NVML told NCCL of each GPU's fabric, and NVLink between trays that does not work."""

    id = "NVL005"
    title = "the NVLink fabric of a job's nodes is not ready"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        told: dict[str, set[str]] = defaultdict(set)
        faults: dict[tuple[Severity, str], dict[str, list[tuple[str, Origin | None]]]] = {}
        for number, text, where in said_by(job, "mnnvl"):
            match = FABRIC.match(text)
            if match is None or number < 0:
                continue
            host = job.processes[number].host
            told[host].add(match[1])
            for fault in _faults(int(match[2]), int(match[3], 16)):
                faults.setdefault(fault, defaultdict(list))[host].append((match[1], where))
        found = [self._report(job, *fault, by_host) for fault, by_host in faults.items()]
        found += self._imex(job)
        if found:
            return self.found(job, found)
        if not told:
            return self.not_applicable(job, "no line speaks of an NVLink fabric")
        return self.clean(job, "", Coverage(sum(map(len, told.values())), sum(map(len, told.values())), "GPUs"))

    def _report(
        self, job: Job, severity: Severity, words: str, by_host: dict[str, list[tuple[str, Origin | None]]]
    ) -> Finding:
        hosts = list(by_host)
        count = sum(len({bus for bus, _ in told}) for told in by_host.values())
        return self.finding(
            severity,
            f"{hosts_word(hosts)}: {words} on {plural(count, 'GPU')}",
            observed=quoted(next(where.text for told in by_host.values() for _, where in told if where is not None)),
            expected="state 3 (completed), and a health mask without faults",
            fix=(
                "`nvidia-smi -q | grep -A12 Fabric` and Fabric Manager's log on the node, NMX's on a rack",
                "reset the GPUs of the node, or drain it",
            ),
            nodes=hosts,
            ranks=ranks_on(job, hosts),
            cost=Cost(text="NVLink between nodes, and NVLink SHARP, need a healthy fabric"),
            evidence=[where for told in by_host.values() for _, where in told],
            confidence=Confidence.HIGH,
        )

    def _imex(self, job: Job) -> list[Finding]:
        events = [event for event in job.events if event.level == "WARN" and IMEX.search(event.text)]
        if not events:
            return []
        hosts = list(dict.fromkeys(event.host for event in events if event.host))
        return [
            self.finding(
                Severity.ERROR,
                f"{hosts_word(hosts)}: NVLink between nodes is there and does not work: IMEX",
                observed=quoted(events[0].text),
                expected="an IMEX domain of all nodes of the job, and its channels in the container",
                fix=(
                    "`nvidia-imex-ctl -N` on the nodes: all READY? `systemctl status nvidia-imex`",
                    "in containers: /dev/nvidia-caps-imex-channels/channel0, in Kubernetes a ComputeDomain",
                    "NCCL_MNNVL_ENABLE=0 goes on without it, over the NICs",
                ),
                nodes=hosts,
                ranks=sorted({event.rank for event in events if event.rank >= 0}),
                cost=Cost(text="the communicator fails; without it, traffic between trays goes over the NICs"),
                evidence=[event.origin for event in events],
            )
        ]


def _faults(state: int, mask: int) -> list[tuple[Severity, str]]:
    made = []
    if state in STATES:
        made.append((Severity.WARNING, f"fabric registration is {STATES[state]}"))
    if fabric_bandwidth(mask) == "degraded":
        made.append((Severity.WARNING, "the fabric's bandwidth is degraded"))
    for problem in filter(None, (fabric_problems(mask) or "").split(", ")):
        passing = "recovery" in problem
        made.append((Severity.INFO if passing else Severity.WARNING, f"the fabric's health: {problem}"))
    return made
