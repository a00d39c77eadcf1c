"""`topodiag-probe.pyz watch`, and what `topodiag watch` runs: the sources of this host, and the loop around them."""

import argparse
import os
import signal
import sys
import threading
import time
from typing import Any, Callable, List, Optional

from topodiag_probes.capture import host_name
from topodiag_probes.guard import Guard
from topodiag_probes.interface import Context
from topodiag_probes.run import Groups
from topodiag_probes.tree import Root
from topodiag_probes.watch import gpus, prometheus, states
from topodiag_probes.watch.journal import KEEP, LIMIT, Journal
from topodiag_probes.watch.kernel import Kernel
from topodiag_probes.watch.loop import Source, Watch

EVERY_S = 10.0
NVML_S = 60.0
"""Seconds between two questions to NVML: each starts a process."""
BOOT = "proc/sys/kernel/random/boot_id"
MIB = 1024 * 1024


class RefusedError(Exception):
    """A request that cannot be met; one line for the user."""


class Options:
    """Where the changes go and how often: `every_s` in seconds, `size` in bytes of a file, `times` samples (0: all)."""

    def __init__(  # noqa: PLR0917
        self,
        folder: Optional[str],
        exposition: Optional[str] = None,
        every_s: float = EVERY_S,
        size: int = LIMIT,
        keep: int = KEEP,
        times: int = 0,
        root: str = "/",
    ) -> None:
        self.folder = folder
        self.exposition = exposition
        self.every_s = every_s
        self.size = size
        self.keep = keep
        self.times = times
        self.root = root


def watch(options: Options, stop: threading.Event, tell: Callable[[str], None]) -> None:
    """Watch until `stop` is set, or for `times` samples. Raises RefusedError for a place that cannot be written to."""
    _check(options)
    root = Root(options.root)
    groups = Groups(Guard())
    made = _made(options, root, Context(root, groups, dict(os.environ)))
    tell("watching %s every %g s; changes go to %s\n" % (made.host, options.every_s, _place(options, made)))
    done = 0
    refused = ""
    try:
        while not stop.is_set():
            began = time.monotonic()
            made.turn()
            refused = _expose(made, options, refused, tell)
            done += 1
            if options.times and done >= options.times:
                break
            stop.wait(max(0.0, options.every_s - (time.monotonic() - began)))
        made.stop("told to stop" if stop.is_set() else "the number of samples")
    finally:
        groups.kill_all()
        if made.kernel is not None:
            made.kernel.close()


def _made(options: Options, root: Root, ctx: Context) -> Watch:
    host = host_name(root)
    sources = [Source("sysfs", options.every_s, lambda: states.sample(root))]
    if root.live:
        every = max(NVML_S, options.every_s)
        sources.append(Source("nvml", every, lambda: gpus.sample(ctx, time.monotonic() + gpus.LIMIT_S)))
    journal = Journal(options.folder, host, options.size, options.keep) if options.folder is not None else None
    return Watch(host, root.text(BOOT), sources, journal, Kernel(root), every_s=options.every_s)


def _check(options: Options) -> None:
    if options.folder is None and options.exposition is None:
        raise RefusedError("say where to: a folder for the changes, --textfile FILE, or both")
    for folder in (options.folder, options.exposition and (os.path.dirname(options.exposition) or ".")):
        if folder and not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
            raise RefusedError("%s: not a folder that takes new files" % folder)


def _place(options: Options, made: Watch) -> str:
    return made.journal.path() if made.journal is not None else str(options.exposition)


def _expose(made: Watch, options: Options, before: str, tell: Callable[[str], None]) -> str:
    """Write the exposition; an error is told once, until there is another one."""
    if options.exposition is None:
        return ""
    try:
        prometheus.write(made, options.exposition)
    except OSError as error:
        why = "%s: %s\n" % (options.exposition, error.strerror or error)
        if why != before:
            tell(why)
        return why
    return ""


def until_signal() -> threading.Event:
    """An event that SIGTERM, SIGINT and SIGHUP set."""
    stop = threading.Event()

    def told(_number: int, _frame: Any) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants it ignored
            signal.signal(number, told)
    return stop


def main(arguments: List[str], say: Callable[[str], None]) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="topodiag-probe watch",
        description="Samples states and error counters of links, and writes what changes until it gets SIGTERM.",
    )
    parser.add_argument("folder", nargs="?", metavar="DIR", help="folder for HOST.watch.jsonl")
    parser.add_argument("--textfile", metavar="FILE", help="Prometheus text for node_exporter's textfile collector")
    parser.add_argument("--every", type=float, default=EVERY_S, metavar="SECONDS", help="default %(default)g")
    parser.add_argument("--size", type=int, default=LIMIT // MIB, metavar="MIB", help="of a file; default %(default)s")
    parser.add_argument("--files", dest="keep", type=int, default=KEEP, metavar="N", help="files; default %(default)s")
    parser.add_argument("--times", type=int, default=0, metavar="N", help="end after N samples")
    parser.add_argument("--root", default="/", metavar="FOLDER", help="read a copied tree")
    given = parser.parse_args(arguments)
    if not 0.1 <= given.every <= 3600 or not 1 <= given.size <= 4096 or not 1 <= given.keep <= 1000:
        parser.error("--every takes 0.1 to 3600, --size 1 to 4096, --files 1 to 1000")
    options = Options(
        given.folder, given.textfile, given.every, given.size * MIB, given.keep, max(0, given.times), given.root
    )
    try:
        watch(options, until_signal(), say)
    except RefusedError as refusal:
        sys.stderr.write("topodiag-probe watch: %s\n" % refusal)
        return 2
    return 0
