"""Runs a plan: wave by wave, each run in its own process group with a time limit, every result kept at once: the bus
bandwidth at the greatest size of its output, or why there is none.

One loop looks after all runs of a wave. Whatever ends the program, its runs end with it: the launchers get SIGTERM,
which srun and mpirun pass on to the nodes, and after a grace SIGKILL.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from topodiag.evidence.nccl_tests import pair_runs, read_file
from topodiag.lazy import dataclass
from topodiag.model.errors import TopodiagError
from topodiag.sweep.commands import IB_WRITE_BW, Command, command
from topodiag.sweep.store import Store
from topodiag.sweep.values import State, SweepPlan, SweepResult, SweepRun
from topodiag.words.units import in_s, spell_bytes

MAX_WHY = 200
_GIVEN_UP = (b"error", b"fail", b"unable", b"cannot", b"could not", b"not found", b"no such", b"denied", b"invalid")


@dataclass(frozen=True, slots=True)
class Measured:
    """The state of an attempt, with its bandwidth (GB/s) and the size (bytes) where there is a table."""

    state: State
    gbs: float | None = None
    size: int = 0
    why: str = ""


def measured(run: SweepRun, output: bytes, exit_code: int | None) -> Measured:
    """Judge a run that ended by itself. Never raises for content."""
    if run.program == IB_WRITE_BW:
        return _write_bw(run, output, exit_code)
    runs = read_file(output, run.id).runs
    with_rows = [run for run in runs if run.rows]
    if not with_rows:
        return _without_table(output, exit_code, next((run.errors for run in runs if run.errors), ()))
    table = with_rows[-1]
    ranks = len(run.nodes) * len(run.gpus)
    if table.nranks is not None and table.nranks != ranks:
        why = "the program was built without MPI" if table.nranks == 1 else "the launcher started another number"
        return Measured(State.FAILED, why=f"{table.nranks} of {ranks} ranks measured: {why}")
    rows = [row for row in table.rows if not row.cut and row.busbw_gbs is not None]
    best = max(rows, key=lambda row: row.size, default=None)
    gbs, size = (best.busbw_gbs, best.size) if best is not None else (None, 0)
    if table.wrong_values:
        return Measured(State.WRONG, gbs, size, "wrong results: the data that arrived is not what was sent")
    if exit_code:
        return Measured(State.FAILED, gbs, size, _why(output, exit_code, table.errors))
    if gbs is None or not gbs > 0:
        return Measured(State.NO_TABLE, why="its table has no bandwidth")
    return Measured(State.OK, gbs, size)


def _write_bw(run: SweepRun, output: bytes, exit_code: int | None) -> Measured:
    tests = pair_runs(output.decode("utf-8", "replace"), run.id, run.nodes)
    if not tests:
        return _without_table(output, exit_code, ())
    last = tests[-1].rows[-1]
    gbs = last.busbw_gbs or 0.0
    if exit_code:
        return Measured(State.FAILED, gbs, last.size, _why(output, exit_code, ()))
    return Measured(State.OK, gbs, last.size) if gbs > 0 else Measured(State.NO_TABLE, why="its bandwidth is 0")


def _without_table(output: bytes, exit_code: int | None, errors: tuple[str, ...]) -> Measured:
    if exit_code:
        return Measured(State.FAILED, why=_why(output, exit_code, errors))
    return Measured(State.NO_TABLE, why=_last_words(output) or "it printed nothing")


def _why(output: bytes, exit_code: int, errors: tuple[str, ...]) -> str:
    how = f"ended by signal {-exit_code}" if exit_code < 0 else f"exit {exit_code}"
    words = errors[0] if errors else _last_words(output)
    return f"{how}: {words}"[:MAX_WHY] if words else how


def _last_words(output: bytes) -> str:
    """The first line that speaks of an error, else the last line, of the end of the output."""
    lines = [line.strip() for line in output[-20_000:].splitlines() if line.strip(b"# \t\r")]
    data = next(
        (line for line in lines if any(word in line.lower() for word in _GIVEN_UP)), lines[-1] if lines else b""
    )
    return data.decode("utf-8", "replace")[:MAX_WHY]


GRACE_S = 5.0
"""From SIGTERM to SIGKILL: srun needs a moment to end its step on all nodes."""
SERVER_LEAD_S = 2.0
"""ib_write_bw's client gives up when its server does not listen yet."""
POLL_S = 0.05
MAX_OUTPUT = 64 << 20
"""Bytes of output after which a run is ended: a benchmark writes some thousand; NCCL_DEBUG=TRACE fills disks."""
ALIKE_FAILURES = 5
"""So many failures and no success: it is the command, and the next hundred runs would fail too."""
BUILDS = ("/opt/nccl-tests/build", "/usr/local/nccl-tests/build", "/opt/nccl-tests/bin")
"""Where images of cloud providers have nccl-tests; looked at after PATH."""
_DONE = frozenset({State.OK, State.WRONG})


