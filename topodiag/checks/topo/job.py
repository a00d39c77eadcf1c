"""The topology by a job's log: a file that NCCL refused; in its print of a machine guesswork, missing NVLinks, a device
that is there twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word
from topodiag.checks.shared.job import logs
from topodiag.checks.shared.job.logs import SystemPrint, nvlink_gbs, prints, ranks_and_labels, ranks_on, said_by
from topodiag.checks.shared.job.text import ask_for
from topodiag.model.finding import Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.model.nccl_view import GPU_LINKS, XGMI_LINK, NcclSystem
from topodiag.words.units import fold_runs, grouped, in_gbs, plural

DOUBTS = ("could not read", "could not find real path", "unable to", "no cpu affinity")
"""Notes after which NCCL fills a part of its topology with a guess (src/graph/xml.cc, topo.cc)."""

NO_DEVICE = "/sys/class/net/"
"""Interfaces without a device of their own (lo, bridges, bonds), after which NCCL 2.3 and 2.4 asked for paths too."""

SHORT_OF = 0.97
"""A GPU below this part of its peers' NVLink bandwidth has fewer links; the print has one decimal."""

UNKNOWN_NUMA = ("ffffffffffffffff", "ffffffff", "-1")


class GuessedTopology(JobCheck, id="TOP003"):
    """TOP003 by a job's log: NCCL's own notes that it guesses, and a print without PCI switches or NUMA nodes."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        notes = _notes(judged)
        seen = list(prints(judged))
        flat = tuple((system_print.host, system_print.system) for system_print in seen if _is_flat(system_print.system))
        if not seen and not notes:
            return self.unknown(judged, f"no line says how NCCL saw the machine; {ask_for(judged)}")
        with_tree = any(system_print.system.of_kind("PCI") for system_print in seen)
        if not flat and (with_tree or not notes):
            return self.clean(judged, "", Coverage(len(seen), len(judged.hosts), "nodes"))
        if not flat:
            return self.any_of(judged, [self._unread(notes)])
        hosts = [host for host, _ in flat]
        finding = self.finding(
            self.where(hosts),
            "guessed in the log",
            f"NCCL guesses the PCI tree of {hosts_word(hosts)}: no PCI switch and no NUMA node is known",
            observed="GPUs and NICs directly below a CPU of NUMA node -1"
            + (f"; {plural(len(notes), 'note')}: {notes[0].text}" if notes else ""),
            evidence=[*(system for _, system in flat), *notes],
            coverage=Coverage(len(hosts), len(seen), "printed nodes"),
        )
        return self.any_of(judged, [finding])

    def _unread(self, notes: Sequence[Event]) -> Finding:
        """By the notes, where no print shows a PCI tree that came of it."""
        return self.of_events(
            notes,
            "unread link",
            f"NCCL could not read a part of the PCI tree of {hosts_word(hosts_in(notes)) or 'a node'}, and guesses it",
            self.where(hosts_in(notes)),
            observed=f"{plural(len(notes), 'note')}: {notes[0].text}",
        )


def _notes(job: Job) -> list[Event]:
    """NCCL's notes that it could not read a part of the tree."""
    return [
        note
        for note in (*said_by(job, "topo note"), *job.events)
        if note.text.lower().startswith(("topology detection", "could not find real path"))
        and any(words in note.text.lower() for words in DOUBTS)
        and NO_DEVICE not in note.text
    ]


def _is_flat(system: NcclSystem) -> bool:
    """Whether nothing orders the devices: no PCI switch, several GPUs, and only CPUs of an unknown NUMA node."""
    cpus = system.of_kind("CPU")
    return (
        len(system.of_kind("GPU")) > 1
        and not system.of_kind("PCI")
        and bool(cpus)
        and all(cpu.id.rpartition("-")[2] in UNKNOWN_NUMA or cpu.id.endswith("--1") for cpu in cpus)
    )


FEWEST_JOINED = 4
"""GPUs with a link to each of the others, from which on a pair without one is no design of the board."""


def _pairs_without_link(system: NcclSystem) -> tuple[list[tuple[str, str]], int]:
    """The pairs of AMD's GPUs without a link where others have all of theirs, and how many have; ([], 0) else."""
    gpus = [gpu.name for gpu in system.of_kind("GPU")]
    joined = {frozenset((link.a, link.b)) for link in system.links if link.kind == XGMI_LINK}
    pairs = [pair for pair in combinations(gpus, 2) if frozenset(pair) not in joined]
    among = len(set(gpus).difference(*pairs))
    known = system.whole and among >= FEWEST_JOINED and 2 * among >= len(gpus)
    return (pairs, among) if known else ([], 0)


