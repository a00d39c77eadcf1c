"""Runs one command in its own process group with a deadline and an output limit, and never waits for ever.

A command that ignores SIGTERM gets SIGKILL; one that cannot be killed (state D) is abandoned; a child of it that keeps
the pipe open after the command ended is not waited for.
"""

import errno
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from typing import IO, Callable, Deque, Dict, List, Optional, Set, cast

from topodiag_probes.guard import Guard
from topodiag_probes.reduced import complaints

POLL_S = 0.05
"""How often a silent command is looked at for having ended with its pipe still open."""
LEFT_BEHIND_S = 0.25
"""How long a pipe is read on after the command itself has ended."""
TERM_GRACE_S = 0.3
"""Between SIGTERM and SIGKILL."""
KILL_GRACE_S = 0.5
"""After SIGKILL; a process that is still there then is in an uninterruptible sleep and is left alone."""
START_GRACE_S = 0.2
"""For a command that is just being started when all are killed; a program on a dead mount may never start."""
STOP_S = TERM_GRACE_S + KILL_GRACE_S
STDERR_LIMIT = 16 * 1024
LINE_LIMIT = 64 * 1024

Keep = Callable[[bytes], bool]

_DENIED = re.compile(rb"operation not permitted|permission denied|must be root|are you root", re.IGNORECASE)


class Finished:
    """How a command went."""

    def __init__(self) -> None:
        self.status = "ok"
        self.why = ""
        self.rc: Optional[int] = None
        self.stdout = b""
        self.stderr = b""
        self.truncated = False


class Groups:
    """The process groups that are alive, so that Ctrl-C and the end of the capture can take them along.

    Where the collector cannot (SIGKILL), its guard does.
    """

    def __init__(self, guard: Optional[Guard] = None) -> None:
        self._changed = threading.Condition()
        self._live: "Set[subprocess.Popen[bytes]]" = set()
        self._starting = 0
        self._closed = False
        self._guard = guard

    def start(self, argv: List[str], env: Dict[str, str]) -> "subprocess.Popen[bytes]":
        """Start a command in a group of its own. Raises OSError, ValueError, and OSError when all were killed."""
        with self._changed:
            if self._closed:
                raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
            self._starting += 1
            if self._guard is not None:
                self._guard.start()
        process: "Optional[subprocess.Popen[bytes]]" = None
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env if self._guard is None else self._guard.environ(env),
                cwd="/",
                start_new_session=True,
            )
            if self._guard is not None:
                self._guard.watch(process.pid)
        finally:
            with self._changed:
                self._starting -= 1
                if process is not None:
                    self._live.add(process)
                    if self._closed:  # all were killed while this one was on its way
                        signal_group(process, signal.SIGKILL)
                self._changed.notify_all()
        return process

    def discard(self, process: "subprocess.Popen[bytes]") -> None:
        with self._changed:
            self._live.discard(process)
            if process.returncode is not None and self._guard is not None:
                self._guard.forget(process.pid)

    @property
    def closed(self) -> bool:
        return self._closed

    def kill_all(self) -> None:
        """Kill what is alive, wait a moment for what is just being started, and let nothing start any more."""
        with self._changed:
            self._closed = True
            live = list(self._live)
            for process in live:
                signal_group(process, signal.SIGKILL)
            self._changed.wait_for(lambda: not self._starting, START_GRACE_S)
            if self._guard is not None:
                self._guard.end()


class Sink:
    """Keeps the first bytes of a stream up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.truncated = False
        self._parts: List[bytes] = []
        self._size = 0

    @property
    def full(self) -> bool:
        return self.truncated

    def feed(self, data: bytes) -> None:
        room = self.limit - self._size
        if len(data) > room:
            self.truncated = True
            data = data[:room]
        self._parts.append(data)
        self._size += len(data)

    def value(self) -> bytes:
        return b"".join(self._parts)


class LineSink(Sink):
    """Keeps the lines that a filter wants: the first quarter of the limit and the most recent three quarters."""

    def __init__(self, limit: int, keep: Keep) -> None:
        super().__init__(limit)
        self._keep = keep
        self._rest = b""
        self._tail: Deque[bytes] = deque()
        self._tail_size = 0

    @property
    def full(self) -> bool:
        return False

    def feed(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LINE_LIMIT:
            lines.append(self._rest[:LINE_LIMIT])
            self._rest = b""
        for line in lines:
            self._line(line)

    def _line(self, line: bytes) -> None:
        if not self._keep(line):
            return
        line = line[:LINE_LIMIT] + b"\n"
        if not self._tail and self._size + len(line) <= self.limit // 4:
            self._parts.append(line)
            self._size += len(line)
            return
        self._tail.append(line)
        self._tail_size += len(line)
        while self._tail_size > self.limit - self.limit // 4:
            self._tail_size -= len(self._tail.popleft())
            self.truncated = True

    def value(self) -> bytes:
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        return b"".join(self._parts) + b"".join(self._tail)


def signal_group(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Signal a command's group. Its leader is not reaped yet, so the number cannot have gone to somebody else."""
    if process.returncode is not None:
        return
    try:
        os.killpg(process.pid, number)
    except OSError:
        pass