@dataclass(frozen=True, slots=True)
class Summary:
    """What a call of `run_plan` came to: results by state, runs that had been done before, and whether it gave up."""

    done: int
    before: int
    states: Mapping[State, int]
    gave_up: str = ""


def find_programs(plan: SweepPlan, folder: str | None = None) -> tuple[dict[str, str], tuple[str, ...]]:
    """The path of each program that the plan calls by name, and the names that were not found. nccl-tests builds with
    a suffix are found too (`all_reduce_perf_mpi`)."""
    wanted = dict.fromkeys(run.program for run in plan.runs)
    programs: dict[str, str] = {}
    missing: list[str] = []
    for name in wanted:
        places = [folder] if folder is not None else [None, *BUILDS]
        paths = (shutil.which(program, path=place) for program in (name, name + "_mpi") for place in places)
        path = next((path for path in paths if path is not None), None)
        if path is None:
            missing.append(name)
        else:
            programs[name] = str(Path(path).resolve()) if folder is not None else path
    launcher = plan.launch.launcher
    if launcher != "none" and shutil.which(launcher) is None:
        missing.append(launcher)
    return programs, tuple(missing)


def placed(planned: Command, program: str, path: str) -> Command:
    """The command with the benchmark's path in place of its name."""
    return Command(
        tuple(path if word == program else word for word in planned.argv),
        tuple(path if word == program else word for word in planned.server),
    )


def run_plan(
    plan: SweepPlan,
    store: Store,
    programs: Mapping[str, str],
    *,
    parallel: int,
    retry: bool = False,
    keep_going: bool = False,
    on_result: Callable[[SweepResult, int, int], None] | None = None,
) -> Summary:
    """Do all runs that have no result yet (with `retry`, also those that failed). `on_result` gets each result, how
    many are done and how many there are. On KeyboardInterrupt all runs are ended, noted as interrupted, and it is
    raised again; another call goes on from there."""
    kept = {State.INTERRUPTED} if not retry else set(State) - _DONE
    todo = [run for run in plan.runs if run.id not in store.last or store.last[run.id].state in kept]
    sweep = _Sweep(plan, store, programs, on_result, len(plan.runs) - len(todo))
    try:
        gave_up = asyncio.run(sweep.all(todo, max(parallel, 1), keep_going))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    return Summary(sum(sweep.states.values()), len(plan.runs) - len(todo), dict(sweep.states), gave_up)


