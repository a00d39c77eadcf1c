"""Runs a plan: wave by wave, each run in its own process group with a time limit, every result kept at once.

One thread looks after all runs of a wave. Whatever ends the program, its runs end with it: the launchers get SIGTERM,
which srun and mpirun pass on to the nodes, and after a grace SIGKILL.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from topodiag.lazy import dataclass
from topodiag.model.errors import TopodiagError
from topodiag.model.sweep import State, SweepPlan, SweepResult, SweepRun
from topodiag.sweep.commands import Command, command
from topodiag.sweep.outcome import Measured, measured
from topodiag.sweep.store import Store
from topodiag.words.units import in_s, spell_bytes

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


@dataclass(slots=True)
class _ActiveRun:
    """A run at work."""

    run: SweepRun
    attempt: int
    command: Command
    output: Path
    began: float
    started: str
    deadline: float
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    client_at: float = 0.0
    client: subprocess.Popen[bytes] | None = None
    stop: State | None = None
    why: str = ""
    kill_at: float = 0.0


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
    loop = _Loop(plan, store, programs, on_result, len(plan.runs) - len(todo))
    gave_up = ""
    with _ended_by_signals():
        for wave in sorted({run.wave for run in todo}):
            gave_up = loop.wave([run for run in todo if run.wave == wave], max(parallel, 1), keep_going)
            if gave_up:
                break
    return Summary(sum(loop.states.values()), len(plan.runs) - len(todo), dict(loop.states), gave_up)


class _Loop:
    def __init__(
        self,
        plan: SweepPlan,
        store: Store,
        programs: Mapping[str, str],
        on_result: Callable[[SweepResult, int, int], None] | None,
        before: int,
    ) -> None:
        self.plan, self.store, self.programs, self.on_result = plan, store, programs, on_result
        self.done = before
        self.states: dict[State, int] = {}
        self.at_work: list[_ActiveRun] = []
        self.whys: list[str] = []

    def wave(self, runs: Sequence[SweepRun], parallel: int, keep_going: bool) -> str:
        """All of them, at most `parallel` at a time. Why it gave up, or ""."""
        waiting = list(reversed(runs))
        try:
            while waiting or self.at_work:
                if not keep_going and self._hopeless():
                    waiting.clear()
                while waiting and len(self.at_work) < parallel:
                    self._start(waiting.pop())
                self._look()
                if self.at_work:
                    time.sleep(POLL_S)
        except BaseException:
            self._end_all()
            raise
        return self.whys[0] if not keep_going and self._hopeless() else ""

    def _hopeless(self) -> bool:
        return len(self.whys) >= ALIKE_FAILURES and set(self.states) <= {State.FAILED, State.NO_TABLE}

    def _start(self, run: SweepRun) -> None:
        last = self.store.last.get(run.id)
        attempt = last.attempt + 1 if last is not None else 1
        now = time.monotonic()
        active = _ActiveRun(
            run,
            attempt,
            placed(command(self.plan, run), run.program, self.programs.get(run.program, run.program)),
            self.store.output(run.id, attempt),
            now,
            datetime.now(UTC).isoformat(timespec="seconds"),
            now + self.plan.launch.timeout_s,
        )
        try:
            if active.command.server:
                active.processes.append(_popen(active.command.server, active.output.with_suffix(".server.txt")))
                active.client_at = now + SERVER_LEAD_S
                active.output.touch()
        except OSError as error:
            self._keep(active, Measured(State.FAILED, why=_unstartable(error)), None)
            return
        self.at_work.append(active)

    def _look(self) -> None:
        """Start clients, those of a server when it had its lead, stop what is over its time, keep what has ended."""
        now = time.monotonic()
        for active in list(self.at_work):
            if active.client is None and active.stop is None and now >= active.client_at:
                try:
                    active.client = _popen(active.command.argv, active.output)
                    active.processes.append(active.client)
                except OSError as error:
                    _stop(active, State.FAILED, _unstartable(error), now)
            if active.stop is None and now >= active.deadline:
                _stop(active, State.TIMEOUT, f"no end after {in_s(self.plan.launch.timeout_s)}", now)
            elif active.stop is None and _size(active.output) > MAX_OUTPUT:
                _stop(active, State.FAILED, f"more than {spell_bytes(MAX_OUTPUT)} of output", now)
            if active.stop is not None and now >= active.kill_at:
                _signal(active, signal.SIGKILL)
            main = active.client
            ended = main is not None and main.poll() is not None
            if ended and active.stop is None:
                for process in active.processes:  # a server that outlives its client, and stray children
                    _signal_one(process, signal.SIGKILL)
            if (ended or active.stop is not None) and all(p.poll() is not None for p in active.processes):
                self._ended(active)

    def _ended(self, active: _ActiveRun) -> None:
        self.at_work.remove(active)
        for process in active.processes:
            _signal_one(process, signal.SIGKILL, group_only=True)
        code = active.client.returncode if active.client is not None else None
        if active.stop is not None:
            self._keep(active, Measured(active.stop, why=active.why), code)
            return
        try:
            with active.output.open("rb") as stream:
                output = stream.read(MAX_OUTPUT)
        except OSError as error:
            self._keep(active, Measured(State.FAILED, why=f"its output cannot be read: {error.strerror}"), code)
            return
        self._keep(active, measured(active.run, output, code), code)

    def _keep(self, process: _ActiveRun, outcome: Measured, code: int | None) -> None:
        result = SweepResult(
            process.run.id, self.plan.round, outcome.state, outcome.gbs, outcome.size, time.monotonic() - process.began,
            code, process.attempt, process.started, f"output/{process.output.name}", outcome.why,
        )  # fmt: skip
        self.store.add(result)
        if outcome.state is State.INTERRUPTED:
            return
        self.states[outcome.state] = self.states.get(outcome.state, 0) + 1
        if outcome.state in {State.FAILED, State.NO_TABLE}:
            self.whys.append(outcome.why)
        self.done += 1
        if self.on_result is not None:
            self.on_result(result, self.done, len(self.plan.runs))

    def _end_all(self) -> None:
        """End every run, kindly first; a second interruption ends them at once."""
        for active in self.at_work:
            _signal(active, signal.SIGTERM)
        with suppress(KeyboardInterrupt):
            until = time.monotonic() + GRACE_S
            while time.monotonic() < until and any(
                p.poll() is None for process in self.at_work for p in process.processes
            ):
                time.sleep(POLL_S)
        for active in self.at_work:
            _signal(active, signal.SIGKILL)
        for active in self.at_work:
            for process in active.processes:
                process.wait()
            with suppress(TopodiagError):
                self._keep(active, Measured(State.INTERRUPTED, why="interrupted"), None)
        self.at_work.clear()


def _popen(argv: Sequence[str], output: Path) -> subprocess.Popen[bytes]:
    with output.open("xb" if not output.exists() else "ab") as stream:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )


def _unstartable(error: OSError) -> str:
    return f"cannot be started: {error.strerror or error}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _stop(process: _ActiveRun, state: State, why: str, now: float) -> None:
    process.stop, process.why, process.kill_at = state, why, now + GRACE_S
    _signal(process, signal.SIGTERM)


def _signal(active: _ActiveRun, number: signal.Signals) -> None:
    for process in active.processes:
        _signal_one(process, number)


def _signal_one(process: subprocess.Popen[bytes], number: signal.Signals, *, group_only: bool = False) -> None:
    """To the whole group; it has the number of its first process, and may outlive it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
        return
    if not group_only:
        process.send_signal(number)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM (a batch system's time limit) and SIGHUP (a lost terminal) end the runs as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    old = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
