"""Local programs whose lines come from nodes: a launcher for all of them, or one program a node.

Each has its time, ends when this program does, and is asked to end before it is made to: a launcher then ends what it
started elsewhere.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import IO

from topodiag.fleet.collect.interface import Ear
from topodiag.lazy import dataclass

POLL_S = 0.2
KIND_S = 5.0
"""Between asking a program to end and ending it."""
BLOCK = 1 << 16
MAX_LINE = 1 << 20
"""Bytes without an end of line that are kept: no line of the collector is as long as 1024."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program to run: whose lines it brings ("" for many nodes), and what is written to its standard input, which
    stays open until the program ends."""

    node: str
    argv: Sequence[str]
    given: bytes = b""
    env: Mapping[str, str] | None = None


@dataclass(slots=True)
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    end: float
    given: memoryview
    rests: dict[int, bytes] = field(default_factory=dict)
    kill_at: float = 0.0
    late: bool = False


class Pump:
    """Runs programs side by side, at most `fanout` at once, each for `limit_s` seconds. One that wrote a line that
    `is_last` is ended."""

    def __init__(
        self, ear: Ear, fanout: int, limit_s: float, is_last: Callable[[bytes], bool] = lambda _: False
    ) -> None:
        self._ear, self._fanout, self._limit_s, self._is_last = ear, fanout, limit_s, is_last
        self._selector = selectors.DefaultSelector()
        self._running: list[_Running] = []

    def run(self, jobs: Sequence[Job], within_s: float) -> bool:
        """Run all. False: the time of the whole was over first, and what still ran was ended."""
        end, waiting = time.monotonic() + within_s, list(reversed(jobs))
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self._fanout:
                    self._start(waiting.pop())
                if time.monotonic() > end:
                    return False
                self._turn()
        finally:
            self._end_all()
            self._selector.close()
        return True

    def _start(self, job: Job) -> None:
        try:
            process = subprocess.Popen(
                job.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=job.env,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._ear.complains(job.node, f"{job.argv[0]}: {error.strerror or error}".encode())
            self._ear.ends(job.node, 127)
            return
        running = _Running(job, process, time.monotonic() + self._limit_s, memoryview(job.given))
        self._running.append(running)
        self._ear.begins(job.node)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None  # noqa: S101 - pipes, as asked
            os.set_blocking(stream.fileno(), False)
            if job.given or stream is not process.stdin:
                event = selectors.EVENT_WRITE if stream is process.stdin else selectors.EVENT_READ
                self._selector.register(stream, event, (running, stream))

    def _turn(self) -> None:
        for key, _ in self._selector.select(POLL_S):
            running, stream = key.data
            if stream is running.process.stdin:
                self._write(running, stream)
            else:
                self._read(running, stream)
        now = time.monotonic()
        for running in list(self._running):
            if running.kill_at and now > running.kill_at:
                _signal(running.process, signal.SIGKILL)
            elif not running.kill_at and now > running.end:
                running.late = True
                self._ask_to_end(running)
            if running.process.poll() is None:
                continue
            keys = [key for key in self._selector.get_map().values() if key.data[0] is running]
            if not any(key.events & selectors.EVENT_READ for key in keys) or now > running.end + KIND_S:
                self._ended(running)

    def _write(self, running: _Running, stream: IO[bytes]) -> None:
        try:
            written = os.write(stream.fileno(), running.given[:BLOCK])
            running.given = running.given[written:]
        except BlockingIOError:
            return
        except OSError:
            running.given = running.given[:0]  # it ended; its standard error says why
        if not running.given:
            self._selector.unregister(stream)

    def _read(self, running: _Running, stream: IO[bytes]) -> None:
        try:
            data = os.read(stream.fileno(), BLOCK)
        except BlockingIOError:
            return
        lines = (running.rests.pop(stream.fileno(), b"") + data).split(b"\n")
        rest = lines.pop()
        if data and len(rest) < MAX_LINE:
            running.rests[stream.fileno()] = rest
        elif rest:
            lines.append(rest)
        if not data:
            self._selector.unregister(stream)
        for line in lines:
            if stream is running.process.stderr:
                self._ear.complains(running.job.node, line)
            elif not self._ear.hears(running.job.node, line) or self._is_last(line):
                self._ask_to_end(running)

    def _ask_to_end(self, running: _Running) -> None:
        if not running.kill_at:
            running.kill_at = time.monotonic() + KIND_S
            _signal(running.process, signal.SIGTERM)

    def _ended(self, running: _Running) -> None:
        self._close(running)
        code = running.process.returncode
        if running.late:
            self._ear.late(running.job.node)
        else:
            self._ear.ends(running.job.node, code if code >= 0 else 128 - code)

    def _close(self, running: _Running) -> None:
        self._running.remove(running)
        for stream in (running.process.stdin, running.process.stdout, running.process.stderr):
            if stream is not None:
                with suppress(KeyError, ValueError):
                    self._selector.unregister(stream)
                with suppress(OSError):
                    stream.close()

    def _end_all(self) -> None:
        """Ask what still runs to end, and end it after a moment."""
        for running in self._running:
            _signal(running.process, signal.SIGTERM)
        until = time.monotonic() + KIND_S
        for running in list(self._running):
            try:
                running.process.wait(max(until - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                _signal(running.process, signal.SIGKILL)
                running.process.wait()
            self._close(running)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