def _ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether the command has ended, without reaping it: its process group stays ours to signal."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except OSError:
        return True  # reaped elsewhere (SIGCHLD ignored)


def _wait_ended(process: "subprocess.Popen[bytes]", end: float) -> bool:
    pause = 0.0005
    while not _ended(process):
        left = end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 2, POLL_S)
    return True


_abandoned: "List[subprocess.Popen[bytes]]" = []


def _stop(process: "subprocess.Popen[bytes]") -> bool:
    """End the whole group and reap its leader; False when it cannot be killed."""
    if not _ended(process):
        signal_group(process, signal.SIGTERM)
        _wait_ended(process, time.monotonic() + TERM_GRACE_S)
    signal_group(process, signal.SIGKILL)
    if not _wait_ended(process, time.monotonic() + KILL_GRACE_S):
        _abandoned.append(process)
        return False
    process.wait()
    return True


def _attend(process: "subprocess.Popen[bytes]", sinks: Dict[int, Sink], end: float) -> str:
    """Read until the command has ended: `ended`, `left` (a child holds the pipe), `full` or `timeout`."""
    ended_at: Optional[float] = None
    with selectors.DefaultSelector() as selector:
        for fd in sinks:
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            now = time.monotonic()
            if now >= end:
                return "timeout"
            events = selector.select(min(end - now, POLL_S))
            for key, _mask in events:
                try:
                    data = os.read(key.fd, 65536)
                except BlockingIOError:
                    continue
                if not data:
                    selector.unregister(key.fd)
                    continue
                sinks[key.fd].feed(data)
                if sinks[key.fd].full and key.fd == next(iter(sinks)):
                    return "full"
            if ended_at is None:
                if not events and _ended(process):
                    ended_at = time.monotonic()
            elif time.monotonic() - ended_at > LEFT_BEHIND_S:
                return "left"
    return "ended" if _wait_ended(process, end) else "timeout"


def _could_not_start(error: OSError, argv: List[str], done: Finished) -> None:
    if error.errno in (errno.EACCES, errno.EPERM):
        done.status = "denied"
    elif error.errno == errno.ENOENT:
        done.status = "absent"
    else:
        done.status = "error"
    done.why = "%s: %s" % (argv[0], error.strerror or error)


def run(
    argv: List[str],
    env: Dict[str, str],
    *,
    end: float,
    limit: int,
    groups: Groups,
    keep: Optional[Keep] = None,
) -> Finished:
    """Run `argv` until it ends or the monotonic time `end`; whatever it printed by then is kept."""
    done = Finished()
    started = time.monotonic()
    try:
        process = groups.start(argv, env)
    except OSError as error:
        _could_not_start(error, argv, done)
        return done
    except ValueError as error:  # a NUL in an argument
        done.status, done.why = "error", str(error)
        return done
    out = LineSink(limit, keep) if keep else Sink(limit)
    err = Sink(STDERR_LIMIT)
    stdout = cast(IO[bytes], process.stdout)
    stderr = cast(IO[bytes], process.stderr)
    try:
        how = _attend(process, {stdout.fileno(): out, stderr.fileno(): err}, end)
        killed = _stop(process)
    finally:
        groups.discard(process)
        stdout.close()
        stderr.close()
    done.stdout, done.stderr, done.truncated = out.value(), err.value(), out.truncated
    if how == "timeout":
        done.status = "timeout"
        done.why = "still running after %.1f s%s" % (
            time.monotonic() - started,
            "" if killed else "; it could not be killed",
        )
    elif how == "full":
        done.why = "stopped at the output limit of %d bytes" % limit
    else:
        _judge(process, how, done)
    return done


def _judge(process: "subprocess.Popen[bytes]", how: str, done: Finished) -> None:
    done.rc = process.returncode
    if how == "left":
        done.why = "a process that it left behind kept its output open"
    if done.rc == 0:
        return
    denied = not done.stdout and _DENIED.search(done.stderr) is not None
    done.status = "denied" if denied else "error"
    first = complaints(done.stderr.decode("utf-8", "replace")).split("\n")[0]
    done.why = "exit status %d%s" % (done.rc, ": " + first if first else "")