class GpuShortOfNvlinks(JobCheck, id="TOP004"):
    """TOP004: a GPU lacks NVLinks that its peers have, in NCCL's print

    What it finds
        On a node with NVSwitches, a GPU with less NVLink bandwidth than the other GPUs in `=== System ===`. A pair of
        AMD's GPUs without an xGMI link, where at least half of the GPUs have one to each of the others.

    Why it matters
        A ring is as fast as its slowest GPU, and NCCL says nothing: it searches with what is there. With 12 of 18
        NVLinks on one of eight H100, NCCL takes 8 channels of 30 GB/s where it takes 12: 240 GB/s instead of 360. With
        none at all, everything goes over PCIe.

    Evidence it reads
        The lines `+ NVL[370.8] - NVS/0-0` of the system print (NCCL_DEBUG_SUBSYS=GRAPH).

    When it stays silent
        No NVSwitch in the print: in the meshes of DGX-1 and of bridged cards GPUs differ by design. One GPU only. A GPU
        without any NVLink in a print that is cut. No system print: unknown.

    How to confirm
        nvidia-smi nvlink -s -i GPU                       links that are inactive
        dmesg | grep -E 'Xid.*(74|149)|NVLink'            why

    How to fix
        Reset the node (nvidia-smi -r of all GPUs, fabric manager restarted); if the links stay down, drain it and have
        the GPU or its baseboard looked at.

    References
        NCCL src/graph/topo.cc (ncclTopoPrintRec) and src/graph/search.cc (ncclTopoCompute) v2.30.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        seen = list(prints(job))
        if not seen:
            return self.unknown(job, f"no `=== System ===` in the log; {ask_for(job)}")
        coverage = Coverage(len(seen), len(job.hosts), "nodes printed")
        for look in (self._one_sided, self._pair_apart, self._short):
            if findings := [finding for system_print in seen if (finding := look(job, system_print))]:
                return self.with_findings(job, findings, coverage)
        if not any(system_print.system.of_kind("NVS") for system_print in seen):
            return self.not_applicable(job, "no NVSwitch: GPUs of a mesh differ by design")
        return self.clean(job, "", coverage)

    def _one_sided(self, job: Job, printed: SystemPrint) -> Finding | None:
        """NVLinks between two GPUs that the print gives one direction of more than the other."""
        host, system = printed.host, printed.system
        gpus = {gpu.name for gpu in system.of_kind("GPU")}
        one_sided: dict[tuple[str, str], float] = defaultdict(float)
        for link in system.links:
            if link.kind in GPU_LINKS and link.a in gpus and link.b in gpus:
                one_sided[link.a, link.b] += link.gbs
        uneven = {(a, b): gbs for (a, b), gbs in one_sided.items() if one_sided.get((b, a), 0.0) < SHORT_OF * gbs}
        if not uneven:
            return None
        (a, b), more = max(uneven.items(), key=lambda pair: pair[1] - one_sided.get(pair[0][::-1], 0.0))
        less = one_sided.get((b, a), 0.0)
        ranks, labels = ranks_and_labels(job, printed, (a, b))
        return self.finding(
            self.where([host] if host else [], ranks=ranks, gpus=labels),
            "one-sided link",
            f"{labels[0]} and {labels[1]} of {host or 'a node'}: {in_gbs(more)} of NVLink one way, {in_gbs(less)} back",
            # A row of the print may be lost, a figure is not.
            severity=Severity.ERROR if less else Severity.WARNING,
            observed=f"{a} to {b} NVL[{more:.1f}], {b} to {a} {f'NVL[{less:.1f}]' if less else 'none'}"
            + (f"; {plural(len(uneven) - 1, 'more pair')}" if len(uneven) > 1 else ""),
            cost=Cost(more - less, 1 - less / more, "what goes back has the bandwidth of the lesser direction"),
            evidence=[system],
        )

    def _pair_apart(self, job: Job, printed: SystemPrint) -> Finding | None:
        """Pairs of AMD's GPUs without a link, where at least half of the GPUs have one to each of the others."""
        host, system = printed.host, printed.system
        pairs, among = _pairs_without_link(system)
        if not pairs:
            return None
        (a, b), more = pairs[0], len(pairs) - 1
        ranks, labels = ranks_and_labels(job, printed, (a, b))
        return self.finding(
            self.where([host] if host else [], ranks=ranks, gpus=labels),
            "pair apart",
            f"{labels[0]} and {labels[1]} of {host or 'a node'} have no NVLink"
            + (f", nor have {plural(more, 'more pair')}" if more else ""),
            observed=f"no XGMI between {a} and {b}; {among} GPUs have a link to each of the others",
            evidence=[system],
        )

    def _short(self, job: Job, printed: SystemPrint) -> Finding | None:
        host, system = printed.host, printed.system
        # Where the print is cut, the rows of the GPU at the cut may stand in another part of the log.
        totals = {name: gbs for name, gbs in nvlink_gbs(system).items() if gbs or system.whole}
        best = max(totals.values(), default=0.0)
        short = {name: gbs for name, gbs in totals.items() if gbs < SHORT_OF * best}
        if not short or best <= 0 or len(totals) - len(short) < 2 or not system.of_kind("NVS"):
            return None
        ranks, labels = ranks_and_labels(job, printed, short)
        lowest = min(short.values())
        graphs = [graph for graph in printed.graphs if graph.pattern == 4]
        rings = f"; NCCL found rings of {graphs[0].channels} x {in_gbs(graphs[0].bw_intra)}" if graphs else ""
        verb = "has" if len(labels) == 1 else "have"
        return self.finding(
            self.where((host,), ranks=ranks, gpus=labels),
            self.advice("short of nvlinks", best=in_gbs(best), others=plural(len(totals) - len(short), "other GPU")),
            f"{fold_runs(labels)} of {host} {verb} {in_gbs(lowest)} of NVLink where the peers have {in_gbs(best)}",
            observed=", ".join(f"{name} {in_gbs(gbs)}" for name, gbs in short.items()) + rings,
            cost=Cost(best - lowest, 1 - lowest / best, f"every ring of the node passes this GPU: {in_gbs(lowest)}"),
            evidence=[system, *graphs[:1]],
        )


