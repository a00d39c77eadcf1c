"""Settings that differ between the ranks of a job, or that some of them lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from topodiag.checks.interface import Advice, JobCheck, hosts_word, processes_word
from topodiag.checks.job.start.missing_ranks import unlike_sizes
from topodiag.checks.shared import nccl_variables
from topodiag.checks.shared.job.logs import local_ranks, prints_settings
from topodiag.checks.shared.job.text import ask_for, came_up, failed
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Job, Process
from topodiag.words.own_data import own_data
from topodiag.words.units import few, grouped, number, plural

_NAMES = own_data("checks/job/settings/differ")
MEANT_TO_DIFFER = frozenset(_NAMES["meant_to_differ"])
MUST_AGREE = frozenset(_NAMES["must_agree"])
READ_BY_ALL = frozenset(_NAMES["read_by_all"])
"""Names by what is expected of them: differ.toml says which."""

NAMES_DEVICES = frozenset({"NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_IB_HCA"})
"""Nodes rightly name different devices, where they call them differently."""

READ_BEFORE_INIT = frozenset({"NCCL_IB_DISABLE", "NCCL_NET"})
"""Read when the network is chosen, by each process that has NCCL's own networks to choose from."""


class SettingsDiffer(JobCheck, id="JOB003"):
    """JOB003: NCCL settings differ between ranks

    What it finds
        Variables that have one value on some ranks and another on others, or that are set on some nodes only, by
        ranks that would all have printed them. An algorithm or protocol that ranks took differently for one operation
        size, whatever made them: a setting, a tuner, or processors of different vendors. Ranks that count
        worlds of different sizes.

    Why it matters
        Ranks that choose algorithm, protocol, channels or buffer sizes by different rules send messages that the
        others do not expect: the first collective fails (`Message truncated`) or hangs without a word.

    Evidence it reads
        `NCCL_X set by environment to V` lines and their like, per process. Lines of any tool that say that a variable
        differs. What NCCL's root says of a rank that counts another world.

    When it stays silent
        Settings that are meant to differ: host id, debug output, files, addresses. Names of interfaces and NICs:
        info. Most variables are printed when and where they are first needed: that some ranks did not print one
        counts where all ranks completed init and printed other settings, and whole nodes have it or lack it; several
        ranks that printed their bootstrap and no setting at all count where the job failed behind its init, one alone
        where a message broke there. Beyond the variables that every rank reads in init, the nodes must be alike in
        version, network, devices and connections, and the job healthy: then info. Settings were not logged: unknown.

    How to confirm
        srun env | grep ^NCCL_ | sort | uniq -c        a count below the number of ranks is a difference
        srun cat /etc/nccl.conf | sort | uniq -c
        srun sh -c 'cat ~/.nccl.conf' | sort | uniq -c

    How to fix
        Export settings once, in the job script (`srun --export`, `mpirun -x`); remove nccl.conf lines of single nodes.

    References
        NCCL src/misc/param.cc (ncclLoadParam, v2.13 and later; src/include/param.h before); NCCL user guide,
        environment variables.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        talking = [number for number, process in enumerate(job.processes) if prints_settings(process)]
        findings = list(unlike_sizes(self, job))
        if findings:
            return self.with_findings(job, findings)
        if len(job.processes) < 2:
            return self.not_applicable(job, "one process in the log")
        reports = []
        for name, by_value in sorted(job.settings().items()):
            if name in MEANT_TO_DIFFER or nccl_variables.is_foreign(name):
                continue
            groups = grouped((value.strip(), number) for value, numbers in by_value.items() for number in numbers)
            having = set(chain(*groups.values()))
            if silent := self._would_have_said(job, name, having):
                groups["not set"] = silent
            if len(groups) > 1:
                reports.append(self._report(job, name, groups))
        reports += choice_findings(self, job)
        coverage = Coverage(len(talking), len(job.processes), "processes with settings")
        silent_job = len(talking) < 2 and "ENV" not in job.subsystems
        unseen = f"settings were not logged: {ask_for(job)} on all ranks" if silent_job else ""
        return self.any_of(job, reports, coverage, unknown=unseen)

    def _would_have_said(self, job: Job, name: str, having: set[int]) -> list[int]:
        """Processes that did not print a setting and would have, were it set: whole nodes that came up."""
        if job.world is None or not having or len(having) == len(job.processes):
            return []
        if name not in READ_BY_ALL | READ_BEFORE_INIT and not _needed_alike(job, having):
            return []
        hosts_having = {job.processes[number].host for number in having}
        complete = _came_far(job)
        numbers = [number for number in range(len(job.processes)) if number not in having]
        lacking = [number for number in numbers if number in complete and _spoke(job, job.processes[number], name)]
        if any(job.processes[number].host in hosts_having for number in numbers) or len(lacking) != len(numbers):
            return []  # a node with both, or a process of which too little is known
        if len(lacking) < 2 and not _is_believed(job, name, lacking):
            return []
        return lacking if having <= complete else []

    def _report(self, job: Job, name: str, groups: Mapping[str, Sequence[int]]) -> Finding:
        ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0] != "not set", item[0]))
        outliers = [number for _, numbers in ordered[1:] for number in numbers]
        hosts = list(dict.fromkeys(job.processes[number].host for number in outliers))
        severity, text = _harm(name)
        known = "not set" not in groups or name in READ_BY_ALL | READ_BEFORE_INIT
        if not known:
            severity = min(severity, Severity.INFO if len(groups) == 2 else Severity.WARNING)
        values = few([value[:40] or "(empty)" for value, _ in ordered], 4)
        firsts = [job.processes[number].settings.get(name) for _, numbers in ordered for number in numbers[:1]]
        return self.finding(
            self.where_of(job, outliers),
            Advice(severity, _confidence(job, known, groups)),
            f"{name} differs between ranks: {values}",
            observed="; ".join(
                f"{value[:60] or '(empty)'} on {processes_word(job, numbers)}" for value, numbers in ordered[:4]
            ),
            expected=f"one value of {name} on all {plural(len(job.processes), 'rank')}",
            fix=(f"set {name} for the whole job, or for no rank: see nccl.conf and shells of {hosts_word(hosts)}",),
            cost=text,
            evidence=[given for given in firsts if given is not None],
            coverage=Coverage(sum(map(len, groups.values())), len(job.processes), "processes"),
            settings=((name, None),),
        )


def _confidence(job: Job, known: bool, groups: Mapping[str, Sequence[int]]) -> Confidence:
    """How sure it is that ranks differ. `told`: a rank that has no line of the setting would have printed it."""
    if "not set" not in groups:
        return Confidence.HIGH
    spoke = all(prints_settings(job.processes[number]) for number in groups["not set"])
    return Confidence.MEDIUM if known and (spoke or _broke_messages(job)) else Confidence.LOW


def _is_believed(job: Job, name: str, lacking: Sequence[int]) -> bool:
    """Whether one process that did not print a setting lacks it: one that prints no setting at all may be told not to,
    unless a message broke there as it does where this setting differs."""
    broke = name in MUST_AGREE and _broke_messages(job)
    return broke or all(prints_settings(job.processes[number]) for number in lacking)


def _broke_messages(job: Job) -> bool:
    """Whether a message came of another size than its rank expected, or from a peer without an address: what ranks do
    to each other whose settings differ."""
    return any(event.level == "WARN" and "broken message" in event.details for event in job.events)


def _harm(name: str) -> tuple[Severity, str]:
    """What a setting that differs does to a job."""
    if name in NAMES_DEVICES:
        return Severity.INFO, "none where nodes call their devices differently"
    if name in MUST_AGREE:
        return Severity.ERROR, "ranks disagree on messages: the first collective fails or hangs"
    return Severity.WARNING, "features and timing differ between ranks, and the slowest sets the pace"


def _came_far(job: Job) -> set[int]:
    """Processes that came so far that they printed what they read. Of a job that hangs or fails in init, those that
    searched: what was printed before is printed all the same."""
    done = came_up(job)
    numbers = {rank.process for rank in job.ranks if rank.rank in done}
    if failed(job):
        numbers |= {number for number, process in enumerate(job.processes) if _searched(job, process)}
    return numbers


def _searched(job: Job, process: Process) -> bool:
    """Whether a process came as far as the graph search, behind which nothing of READ_BY_ALL is read."""
    world = job.world
    return world is not None and (process.host in world.graphs or bool(process.graphs))


def _needed_alike(job: Job, having: set[int]) -> bool:
    """Whether the processes without a setting would have needed it where those with it did: whole nodes with and
    without, alike in version, network, devices and connections, in a job that came through its first operations."""
    if failed(job) or len(having) < 2:
        return False
    connected = {job.connections.hosts[at] for at in set(job.connections.flows.host.tolist()) if at >= 0}
    count, kinds = local_ranks(job), []
    for process in job.processes:
        devices = sorted((hca.link_layer, hca.speed_mbps or 0) for hca in process.hcas)
        host = process.host in connected, count.get(process.host, 0)
        kinds.append((process.network, process.versions, devices, host))
    return all(kind == kinds[0] for kind in kinds)


def _spoke(job: Job, process: Process, name: str) -> bool:
    """Whether a process prints settings of the environment, at the stage at which it would print this one: it printed
    others. Of a job that failed behind its init also where it printed none, but its bootstrap, which NCCL prints
    together with settings unless it is told otherwise (src/debug.cc: INIT, BOOTSTRAP, ENV)."""
    quiet = not prints_settings(process)
    if quiet and not (process.bootstrap and failed(job) and {rank.rank for rank in job.ranks} <= came_up(job)):
        return False
    return name not in READ_BEFORE_INIT or (process.network in ("IB", "Socket") and bool(process.bootstrap))


# For JOB003: ranks that chose another algorithm or protocol for the same operation.


def choice_findings(check: JobCheck, job: Job) -> Iterator[Finding]:
    """One finding of all sizes that ranks treat differently: the first of them stops the job."""
    if not job.choices_apart:
        return
    first = job.choices_apart[0]
    ordered = sorted(first.by_choice.items(), key=lambda item: (-len(item[1]), item[0]))
    numbers = [at for _, processes in ordered[1:] for at in processes]
    words = "; ".join(f"{choice} on {processes_word(job, processes)}" for choice, processes in ordered[:4])
    operation = f"{first.collective or 'an operation'} of {number(first.bytes)} bytes"
    sizes = len(job.choices_apart)
    yield check.finding(
        check.where_of(job, numbers),
        "different choices",
        f"ranks choose differently for {operation}: {few([choice for choice, _ in ordered], 4)}",
        severity=Severity.ERROR if failed(job) else Severity.WARNING,
        observed=words + (f"; and so for {plural(sizes - 1, 'other size')}" if sizes > 1 else ""),
        evidence=first.origins,
        confidence=Confidence.HIGH if job.communicators else Confidence.MEDIUM,
    )