@dataclass(slots=True)
class _Sweep:
    """A plan under way: how many of its runs are done, earlier ones too, and what those of this call came to."""

    plan: SweepPlan
    store: Store
    programs: Mapping[str, str]
    on_result: Callable[[SweepResult, int, int], None] | None
    done: int
    states: dict[State, int] = field(default_factory=dict)
    whys: list[str] = field(default_factory=list)

    async def all(self, runs: Sequence[SweepRun], parallel: int, keep_going: bool) -> str:
        """Wave by wave, at most `parallel` at a time. Why it gave up, or "". SIGTERM (a batch system's time limit) and
        SIGHUP (a lost terminal) end the runs as Ctrl-C does."""
        task = asyncio.current_task()
        if task is not None and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        for wave in sorted({run.wave for run in runs}):
            room = asyncio.Semaphore(parallel)
            try:
                async with asyncio.TaskGroup() as group:
                    for run in (run for run in runs if run.wave == wave):
                        group.create_task(self._one(run, room, keep_going))
            except ExceptionGroup as failed:
                raise failed.exceptions[0] from None
            if not keep_going and self._hopeless():
                return self.whys[0]
        return ""

    def _hopeless(self) -> bool:
        return len(self.whys) >= ALIKE_FAILURES and set(self.states) <= {State.FAILED, State.NO_TABLE}

    async def _one(self, run: SweepRun, room: asyncio.Semaphore, keep_going: bool) -> None:
        async with room:
            if not keep_going and self._hopeless():
                return
            last = self.store.last.get(run.id)
            attempt = last.attempt + 1 if last is not None else 1
            output = self.store.output(run.id, attempt)
            began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")

            def result(outcome: Measured, code: int | None = None) -> SweepResult:
                return SweepResult(
                    run.id, self.plan.round, outcome.state, outcome.gbs, outcome.size, time.monotonic() - began, code,
                    attempt, started, f"output/{output.name}", outcome.why,
                )  # fmt: skip

            try:
                done = result(*await self._outcome(run, output))
            except asyncio.CancelledError:
                with suppress(TopodiagError):
                    self.store.add(result(Measured(State.INTERRUPTED, why="interrupted")))
                raise
            self._keep(done)

    def _keep(self, result: SweepResult) -> None:
        self.store.add(result)
        self.states[result.state] = self.states.get(result.state, 0) + 1
        if result.state in {State.FAILED, State.NO_TABLE}:
            self.whys.append(result.why)
        self.done += 1
        if self.on_result is not None:
            self.on_result(result, self.done, len(self.plan.runs))

    async def _outcome(self, run: SweepRun, output: Path) -> tuple[Measured, int | None]:
        """What a run comes to, and its exit code. Whatever ends it, nothing that was started for it is left."""
        planned = placed(command(self.plan, run), run.program, self.programs.get(run.program, run.program))
        processes: list[subprocess.Popen[bytes]] = []
        limit_s, printed = self.plan.launch.timeout_s, None
        state, why = State.FAILED, f"more than {spell_bytes(MAX_OUTPUT)} of output"
        try:
            async with asyncio.timeout(limit_s):
                printed = await _printed(planned, output, processes)
        except TimeoutError:
            state, why = State.TIMEOUT, f"no end after {in_s(limit_s)}"
        except OSError as error:
            why = f"cannot be started: {error.strerror or error}"
        finally:
            await _end(processes, GRACE_S if printed is None else 0.0)
        code = processes[-1].returncode if len(processes) > bool(planned.server) else None
        return Measured(state, why=why) if printed is None else measured(run, printed, code), code


async def _printed(planned: Command, output: Path, processes: list[subprocess.Popen[bytes]]) -> bytes | None:
    """Starts a command, and adds what it started to the processes. All that it prints until it ends, None where that is
    too much. Raises OSError."""
    if planned.server:
        with output.with_suffix(".server.txt").open("ab") as stream:
            processes.append(_popen(planned.server, stream))
        output.touch()
        await asyncio.sleep(SERVER_LEAD_S)
    with output.open("a+b") as stream:
        client = _popen(planned.argv, stream)
        processes.append(client)
        while os.fstat(stream.fileno()).st_size <= MAX_OUTPUT:
            if client.poll() is not None:
                stream.seek(0)
                return stream.read(MAX_OUTPUT)
            await asyncio.sleep(POLL_S)
    return None


def _popen(argv: Sequence[str], stream: BinaryIO) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
    )


async def _end(processes: Sequence[subprocess.Popen[bytes]], grace_s: float) -> None:
    """Ask what still runs to end, and end it after so many seconds, with stray children and a server that outlives its
    client. A second interruption ends it at once."""
    try:
        if grace_s:
            _signal(processes, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await _gone(processes)
    finally:
        _signal(processes, signal.SIGKILL)
    await _gone(processes)


async def _gone(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    while any(process.poll() is None for process in processes):
        await asyncio.sleep(POLL_S)


def _signal(processes: Sequence[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    """To the whole groups: each has the number of its first process, and may outlive it."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