class DeviceTwice(JobCheck, id="TOP005"):
    """TOP005: the same device is in NCCL's topology twice

    What it finds
        A node that NCCL merged from the views of several containers and that holds a device more than once: GPUs of
        one host under two systems, or two network devices with one GUID and port.

    Why it matters
        Containers of one node that see different PCI paths or different host ids look like several machines. NCCL then
        counts NICs twice, sees no NVLink between GPUs that have it, and splits the node.

    Evidence it reads
        The system print (NCCL_DEBUG_SUBSYS=GRAPH) beside the hosts of the ranks.

    When it stays silent
        Systems of different hosts in one NVLink domain (GB200): they are different machines. No system print: unknown.

    How to confirm
        Run these in each container, and compare:
        hostname
        cat /proc/sys/kernel/random/boot_id
        ls /sys/bus/pci/devices

    How to fix
        Start the containers of a node alike: the same /sys, one NCCL_HOSTID (or none), one PCI tree.

    References
        NCCL src/graph/xml.cc (ncclTopoFuseXml), src/graph/topo.cc v2.23 and later.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        seen = list(prints(job))
        if not seen:
            return self.unknown(job, f"no `=== System ===` in the log; {ask_for(job)}")
        coverage = Coverage(len(seen), len(job.hosts), "nodes printed")
        return self.any_of(job, (self._look(job, system_print) for system_print in seen), coverage)

    def _look(self, job: Job, printed: SystemPrint) -> Finding | None:
        host, system = printed.host, printed.system
        twice = _gpus_twice(job, printed)
        ports = grouped(  # within one system: what two machines of a domain print is theirs
            ((net.id.partition("-")[0], net.guid.lower(), net.port), net.name)
            for net in system.of_kind("NET")
            if net.guid.strip("0x")
        )
        twice += [f"{' and '.join(names)} (GUID {guid}, port {port})"
                  for (_, guid, port), names in ports.items() if len(names) > 1]  # fmt: skip
        if not twice:
            return None
        return self.finding(
            self.where((host,), ranks=ranks_on(job, [host])[:64]),
            "device twice",
            f"NCCL's topology of {host} holds {plural(len(twice), 'device')} twice: {twice[0]}",
            observed="; ".join(twice[:4]),
            evidence=[system],
        )


def _gpus_twice(job: Job, printed: SystemPrint) -> list[str]:
    """GPUs that stand under one bus id in two systems whose ranks ran on one host."""
    by_rank = job.by_rank
    gpus = ((gpu, by_rank.get(printed.world_rank(gpu))) for gpu in printed.system.of_kind("GPU"))
    places = grouped(((rank.host, gpu.id.rpartition("-")[2]), gpu.name) for gpu, rank in gpus if rank is not None)
    return [" and ".join(names) for names in places.values() if len(names) > 1]


REFUSED = ("topology has wrong version", "xml parse", "xml topology", "xml : ", "xml: ", "could not parse xml",
           "too many xml", " of node ")  # fmt: skip
"""Words of NCCL's complaints about a topology file (src/graph/xml.cc, topo.cc)."""


