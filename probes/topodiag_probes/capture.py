"""Captures one node: runs the probes side by side, each with its deadline, and writes down how each of them went.

Each probe has a daemon thread. One that is still busy at its deadline is abandoned with what it has by then: a read
from a dead device cannot be interrupted, and costs its own result and nothing else.
"""

import fnmatch
import os
import platform
import queue
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from topodiag_probes import SCHEMA, __version__
from topodiag_probes.bundle import Bundle, write_folder, write_tar
from topodiag_probes.guard import Guard
from topodiag_probes.interface import Context, Outcome, Probe, reduced
from topodiag_probes.keep import boot_id
from topodiag_probes.redact import Redactor
from topodiag_probes.reduced import complaints
from topodiag_probes.registry import probes as all_probes
from topodiag_probes.run import STOP_S, Groups
from topodiag_probes.secrets import without_secrets
from topodiag_probes.tree import Root, error_text

DEADLINE_S = 20.0
THREADS = 24
"""Probes at one time. Nearly all of them wait for another process or for a driver."""
ABANDON_S = 0.25
"""A thread has this long after its deadline to hand in what it has, before its result is taken from it."""

Progress = Callable[[str, str, float], None]

__all__ = ["DEADLINE_S", "Bundle", "capture", "write_folder", "write_tar"]


class _Job:
    """One probe in one sample, from waiting to its result."""

    def __init__(self, probe: Probe, sample: int) -> None:
        self.probe = probe
        self.sample = sample
        self.out = Outcome()
        self.started = 0.0
        self.end = 0.0
        self.duration = 0.0
        self.settled = False

    @property
    def late(self) -> float:
        """When its result is taken from it. Ending a command takes a moment after its deadline."""
        return self.end + ABANDON_S + (STOP_S if self.probe.spawns else 0.0)

    @property
    def file(self) -> str:
        return ("sample%d/" % (self.sample + 1) if self.sample else "") + self.probe.file


class _Captor:
    """The main thread's side: starts jobs, collects their results, gives up on those that are late."""

    def __init__(
        self, ctx: Context, deadline_s: float, sample_s: float, only: Sequence[str], on_progress: Optional[Progress]
    ) -> None:
        self.ctx = ctx
        self.begun = time.monotonic()
        self.end = self.begun + deadline_s + sample_s
        # What ending a command takes is set aside, so that the whole ends in time.
        self.reserve = min(STOP_S + ABANDON_S, 0.3 * deadline_s)
        self.sample_s = sample_s
        self.only = only
        self.on_progress = on_progress
        self.jobs: List[_Job] = []
        self.waiting: List[_Job] = []
        self.running: List[_Job] = []
        self.handed_in: "queue.Queue[Tuple[_Job, List[Probe]]]" = queue.Queue()
        self.samples: List[Dict[str, Any]] = [{"number": 0, "time": _now(), "interval_s": 0.0}]

    def wants(self, probe: Probe) -> bool:
        """Whether it was asked for; a probe that names others (`ethtool-IF`) is started for any of them."""
        if not self.only:
            return True
        prefix = probe.id[:-2] if probe.id.endswith("-IF") else ""
        return any(
            fnmatch.fnmatchcase(probe.id, pattern) or (prefix and pattern.startswith(prefix)) for pattern in self.only
        )

    def add(self, probe: Probe, sample: int = 0) -> None:
        job = _Job(probe, sample)
        self.jobs.append(job)
        if self.wants(probe):
            self.waiting.append(job)
        else:
            job.settled = True
            job.out.status, job.out.why = "skipped", "not asked for"

    def run(self) -> None:
        """Run everything that was added, and the second sample."""
        sample_at: Optional[float] = None
        sampled = self.sample_s <= 0
        while True:
            self._start()
            if not sampled and sample_at is None and not self._sampled_pending():
                sample_at = time.monotonic() + self.sample_s
            if sample_at is not None and time.monotonic() >= sample_at:
                sampled, sample_at = True, None
                self._again()
                continue
            if not self.running and not self.waiting and sample_at is None:
                break
            now = time.monotonic()
            if now >= self.end:
                break
            ends = [job.late for job in self.running] + [self.end]
            if sample_at is not None:
                ends.append(sample_at)
            try:
                self._take(*self.handed_in.get(timeout=max(0.0, min(ends) - now)))
            except queue.Empty:
                self._give_up(time.monotonic())
        self._give_up(float("inf"))
        for job in self.waiting:
            job.out.status, job.out.why, job.settled = "timeout", "the capture's deadline came before its turn", True

    def _sampled_pending(self) -> bool:
        return any(not job.settled and job.probe.sampled for job in self.jobs)

    def _again(self) -> None:
        before = [job for job in self.jobs if job.probe.sampled and job.out.status == "ok" and job.out.data is not None]
        first = min([job.started for job in before] or [self.begun])
        interval = time.monotonic() - first
        self.samples.append({"number": 1, "time": _now(), "interval_s": round(interval, 3)})
        for job in before:
            probe = job.probe.again()
            if probe is not None:
                twin = _Job(probe, 1)
                self.jobs.append(twin)
                self.waiting.append(twin)

    def _start(self) -> None:
        while self.waiting and len(self.running) < THREADS:
            job = self.waiting.pop(0)
            job.started = time.monotonic()
            job.end = min(job.started + job.probe.limit_s, self.end - self.reserve)
            self.running.append(job)
            self._tell("start", job)
            thread = threading.Thread(target=_work, args=(job, self.ctx, self.handed_in), daemon=True)
            thread.start()

    def _take(self, job: _Job, more: List[Probe]) -> None:
        if job.settled:
            return  # given up on before
        self._settle(job)
        if more:
            self.jobs.remove(job)
            for probe in more:
                self.add(probe)

    def _settle(self, job: _Job) -> None:
        job.settled = True
        job.duration = time.monotonic() - job.started
        self.running.remove(job)
        self._tell("done", job)

    def _give_up(self, now: float) -> None:
        """Settle the jobs that have not handed in their results in time."""
        for job in list(self.running):
            if now < job.late:
                continue
            self._settle(job)
            late, job.out = job.out, Outcome()
            job.out.status = "timeout"
            job.out.why = "no answer within %.1f s; kept what there was" % job.duration
            job.out.data = late.partial()
            job.out.needs_root = late.needs_root
            job.out.stderr = late.stderr

    def _tell(self, event: str, job: _Job) -> None:
        if self.on_progress is None:
            return
        try:
            self.on_progress(event, job.probe.id, job.duration)
        except Exception:
            self.on_progress = None  # a broken spinner costs the spinner


