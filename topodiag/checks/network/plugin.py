"""A network plugin that did not load."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import JobCheck, hosts_word
from topodiag.checks.shared.job.logs import one_node, settings_of
from topodiag.checks.shared.job.text import ask_for, outlived
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, Job, Message, Process

BROKEN, NO_PROVIDER, BY_NAME = "plugin broken", "no provider", "plugin by name"
NO_SHARP, SLINGSHOT = "no sharp", "slingshot"
"""Facts of lines (evidence/nccl_log/grammar/facts.toml)."""

BUILT_IN = ("", "none", "ib", "socket", "0")
"""Values of NCCL_NET_PLUGIN and NCCL_NET that ask for no library."""


Said = tuple[int, Message | Event]
"""Index of a process, -1 where that is unknown, and a line of its."""


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """What happened to a plugin, the lines that say it, by process, and the processes that go on without it: none is
    known where the job ended with it."""

    what: str
    lines: tuple[Said, ...]
    without: tuple[int, ...]


class PluginNotLoaded(JobCheck, id="NET005", unless=one_node):
    """NET005: the network plugin did not load, and NCCL went on without it

    What it finds
        A network plugin that a setting asks for, or that is installed and cannot be loaded, while NCCL uses its
        internal IB or sockets. Sockets over interfaces of Slingshot, which only the OFI plugin drives.

    Why it matters
        On fabrics that need their plugin (EFA, and some clouds' RDMA) NCCL then falls back to sockets: 1 to 3 GB/s
        instead of 50 to 400 GB/s for a node.

    Evidence it reads
        `NET/Plugin: Could not find: ..`, `Plugin load returned ..`, NCCL_NET_PLUGIN, NCCL_NET, `Using network`.

    When it stays silent
        SHARP that does not come up is a remark where the job's work begins below.
        `Could not find: libnccl-net.so` with no plugin asked for: the usual line of every site that uses NCCL's own IB.
        Another version of the plugin's interface was found. One node. No line says which network NCCL goes on with:
        unknown.

    How to confirm
        ldd PATH/libnccl-net.so | grep 'not found'
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET        then run the job: NCCL prints why the plugin failed

    How to fix
        Put the plugin and its libraries (libfabric, ..) on LD_LIBRARY_PATH inside the container, in a build for this
        CUDA and libc; or unset NCCL_NET_PLUGIN where the site uses NCCL's own IB.

    References
        NCCL src/plugin/net.cc, src/plugin/plugin_open.cc v2.30; aws-ofi-nccl issue 67.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        missing: list[Said] = [*judged.messages.get("net plugin missing", ())]
        missing += [entry for entry in judged.messages.get("net plugin", ()) if BROKEN in entry[1].details]
        warned = (e for e in judged.events if e.kind == "plugin" or (e.level == "APP" and BY_NAME in e.details))
        missing += [(-1, event) for event in warned]
        named = sum(bool(process.network) for process in judged.processes)
        sharp = _no_sharp(judged)
        if not named and not missing and not sharp:
            return self.unknown(judged, f"no line speaks of plugins; {ask_for(judged)}")
        failure = _failure(judged, missing) or _on_slingshot(judged)
        if failure is None:
            finding = self._sharp(judged, sharp) if sharp else None
        else:
            finding = self._report(judged, failure) if failure.without else self._ended(failure)
        unseen = "" if named else f"no line says which network NCCL goes on with; {ask_for(judged)}"
        return self.any_of(judged, [finding], Coverage(named, len(judged.processes), "processes"), unknown=unseen)

    def _ended(self, observed: PluginFailure) -> Finding:
        return self.finding(
            self.where(),
            "ended without plugin",
            f"{observed.what}, and the job ends with it",
            fix=self.steps("efa devices" if NO_PROVIDER in observed.lines[0][1].details else "ldd", "fitting build"),
            evidence=[line for _, line in observed.lines],
        )

    def _sharp(self, job: Job, lines: Sequence[Said]) -> Finding:
        """SHARP (CollNet) that does not come up: the network goes on without reductions in its switches."""
        hosts = list(dict.fromkeys(job.processes[n].host for n, _ in lines if n >= 0))
        asked = settings_of(job, "NCCL_COLLNET_ENABLE").get("NCCL_COLLNET_ENABLE", [])
        works = outlived(job, (line.origin for _, line in lines))
        return self.finding(
            self.where(hosts),
            "no sharp",
            f"{hosts_word(hosts) or 'the job'}: SHARP does not come up; NCCL goes on without its reductions",
            severity=Severity.INFO if works else Severity.WARNING,
            evidence=[*(line for _, line in lines), *(given for _, given in asked[:1])],
        )

    def _report(self, job: Job, failure: PluginFailure) -> Finding:
        numbers, first = failure.without, failure.lines[0][1]
        networks = sorted({job.processes[number].network or "its own networks" for number in numbers})
        sockets = any(network.lower() == "socket" for network in networks)
        return self.finding(
            self.where_of(job, numbers),
            "sockets without the plugin" if sockets else "plugin not loaded",
            f"{failure.what}; it goes on with {'/'.join(networks)}",
            severity=Severity.ERROR if sockets else Severity.WARNING,
            fix=self.steps("slingshot")
            if SLINGSHOT in first.details
            else self.steps("efa devices" if _started(first) else "ldd", "own ib"),
            evidence=[line for _, line in failure.lines],
            coverage=Coverage(len(numbers), len(job.processes), "processes"),
            # What NCCL took instead stands below the line, which may be all that there is of the log.
            confidence=Confidence.HIGH if any(map(_goes_without, job.processes)) else Confidence.MEDIUM,
        )


def _failure(job: Job, missing: Sequence[Said]) -> PluginFailure | None:
    """A plugin that was asked for and not found, else one that is there and of no use; None where all is as meant."""
    named = settings_of(job, "NCCL_NET_PLUGIN").get("NCCL_NET_PLUGIN", [])
    wanted = {number: given for number, given in named if given.value.strip().lower() not in BUILT_IN}
    known = any(process.network for process in job.processes)
    without = {number for number, process in enumerate(job.processes) if _goes_without(process) or not known}
    asked = tuple(entry for entry in missing if entry[0] in wanted and "symbol" not in entry[1].details)
    lost = {number for number, _ in asked} & without
    if lost:
        first = wanted[min(lost)]
        what = f"{first.name}={first.value} asks for a plugin that NCCL did not find"
        return PluginFailure(what, asked, tuple(sorted(lost)))
    if not job.processes:
        return _ended(missing)
    broken = tuple(entry for entry in missing if BROKEN in entry[1].details)
    if not broken or not without:
        return None
    what = "does not start" if _started(broken[0][1]) else "cannot be loaded"
    return PluginFailure(f"the network plugin is there and {what}", broken, tuple(sorted(without)))


def _on_slingshot(job: Job) -> PluginFailure | None:
    """Sockets over interfaces of Slingshot."""
    without = tuple(number for number, process in enumerate(job.processes) if process.network.lower() == "socket")
    sockets = job.messages.get("sockets", ())
    lines = tuple(entry for entry in sockets if entry[0] in without and SLINGSHOT in entry[1].details)
    if not lines:
        return None
    return PluginFailure("the OFI plugin, without which Slingshot has no RDMA, is not in use", lines, without)


def _ended(missing: Sequence[Said]) -> PluginFailure | None:
    """A plugin that ended a job of which nothing else is told: it cannot be loaded, or is not found by its name."""
    broken = tuple(entry for entry in missing if BROKEN in entry[1].details)
    named = tuple(entry for entry in missing if BY_NAME in entry[1].details)
    if broken:
        what = "finds no provider for its fabric" if NO_PROVIDER in broken[0][1].details else "cannot be loaded"
        return PluginFailure(f"the network plugin {what}", broken, ())
    return PluginFailure("the network plugin that is asked for is not found", named, ()) if named else None


def _no_sharp(job: Job) -> list[Said]:
    """SHARP that was tried and did not come up, by warnings of NCCL and of its plugin."""
    numbers = {(process.host, process.pid): number for number, process in enumerate(job.processes)}
    warnings = [event for event in job.events if event.level == "WARN" and NO_SHARP in event.details]
    lines: list[Said] = [(numbers.get((event.host, event.pid), -1), event) for event in warnings]
    messages = [entry for kind in ("sharp", "ib note") for entry in job.messages.get(kind, ())]
    return lines or [entry for entry in messages if NO_SHARP in entry[1].details]


def _goes_without(process: Process) -> bool:
    """Whether a process has no plugin: NCCL looks for devices of its own only where no plugin took over."""
    return process.network.lower() in ("ib", "socket") or (not process.network and bool(process.said("no hca")))


def _started(line: Message | Event) -> bool:
    """Whether the plugin was loaded, and gave up by itself."""
    return line.text.startswith("NET/OFI ")