class TopologyFileRefused(JobCheck, id="TOP001"):
    """TOP001: NCCL refuses the topology file that it was given

    What it finds
        An NCCL_TOPO_FILE that NCCL read and did not accept: another version than 1, a tag or attribute that it does
        not know, text that is not XML as NCCL reads it. As a warning, an NCCL_TOPO_FILE that is not there: NCCL goes on
        with what it sees itself, which in a virtual machine is not how the GPUs and NICs are connected.

    Why it matters
        The first communicator fails with an internal error or `invalid usage`, on every rank of the node: the job does
        not start. The line is a warning far above the last line of the log.

    Evidence it reads
        Warnings of graph/xml.cc and graph/topo.cc in the log, and the file that `Loading topology file` or
        NCCL_TOPO_FILE names.

    When it stays silent
        No such warning. A file that does not exist and that no setting names: NCCL looks for one of its own.

    How to confirm
        head -3 "$NCCL_TOPO_FILE"                         `<system version="1">` comes first
        xmllint --noout "$NCCL_TOPO_FILE"                 NCCL takes less than XML: no comments inside tags, no entities

    How to fix
        Write the file again with NCCL_TOPO_DUMP_FILE on a healthy node of the same machine type, or unset
        NCCL_TOPO_FILE and delete /var/run/nvidia-topologyd/virtualTopology.xml, the file that is read without it.

    References
        NCCL src/graph/xml.cc (ncclTopoGetXmlFromFile), src/graph/xml.h (NCCL_TOPO_XML_VERSION).
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        refused = tuple(filter(_refuses, judged.events))
        if not refused:
            return self.any_of(judged, self._not_there(judged, list(_missing(judged))))
        lines = logs.said_by(judged, "topo file")
        files = [line.text.rpartition("file ")[2] for line in lines if "Loading topology" in line.text]
        given = [process.settings.get("NCCL_TOPO_FILE") for process in judged.processes]
        files += [setting.value for setting in given if setting is not None]
        words = refused[0].text.strip()
        processes = {(event.host, event.pid) for event in refused}
        finding = self.of_events(
            refused,
            "refused in the log",
            f"NCCL refuses {files[0] if files else 'the topology file'}: {words}",
            coverage=Coverage(len(processes), len(judged.processes), "processes"),
        )
        return self.any_of(judged, [finding])

    def _not_there(self, job: Job, missing: Sequence[tuple[logs.Line, str]]) -> Iterator[Finding]:
        for _, name in missing[:1]:
            yield self.of_events(
                [line for line, _ in missing],
                "file not there",
                f"NCCL_TOPO_FILE={name} is not there: NCCL goes on with the topology that it sees itself",
                observed=f"Could not open XML topology file {name}",
                coverage=Coverage(len(missing), len(job.processes), "processes"),
            )


def _missing(judged: Job) -> Iterator[tuple[logs.Line, str]]:
    """Line and path of each process whose NCCL_TOPO_FILE could not be opened."""
    for line in logs.said_by(judged, "topo file"):
        given = judged.processes[line.process].settings.get("NCCL_TOPO_FILE") if line.process >= 0 else None
        if given is not None and line.text.startswith("Could not open") and given.value in line.text:
            yield line, given.value


def _refuses(event: Event) -> bool:
    """Whether a line is NCCL's own refusal of a topology file that is there."""
    of_topology = event.kind == "topology" or "graph/xml" in event.place
    text = event.text.lower()
    return not event.secondary and of_topology and any(words in text for words in REFUSED) and "not open" not in text