def _work(job: _Job, ctx: Context, handed_in: "queue.Queue[Tuple[_Job, List[Probe]]]") -> None:
    out = job.out
    more: List[Probe] = []
    try:
        more = job.probe.more(ctx)
        if not more:
            job.probe.run(ctx, job.end, out)
    except OSError as error:
        out.status, out.why = "error", error_text(error)
        out.data = out.partial()
    except Exception as error:  # one probe's fault is that probe's result
        out.status, out.why = "error", "%s: %s" % (type(error).__name__, error)
        out.data = out.partial()
    handed_in.put((job, more))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def host_name(root: Root) -> str:
    """This host's name, or the one that a copied tree tells."""
    if root.live:
        return socket.gethostname()
    return root.text("proc/sys/kernel/hostname") or root.text("etc/hostname") or "unknown"


def _entry(job: _Job, begun: float) -> Dict[str, Any]:
    out = job.out
    entry: Dict[str, Any] = {"id": job.probe.id, "kind": job.probe.kind}
    argv, paths = job.probe.argv(), job.probe.paths()
    if argv is not None:
        entry["argv"] = argv
    if paths is not None:
        entry["paths"] = paths
    entry["keeps"] = list(job.probe.keeps)
    entry.update(
        file=job.file if out.data is not None else "",
        status=out.status,
        why=without_secrets(out.why),
        rc=out.rc,
        stderr=without_secrets(complaints(out.stderr)),
        started_s=round(max(0.0, job.started - begun), 4) if job.started else 0.0,
        duration_s=round(job.duration, 4),
        truncated=out.truncated,
        needs_root=out.needs_root,
        sample=job.sample,
    )
    return entry


def capture(  # noqa: PLR0917  the caller names them
    root: str = "/",
    deadline_s: float = DEADLINE_S,
    sample_s: float = 0.0,
    redactor: Optional[Redactor] = None,
    only: Optional[Sequence[str]] = None,
    on_progress: Optional[Progress] = None,
    extra_path: Optional[str] = None,
) -> Bundle:
    """Capture this host, or the files of a copied tree when `root` is not `/`.

    Ends within `deadline_s` + `sample_s` seconds whatever the host does. `only`: ids, or shell patterns of ids.
    `on_progress(event, id, seconds)` is called with `start` and `done`. `extra_path`: folders searched for commands
    before PATH. KeyboardInterrupt kills what is running and propagates.
    """
    groups = Groups(Guard())
    ctx = Context(Root(root), groups, dict(os.environ), extra_path)
    captor = _Captor(ctx, deadline_s, max(0.0, sample_s), list(only or ()), on_progress)
    try:
        for probe in all_probes():
            captor.add(probe)
        captor.run()
    finally:
        groups.kill_all()
    jobs = sorted(captor.jobs, key=lambda job: (job.sample, job.probe.id))
    files = {job.file: reduced(job.out.data, without_secrets) for job in jobs if job.out.data is not None}
    manifest: Dict[str, Any] = {
        "schema": SCHEMA,
        "tool": "topodiag-probe " + __version__,
        "host": host_name(ctx.root),
        "boot_id": boot_id(ctx.root),
        "time": captor.samples[0]["time"],
        "uid": ctx.uid,
        "privilege": "root" if ctx.is_root else "user",
        "python": platform.python_version(),
        "deadline_s": deadline_s,
        "wall_s": round(time.monotonic() - captor.begun, 3),
        "redacted": redactor is not None,
        "samples": captor.samples,
        "items": [_entry(job, captor.begun) for job in jobs],
    }
    bundle = Bundle(manifest, files)
    return redactor.bundle(bundle) if redactor is not None else bundle
