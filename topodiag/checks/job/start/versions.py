"""Versions that differ between the ranks of one job, and known faults of a library, told by its version and by the
signature that they leave."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from topodiag.checks.interface import Advice, JobCheck, hosts_in, hosts_word, processes_word, quoted, rank_word
from topodiag.checks.shared.job.logs import said_by
from topodiag.checks.shared.job.text import ask_for
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, Job, Process
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data
from topodiag.words.units import few, grouped

_DATA = own_data("checks/job/start/versions")
COMPONENTS = {key: (entry["name"], Severity[entry["severity"].upper()]) for key, entry in _DATA["component"].items()}
"""What each key of Process.versions is called, and how bad a difference is."""
OF_NCCL = ("nccl", "rccl", "git")

Release = tuple[int, int]
_FIRST, _LAST = (2, 0), (2, 99)

WORDINGS: tuple[tuple[str, str, Release, Release], ...] = tuple(
    (entry["kind"], entry["words"], tuple(entry.get("first", _FIRST)), tuple(entry.get("last", _LAST)))
    for entry in _DATA["wording"]
)
"""Words by kind of line, and the first and last release whose source has them (src/bootstrap.cc, src/graph/topo.cc,
src/net.cc, src/plugin/)."""
_WORDINGS_OF = {kind: [row[1:] for row in WORDINGS if row[0] == kind] for kind in {row[0] for row in WORDINGS}}

_NUMBERED = regex(r"(.*?)\s*\(?v?([0-9][0-9.]{0,30})\)?\s*")


class VersionsDiffer(JobCheck, id="JOB002"):
    """JOB002: NCCL, CUDA driver or plugin version differs between ranks

    What it finds
        Processes of one job that report different versions of NCCL, of the CUDA driver or of a plug-in, and NCCL's
        own `Mismatched NCCL version detected`. From 2.29 on different builds of one version too, by `NCCL git version`
        or NCCL's notice `Mismatched NCCL git versions detected` (2.32).

    Why it matters
        Ranks with different NCCL versions disagree on messages and algorithms: init fails, hangs or, before 2.23,
        corrupts. Different plug-ins or tuners choose differently, which hangs the first collective. Different drivers
        switch features (cuMem, NVLink SHARP, DMA-BUF) on for some ranks only.

    Evidence it reads
        `NCCL version`, `cudaDriverVersion` and the plug-ins' lines, per process. Lines whose wording changed between
        releases (`Bootstrap : Using` to 2.23, `Bootstrap: Using` from 2.24 on): most processes print no version. Rows
        of hosts with one version each, and the dynamic loader's errors on libraries by which ranks talk. CUDA's error
        that its driver is too old, where the log names NCCL's CUDA and the driver's.

    When it stays silent
        Only one process printed its version, as NCCL does by default on rank 0 before 2.29: unknown where there are
        several processes; of a job of one process nothing can differ. The same NCCL built for another CUDA: info.

    How to confirm
        Run this on each node and inside each container:
        strings $(ldconfig -p | awk '/libnccl.so/{print $NF;exit}') | grep -m1 "NCCL version"

    How to fix
        Start the same image on all nodes; look for an LD_LIBRARY_PATH, LD_PRELOAD or pip package that brings its own
        libnccl.

    References
        NCCL src/init.cc (showVersion; initTransportsRank: `Mismatched NCCL version detected`, v2.23 and later).
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        by_key = {key: _by_version(job, key) for key in COMPONENTS}
        findings: list[Finding] = []
        builds = False
        for key, (word, usual) in COMPONENTS.items():
            if key == "git" and findings:
                continue  # another version is another build
            severity = _severity(key, list(by_key[key]), usual) if len(by_key[key]) > 1 else None
            if severity is not None:
                findings.append(self._report(job, word, by_key[key], severity))
                builds |= key in OF_NCCL
        if not findings or findings[0].severity is not Severity.ERROR:  # NCCL is the first component
            findings += self._by_wording(job)
        if not any(finding.severity is Severity.ERROR for finding in findings):
            findings += self._by_nccl(job)
        findings += [] if builds else self._by_notice(job)
        findings += [] if findings else not_as_built(self, job)
        total = max(sum(map(len, by_key[key].values())) for key in OF_NCCL)
        coverage = Coverage(total, len(job.processes), "processes with a version of NCCL")
        if not findings and max(len(job.processes), job.world_size) < 2:
            return self.not_applicable(job, "one process: nothing to compare")
        unseen = f"fewer than two processes told a version: {ask_for(job)} on all ranks" if total < 2 else ""
        return self.any_of(job, findings, coverage, unknown=unseen)

    def _by_nccl(self, job: Job) -> Iterator[Finding]:
        """NCCL's own warning. A driver that is too old for the library is of this kind too, and no difference."""
        events = [event for event in job.events if event.kind == "version" and "ismatched" in event.text]
        if events:
            message = f"NCCL itself found different versions: {quoted(events[0].text, 120)}"
            yield self.of_events(events, "nccl versions", message)

    def _by_notice(self, job: Job) -> Iterator[Finding]:
        """NCCL's notice that ranks run other builds of its version, by fingerprints of branch and commit."""
        notices = list(said_by(job, "git mismatch"))
        others = sorted({int(notice.details["rank"]) for notice in notices if "rank" in notice.details})
        if notices:
            yield self.of_events(
                notices,
                "another build",
                f"NCCL itself found different builds of one version: {rank_word(others)} of a communicator beside its"
                " rank 0",
                self.where(),
            )

    def _by_wording(self, job: Job) -> Iterator[Finding]:
        """Processes that cannot be of one release."""
        ranges = {at: pair for at, process in enumerate(job.processes) if (pair := releases(process)) is not None}
        newest = max((low for low, _ in ranges.values()), default=_FIRST)
        oldest = min((high for _, high in ranges.values()), default=_LAST)
        if newest <= oldest:
            return
        new = [number for number, (low, _) in ranges.items() if low > oldest]
        old = [number for number, (_, high) in ranges.items() if high < newest]
        numbers = min((old, new), key=len)  # the first, where they are equally many
        yield self.finding(
            self.where_of(job, numbers),
            "nccl by its words",
            f"NCCL differs between ranks by its own words: {_spell(oldest)} or earlier on"
            f" {processes_word(job, old)}, {_spell(newest)} or later on {processes_word(job, new)}",
            observed="lines that no one release prints in both wordings",
            evidence=[_wording(job.processes[number]) for number in (old[0], new[0])],
            coverage=Coverage(len(new) + len(old), len(job.processes), "processes"),
        )

    def _report(self, job: Job, word: str, by_value: dict[str, list[int]], severity: Severity) -> Finding:
        groups = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
        outliers = [number for _, numbers in groups[1:] for number in numbers]
        texts = [f"{value} on {processes_word(job, numbers)}" for value, numbers in groups]
        return self.finding(
            self.where_of(job, outliers),
            Advice(severity),
            f"{word} differs between ranks: {few([value for value, _ in groups], 4)}",
            observed="; ".join(texts[:4]),
            expected=f"one version of {word} on all ranks (most have {groups[0][0]})",
            fix=self.steps(
                "one driver" if word == "CUDA driver" else "one image", component=word, version=groups[0][0]
            ),
            cost="ranks disagree on messages or choices: init fails, or a collective hangs"
            if severity is Severity.ERROR
            else "features and choices differ between ranks",
            evidence=[_said_version(job.processes[numbers[0]], value) for value, numbers in groups],
            coverage=Coverage(sum(map(len, by_value.values())), len(job.processes), "processes"),
        )


