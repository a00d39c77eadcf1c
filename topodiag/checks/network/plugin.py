"""A network plugin that did not load."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.evidence import multi_node, piece, said_by, settings_of
from topodiag.checks.shared.job.text import NET, ask_for
from topodiag.checks.words import hosts_word, quoted
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, Job, Process
from topodiag.model.provenance import Origin

LOAD_FAILED = regex(
    r"undefined symbol|version `?GLIBC|wrong ELF class|invalid ELF header|symbol lookup error"
    r"|aws-ofi-nccl initialization failed|Only EFA provider is supported"
    r"|Failed to initialize \w{1,20} protocol|Unable to find a protocol that worked|Unexpected group size"
    r"|version `[\w.]{2,40}' not found|undefined symbol: \w|Failed to initialize any NET plugin"
    r"|NET/OFI (?:Couldn't find any optimal provider|No eligible providers)"
    r"|(lib[\w.+\-]{1,60}\.so[\w.]{0,20}): cannot open shared object file"
)
"""What dlopen, or the plugin itself, says of a library that is there and cannot be used."""

_NO_PROVIDER = regex(r"NET/OFI (?:Couldn't find any optimal provider|No eligible providers)")
"""The plugin was loaded, and libfabric offers nothing that it can use (aws-ofi-nccl src/nccl_ofi_ofiutils.c)."""

NO_SHARP = regex(
    r"SHARP (?:coll init|group create|.{0,40}(?:error|fail))|Cannot initialize CollNet"
    r"|CollNet is not supported or fails"
)
"""NCCL src/init.cc and src/transport.cc; nccl-rdma-sharp-plugins src/sharp_plugin.c."""

_BY_NAME = regex(r"\bCould not find: lib[nr]ccl-net-[\w-]{1,40}\.so")
"""A plugin of this name is asked for: the one that NCCL looks for by itself has no further name."""

_SLINGSHOT = regex(r"(?:\]|\b)(hsn\d)\b")
"""Interfaces of HPE Slingshot, which has no verbs: RDMA goes by libfabric alone, through the OFI plugin."""

BUILT_IN = ("", "none", "ib", "socket", "0")
"""Values of NCCL_NET_PLUGIN and NCCL_NET that ask for no library."""


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """What happened to a plugin, the lines that say it, by process, and the processes that go on without it."""

    what: str
    lines: tuple[tuple[int, str, Origin | None], ...]
    without: tuple[int, ...]
    ended: bool = False
    """The job ended with it: no process is known to go on."""
    sharp: bool = False
    """It is SHARP (CollNet) that does not come up, and the network goes on without reductions in its switches."""


class PluginNotLoaded(JobCheck):
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

    id = "NET005"

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        if not multi_node(judged) and not piece(judged):
            return self.not_applicable(judged, "no traffic between nodes")
        missing = list(said_by(judged, "net plugin missing"))
        missing += [message for message in said_by(judged, "net plugin") if _broken(message[1])]
        missing += [(-1, event.text, event.origin) for event in judged.events if _of_plugin(event)]
        named = sum(bool(process.network) for process in judged.processes)
        sharp = _no_sharp(judged)
        if not named and not missing and sharp is None:
            return self.unknown(judged, f"no line speaks of plugins; {ask_for(judged, *NET)}")
        failure = _failure(judged, missing) or _on_slingshot(judged) or sharp
        if failure is not None:
            return self.with_findings(judged, [self._told(judged, failure)])
        if not named:
            return self.unknown(judged, f"no line says which network NCCL goes on with; {ask_for(judged, *NET)}")
        return self.clean(judged, "", Coverage(named, len(judged.processes), "processes"))

    def _told(self, job: Job, failure: PluginFailure) -> Finding:
        if failure.sharp:
            return self._sharp(job, failure)
        if failure.ended:
            return self._ended(failure)
        return self._report(job, failure.what, failure.lines, failure.without)

    def _ended(self, observed: PluginFailure) -> Finding:
        return self.finding(
            self.where(),
            "ended without plugin",
            f"{observed.what}, and the job ends with it",
            observed=quoted(observed.lines[0][1], 200),
            fix=self.steps("efa devices" if _NO_PROVIDER.search(observed.lines[0][1]) else "ldd", "fitting build"),
            evidence=[where for _, _, where in observed.lines],
        )

    def _sharp(self, job: Job, observed: PluginFailure) -> Finding:
        hosts = list(dict.fromkeys(job.processes[n].host for n, _, _ in observed.lines if n >= 0))
        asked = settings_of(job, "NCCL_COLLNET_ENABLE").get("NCCL_COLLNET_ENABLE", [])
        return self.finding(
            self.where(hosts),
            "no sharp",
            f"{hosts_word(hosts) or 'the job'}: SHARP does not come up; NCCL goes on without its reductions",
            observed=quoted(observed.lines[0][1]),
            evidence=[*(where for _, _, where in observed.lines), *(given.origin for _, given in asked[:1])],
        )

    def _report(
        self, job: Job, what: str, lines: Sequence[tuple[int, str, Origin | None]], numbers: Sequence[int]
    ) -> Finding:
        networks = sorted({job.processes[number].network or "its own networks" for number in numbers})
        sockets = any(network.lower() == "socket" for network in networks)
        return self.finding(
            self.where_of(job, numbers),
            "sockets without the plugin" if sockets else "plugin not loaded",
            f"{what}; it goes on with {'/'.join(networks)}",
            severity=Severity.ERROR if sockets else Severity.WARNING,
            observed=lines[0][1].strip(),
            fix=self._steps(lines[0][1]),
            evidence=[where for _, _, where in lines],
            coverage=Coverage(len(numbers), len(job.processes), "processes"),
            # What NCCL took instead stands below the line, which may be all that there is of the log.
            confidence=Confidence.HIGH if any(map(_goes_without, job.processes)) else Confidence.MEDIUM,
        )

    def _steps(self, text: str) -> tuple[str, ...]:
        """What to look at, by the line that says what happened."""
        if _SLINGSHOT.search(text):
            return self.steps("slingshot")
        return self.steps("efa devices" if _started(text) else "ldd", "own ib")


def _of_plugin(event: Event) -> bool:
    return event.kind == "plugin" or (event.level == "APP" and _BY_NAME.search(event.text) is not None)


def _failure(job: Job, missing: Sequence[tuple[int, str, Origin | None]]) -> PluginFailure | None:
    """A plugin that was asked for and not found, else one that is there and of no use; None where all is as meant."""
    wanted = {
        number: given
        for entries in settings_of(job, "NCCL_NET_PLUGIN").values()
        for number, given in entries
        if given.value.strip().lower() not in BUILT_IN
    }
    known = any(process.network for process in job.processes)
    without = {number for number, process in enumerate(job.processes) if _goes_without(process) or not known}
    asked = tuple(entry for entry in missing if entry[0] in wanted and "ymbol" not in entry[1])
    lost = {number for number, _, _ in asked} & without
    if lost:
        first = wanted[min(lost)]
        what = f"{first.name}={first.value} asks for a plugin that NCCL did not find"
        return PluginFailure(what, asked, tuple(sorted(lost)))
    if not job.processes:
        return _ended(missing)
    broken = tuple(entry for entry in missing if _broken(entry[1]))
    if not broken or not without:
        return None
    what = "does not start" if _started(broken[0][1]) else "cannot be loaded"
    return PluginFailure(f"the network plugin is there and {what}", broken, tuple(sorted(without)))


def _on_slingshot(job: Job) -> PluginFailure | None:
    """Sockets over interfaces of Slingshot."""
    without = tuple(number for number, process in enumerate(job.processes) if process.network.lower() == "socket")
    lines = tuple(
        message for message in said_by(job, "sockets") if message[0] in without and _SLINGSHOT.search(message[1])
    )
    if not lines:
        return None
    return PluginFailure("the OFI plugin, without which Slingshot has no RDMA, is not in use", lines, without)


def _ended(missing: Sequence[tuple[int, str, Origin | None]]) -> PluginFailure | None:
    """A plugin that ended a job of which nothing else is told: it cannot be loaded, or is not found by its name."""
    broken = tuple(entry for entry in missing if _broken(entry[1]))
    named = tuple(entry for entry in missing if _BY_NAME.search(entry[1]))
    if broken:
        empty = _NO_PROVIDER.search(broken[0][1]) is not None
        what = "finds no provider for its fabric" if empty else "cannot be loaded"
        return PluginFailure(f"the network plugin {what}", broken, (), ended=True)
    return PluginFailure("the network plugin that is asked for is not found", named, (), ended=True) if named else None


def _no_sharp(job: Job) -> PluginFailure | None:
    """SHARP that was tried and did not come up, by warnings of NCCL and of its plugin."""
    numbers = {(process.host, process.pid): number for number, process in enumerate(job.processes)}
    lines = [
        (numbers.get((event.host, event.pid), -1), event.text, event.origin)
        for event in job.events
        if event.level == "WARN" and NO_SHARP.search(event.text)
    ]
    messages = [message for kind in ("sharp", "ib note") for message in said_by(job, kind)]
    lines = lines or [message for message in messages if NO_SHARP.search(message[1])]
    return PluginFailure("SHARP does not come up", tuple(lines), (), sharp=True) if lines else None


def _goes_without(process: Process) -> bool:
    """Whether a process has no plugin: NCCL looks for devices of its own only where no plugin took over."""
    return process.network.lower() in ("ib", "socket") or (not process.network and bool(process.said("no hca")))


def _started(text: str) -> bool:
    """Whether the plugin was loaded, and gave up by itself."""
    return text.startswith("NET/OFI ")


def _broken(text: str) -> bool:
    match = LOAD_FAILED.search(text)
    if match is None:
        return False
    return match[1] is None or "ccl-net" not in match[1]
