"""Local programs whose lines come from nodes: a launcher for all of them, or one program a node.

Each has its time, ends when this program does, and is asked to end before it is made to: a launcher then ends what it
started elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from topodiag.fleet.collect.interface import Ear
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.words.units import in_s

KIND_S = 5.0
"""Between asking a program to end and ending it."""
BLOCK = 1 << 16
LEAST_S = 0.2
"""Of the whole: who begins when it is over is asked all the same, and was not forgotten."""
MAX_LINE = 1 << 20
"""Bytes without an end of line that are kept: no line of the collector is as long as 1024."""
ANSWER_S = 60.0
"""For a program that answers at once, where the service that it asks is there."""


def answer_of(*argv: str, given: bytes = b"", hint: str = "") -> bytes:
    """Standard output of a program. Raises InputError with its own last word, or where it does not answer in time."""
    try:
        done = subprocess.run(argv, input=given, capture_output=True, timeout=ANSWER_S, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(argv[0], f"did not answer within {in_s(ANSWER_S)}", hint=hint) from None
    if done.returncode:
        texts = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(argv[0], texts[-1][:300] if texts else f"exit status {done.returncode}", hint=hint)
    return done.stdout


@dataclass(frozen=True, slots=True)
class Job:
    """A program to run: whose lines it brings ("" for many nodes), and what is written to its standard input, which
    stays open until the program ends."""

    node: str
    argv: Sequence[str]
    given: bytes = b""
    env: Mapping[str, str] | None = None


class Pump:
    """Runs programs side by side, at most `fanout` at once, each for `limit_s` seconds. One that wrote a line that
    `is_last` is ended."""

    def __init__(
        self, ear: Ear, fanout: int, limit_s: float, is_last: Callable[[bytes], bool] = lambda _: False
    ) -> None:
        self._ear, self._fanout, self._limit_s, self._is_last = ear, fanout, limit_s, is_last

    def run(self, jobs: Sequence[Job], within_s: float) -> bool:
        """Run all. False: the time of the whole was over first, and what still ran was ended."""
        return asyncio.run(self._all(jobs, within_s))

    async def _all(self, jobs: Sequence[Job], within_s: float) -> bool:
        room = asyncio.Semaphore(self._fanout)
        try:
            async with asyncio.timeout(max(within_s, LEAST_S)), asyncio.TaskGroup() as group:
                for job in jobs:
                    group.create_task(self._one(job, room))
        except TimeoutError:
            return False
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return True

    async def _one(self, job: Job, room: asyncio.Semaphore) -> None:
        async with room:
            try:
                process = await asyncio.create_subprocess_exec(
                    *job.argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=job.env, start_new_session=True
                )
            except OSError as error:
                self._ear.complains(job.node, f"{job.argv[0]}: {error.strerror or error}".encode())
                self._ear.ends(job.node, 127)
                return
            self._ear.begins(job.node)
            enough = asyncio.Event()
            talk = asyncio.create_task(self._talk(job, process, enough))
            asked = asyncio.create_task(enough.wait())
            try:
                in_time, _ = await asyncio.wait(
                    (talk, asked), timeout=self._limit_s, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                asked.cancel()
                await _end(process, talk)
            code = process.returncode or 0
            if in_time:
                self._ear.ends(job.node, code if code >= 0 else 128 - code)
            else:
                self._ear.late(job.node)

    async def _talk(self, job: Job, process: Process, enough: asyncio.Event) -> None:
        """Give the program its input and hand on what it says, until it has ended. Raises what the ear raises."""

        def hears(line: bytes) -> None:
            if not self._ear.hears(job.node, line) or self._is_last(line):
                enough.set()

        await asyncio.gather(
            _give(process.stdin, job.given),
            _listen(process.stdout, hears),
            _listen(process.stderr, partial(self._ear.complains, job.node)),
            process.wait(),
        )


async def _give(stream: asyncio.StreamWriter | None, given: bytes) -> None:
    if stream is not None and given:
        stream.write(given)
        with suppress(OSError):  # it ended; its standard error says why
            await stream.drain()


async def _listen(stream: asyncio.StreamReader | None, tell: Callable[[bytes], None]) -> None:
    """Hand on each line, and what stands behind the last one."""
    rest = b""
    while stream is not None and (data := await stream.read(BLOCK)):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) >= MAX_LINE:
            lines, rest = [*lines, rest], b""
        for line in lines:
            tell(line)
    if rest:
        tell(rest)


async def _end(process: Process, talk: asyncio.Task[None]) -> None:
    """Ask a program that still runs to end, and end it after a moment; what it says until then is heard. Raises what
    the ear raised."""
    over = asyncio.gather(talk, process.wait(), return_exceptions=True)
    try:
        _signal(process, signal.SIGTERM)
        await asyncio.wait((over,), timeout=KIND_S)
    finally:  # at once where the time of the whole is over meanwhile
        _signal(process, signal.SIGKILL)
        await asyncio.wait((over,), timeout=KIND_S)
    over.cancel()  # what the program left running has its pipes
    await asyncio.wait((talk,))
    if not talk.cancelled():
        talk.result()


def _signal(process: Process, number: signal.Signals) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