def _said_version(process: Process, value: str) -> Origin | None:
    """The line that names the version."""
    origins = (message.origin for message in process.messages if value in message.text and message.origin is not None)
    return next(origins, process.origin)


def _by_version(job: Job, key: str) -> dict[str, list[int]]:
    """The processes that name a version of a component, by that version."""
    named = ((process.versions.get(key, "").strip(), number) for number, process in enumerate(job.processes))
    return grouped((version, number) for version, number in named if version)


def releases(process: Process) -> tuple[Release, Release] | None:
    """The first and last release that a process can be of, by its version and its words; None where they disagree."""
    low, high = _FIRST, _LAST
    if process.versions.get("rccl"):
        return low, high
    if match := _RELEASE.match(process.versions.get("nccl", "")):
        low = high = (int(match[1]), int(match[2]))
    for message in process.messages:
        for words, first, last in _WORDINGS_OF.get(message.kind, ()):
            if words in message.text:
                low, high = max(low, first), min(high, last)
    return (low, high) if low <= high else None


def _severity(key: str, values: Sequence[str], severity: Severity) -> Severity | None:
    """How bad the difference is; None where the values name different things, not different versions of one."""
    if key in ("nccl", "rccl"):
        return severity if len({value.split("+")[0] for value in values}) > 1 else Severity.INFO
    if key in ("driver", "git"):
        return severity
    parts = [_NUMBERED.fullmatch(value) for value in values]
    if any(part is None for part in parts) or len({part[1].lower() for part in parts if part}) > 1:
        return None  # one plug-in here and another there is NET007's
    return severity


