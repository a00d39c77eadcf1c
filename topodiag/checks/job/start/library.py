"""Known faults of a library, told by its version and by the signature that they leave."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from topodiag.checks.interface import Advice, JobCheck, hosts_in, hosts_word
from topodiag.checks.shared.job.logs import said_by
from topodiag.checks.shared.job.text import ask_for
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.words.own_data import own_data

_RELEASE = regex(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?")
_NAMED = regex(r"NCCL version (\d{1,2}\.\d{1,2}\.\d{1,2})")
Release = tuple[int, int, int]
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

    def has(self, release: Release) -> bool:
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


def release_of(text: str) -> Release | None:
    """Major, minor and patch of a version; None where it names none."""
    match = _RELEASE.search(text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match is not None else None


def _versions(job: Job) -> dict[str, Release]:
    """The releases of NCCL that the text names: NCCL's own words, torch's, and the names of library files."""
    texts = list(job.nccl_versions)
    texts += [match[1] for event in job.events for match in _NAMED.finditer(event.text)]
    texts += [event.details["so"] for event in job.events if event.details.get("so")]
    return {text.split("+")[0]: release for text in texts if (release := release_of(text)) is not None}


def _shown(job: Job, versions: dict[str, Release]) -> Iterator[tuple[LibraryFault, Sequence[Event], str]]:
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