def _spell(release: Release) -> str:
    return f"{release[0]}.{release[1]}"


def _wording(process: Process) -> Origin | None:
    """The line that tells most of the release of a process."""
    weighed = [(last[1] - first[1], message.origin) for kind, words, first, last in WORDINGS
            for message in process.said(kind) if words in message.text]  # fmt: skip
    return min(weighed, key=lambda weight: weight[0])[1] if weighed else process.origin


# For JOB002: a library of another version than what was built with it.


def not_as_built(check: JobCheck, job: Job) -> Iterator[Finding]:
    """The dynamic loader's word that a library by which ranks talk is of another version than what was built with
    it."""
    events = [
        event
        for event in job.events
        if event.details.get("how") == "loader" and {"not as built", "library of ranks"} <= event.details.keys()
    ]
    if not events or any("net library" in event.details for event in events):
        return
    yield check.of_events(
        events,
        "not as built",
        f"a library by which ranks talk is of another version than what was built with it: {quoted(events[0].text)}",
        check.where(hosts_in(events)),
    )


_RELEASE = regex(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?")
_NAMED = regex(r"NCCL version (\d{1,2}\.\d{1,2}\.\d{1,2})")
FullRelease = tuple[int, int, int]
SETTING = "setting"
UNSEEN = "no line shows whether the job meets it"


class LibraryFault(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of library_faults.toml; the head of that file explains each key."""

    name: str
    library: str
    since: str
    fixed: str
    text: str = ""
    frames: str = ""
    beside: str = ""
    after: str = ""
    setting: str = ""
    nodes: int = 0
    sure: str
    reported: bool = False
    what: str
    control: str
    source: str

    def has(self, release: FullRelease) -> bool:
        """Whether a release is in the range that has the fault."""
        low, high = release_of(self.since), release_of(self.fixed)
        return (low is None or release >= low) and (high is None or release < high)


@cache
def library_faults() -> tuple[LibraryFault, ...]:
    """All entries, in the order of the file."""
    return msgspec.convert(own_data("checks/job/start/library_faults")["fault"], tuple[LibraryFault, ...])


class KnownLibraryFault(JobCheck, id="JOB007"):
    """JOB007: a known fault of this NCCL version matches the signature

    What it finds
        A stack trace or an error message that a known fault of the library leaves, in a release that has the fault. Of
        faults that leave no line: a note, where the release and the setting that brings the fault are seen.

    Why it matters
        Such faults look like broken GPUs or networks: a hang without an error, a crash in a thread of the library.
        Weeks went into cables and switches for a fault that one changed version line ends.

    Evidence it reads
        NCCL's warnings and settings, stack traces of crashes and of py-spy, the version that NCCL or torch prints, or
        that is part of the library's file name.

    When it stays silent
        The signature is not met, or the version is outside the range. With the signature and no version the finding
        has low confidence. No error and no stack trace in the text: unknown. No signature, and no version: unknown.
        Faults that leave no line and hang on no setting are not judged. Of RCCL: gfx90a slower with ROCm 7.14 or later
        unless HSA_NO_SCRATCH_RECLAIM=1; AllGather below 1 MB slower in 2.28.3; an all-to-all of one GPU that hangs in
        2.27.7 and 2.28.3; collectives of gfx950 that hang before 2.30.4; wrong values of MSCCL with the protocol LL on
        MI350X and MI355X before ROCm 7.1.1. (GPUDirect RDMA that old releases leave off is GDR001.)

    How to confirm
        py-spy dump --native --pid PID                 the functions of libnccl in which a rank stands
        The same program with one version line changed is the best control.

    How to fix
        Take the release that the finding names, or the setting that avoids the fault.

    References
        topodiag/checks/job/start/library_faults.toml: each entry names its issue or release note.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        versions = _versions(judged)
        findings = [self._met(fault, events, version) for fault, events, version in _shown(judged, versions)]
        unseen = "" if versions else "no signature of a known fault is met, and no line tells NCCL's version: "
        unseen = unseen if judged.events else "no error and no stack trace in the text; "
        return self.any_of(judged, findings, unknown=unseen and unseen + ask_for(judged))

    def _met(self, fault: LibraryFault, events: Sequence[Event], version: str) -> Finding:
        """A fault with the lines that show it, and the version that has it, "" if unknown."""
        hosts = hosts_in(events)
        at = f" on {hosts_word(hosts)}" if hosts else ""
        library = fault.library.upper()
        until = f" until {fault.fixed}" if fault.fixed else ", no fixed release known"
        confidence = Confidence.HIGH if fault.sure == "high" else Confidence.MEDIUM
        return self.of_events(
            events,
            Advice(Severity.INFO if fault.setting else Severity.ERROR),
            f"a known fault of {f'{library} {version}' if version else library}: {fault.what}",
            expected=f"a release without this fault ({fault.name}: from {fault.since}{until})",
            fix=(
                *((f"{library} {fault.fixed} or later",) if fault.fixed else ()),
                f"the control that proves it: {fault.control}",
                f"read {fault.source}",
            ),
            cost=UNSEEN if fault.setting else f"the job ends or hangs{at}",
            confidence=confidence if version or fault.reported else Confidence.LOW,
        )


def release_of(text: str) -> FullRelease | None:
    """Major, minor and patch of a version; None where it names none."""
    match = _RELEASE.search(text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match is not None else None


def _versions(job: Job) -> dict[str, FullRelease]:
    """The releases of NCCL that the text names: NCCL's own words, torch's, and the names of library files."""
    texts = list(job.nccl_versions)
    texts += [match[1] for event in job.events for match in _NAMED.finditer(event.text)]
    texts += [event.details["so"] for event in job.events if event.details.get("so")]
    return {text.split("+")[0]: release for text in texts if (release := release_of(text)) is not None}


def _shown(job: Job, versions: dict[str, FullRelease]) -> Iterator[tuple[LibraryFault, Sequence[Event], str]]:
    """The known faults of the job's library that its text shows, with the lines that do and the version that has the
    fault. A line counts once, for the first that fits."""
    numbers: set[int] = set()
    events = (*job.events, *_settings(job))
    for fault in library_faults():
        if fault.library.upper() != job.library or (fault.beside and not _says(job, fault.beside)):
            continue
        shown = [event for event in events if id(event) not in numbers and _shows(fault, event)]
        shown = [event for event in shown if not fault.after or _stands_after(job, fault.after, event)]
        having = [version for version, release in versions.items() if fault.has(release)]
        if shown and (having or not (versions or fault.setting)) and len(job.hosts) >= fault.nodes:
            yield fault, shown, having[0] if having else ""
            numbers.update(id(event) for event in shown)


def _stands_after(job: Job, call: str, event: Event) -> bool:
    """Whether a line of this call, or of the communicator that it makes, stands above a line of the same log."""
    origins = [communicator.origin for communicator in job.communicators if communicator.func == call]
    origins += [line.origin for line in said_by(job, "split") if line.text.startswith(call)]
    line = event.origin
    same = [where for where in origins if where is not None and line is not None and where.source == line.source]
    return line is not None and any((where.line or 0) < (line.line or 0) for where in same)


def _says(job: Job, pattern: str) -> bool:
    """Whether a line that a process printed of itself fits a pattern."""
    return any(re.search(pattern, message.text) for process in job.processes for message in process.messages)


def _settings(job: Job) -> Iterator[Event]:
    """The settings in force as lines `NAME=value`, one for each value."""
    given = {f"{one.name}={one.value}": one for process in job.processes for one in process.settings.values()}
    for line, setting in given.items():
        yield Event(SETTING, line, "", level="INFO", origin=setting.origin)


def _shows(fault: LibraryFault, event: Event) -> bool:
    if fault.setting or event.kind == SETTING:
        return bool(fault.setting) and event.kind == SETTING and re.search(fault.setting, event.text) is not None
    if event.details.get("fault") == "gid":
        return False  # another library that came by NCCL's words
    if fault.text and event.details.get("how") != "context":
        return re.search(fault.text, event.text) is not None
    symbol = event.details.get("symbol", "")
    return bool(fault.frames and symbol and re.search(fault.frames, symbol))
