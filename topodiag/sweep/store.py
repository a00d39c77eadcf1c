"""The folder of a sweep: plans by round, a line for every attempt, the whole output of each. Nothing is rewritten.

A result is appended and on the disk before the next run starts; a line that a crash tore is left out when read, and its
run is done again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from topodiag.lazy import dataclass, regex
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.sweep.planfile import plan_text, read_plan
from topodiag.sweep.values import State, SweepPlan, SweepResult
from topodiag.writing import replacing

RESULTS = "results.jsonl"
MAX_LINE = 1 << 16
_PLAN = regex(r"plan-([1-9]\d{0,3})\.json", re.ASCII)
_LONGEST = 180
MOST = 1 << 50
"""Bytes, GB/s, seconds or attempts: more than any run has."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a folder holds: plans in the order of rounds, attempts in the order of time; lines that were no result; the
    files that it was read from."""

    plans: tuple[SweepPlan, ...]
    results: tuple[SweepResult, ...]
    torn: int = 0
    inputs: tuple[Input, ...] = ()


def read_store(folder: str) -> Stored:
    """Everything in the folder. Raises InputError where it is no folder of a sweep."""
    place = Path(folder)
    try:
        names = sorted(entry.name for entry in place.iterdir())
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise InputError(folder, what, hint="give the folder of `topodiag bench run`") from None
    rounds = sorted((int(match[1]), name) for name in names if (match := _PLAN.fullmatch(name)))
    if not rounds:
        raise InputError(folder, "holds no sweep (no plan-1.json)", hint="topodiag bench run PLAN makes such a folder")
    plans = tuple(read_plan(str(place / name)) for _, name in rounds)
    for plan, (number, name) in zip(plans, rounds, strict=True):
        if plan.round != number:
            raise InputError(str(place / name), f"is the plan of round {plan.round}")
        if plan.fabric != plans[0].fabric:
            raise InputError(str(place / name), "is of another fabric than the first round's")
    results, read = _results(place / RESULTS)
    inputs = (*(_plan_input(place / name) for _, name in rounds), *read)
    return Stored(plans, tuple(results), sum(file.unparsed for file in read), inputs)


def _plan_input(path: Path) -> Input:
    data = path.read_bytes()
    return Input(str(path), "sweep plan", hashlib.sha256(data).hexdigest(), data.count(b"\n"))


def _results(path: Path) -> tuple[list[SweepResult], tuple[Input, ...]]:
    """The results, and the file with its lines that were none; no file where no run has ended yet."""
    results: list[SweepResult] = []
    torn = lines = 0
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while line := stream.readline(MAX_LINE):
                digest.update(line)
                lines += 1
                result = _result(line)
                if result is not None:
                    results.append(result)
                elif line.strip():
                    torn += 1
    except FileNotFoundError:
        return [], ()
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror or error}") from None
    return results, (Input(str(path), "sweep results", digest.hexdigest(), lines, unparsed=torn),)


def _result(line: bytes) -> SweepResult | None:
    """The result of a line; None for a line that is none, which costs that run alone: it is done again."""
    try:
        result = msgspec.json.decode(line, type=SweepResult)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    numbers = (result.round, result.attempt, result.size, result.seconds, result.gbs or 0.0)
    in_bounds = min(numbers[:2]) >= 1 and all(0 <= number < MOST for number in numbers)
    return result if in_bounds and (result.gbs is not None or result.state is not State.OK) else None


class Store:
    """A sweep's folder, held by one `bench run` at a time."""

    def __init__(self, place: Path, plan: SweepPlan) -> None:
        self.place, self.plan = place, plan
        self.last: dict[str, SweepResult] = {}
        for result in _results(place / RESULTS)[0]:
            if result.round == plan.round:
                self.last[result.run] = result
        self._file = (place / RESULTS).open("ab")
        _end_torn_line(place / RESULTS, self._file.fileno())

    def output(self, run: str, attempt: int) -> Path:
        """Where an attempt's output goes: a name of its own for each, so that none is overwritten."""
        name = run if len(run) <= _LONGEST else f"{run[:_LONGEST]}-{hashlib.sha256(run.encode()).hexdigest()[:12]}"
        place = self.place / "output" / f"{name}.{attempt}.txt"
        while place.exists():  # left by an attempt whose line was not written any more
            attempt += 1
            place = place.with_name(f"{name}.{attempt}.txt")
        return place

    def add(self, result: SweepResult) -> None:
        """Append one line and wait until the disk has it. Raises InputError."""
        try:
            text = msgspec.json.encode(replace(result, seconds=round(result.seconds, 3))) + b"\n"
            while text:
                text = text[os.write(self._file.fileno(), text) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            hint = "free some room and run the plan again: it goes on from here"
            raise InputError(str(self.place / RESULTS), f"cannot be written: {error.strerror}", hint=hint) from None
        self.last[result.run] = result

    def close(self) -> None:
        self._file.close()


def _end_torn_line(path: Path, file: int) -> None:
    """The next line begins on its own, whatever the last one's end was."""
    with path.open("rb") as stream:
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":
                os.write(file, b"\n")


@contextmanager
def opened_store(folder: str, plan: SweepPlan) -> Iterator[Store]:
    """The folder for this plan, made where it is not there. Raises InputError where it is of another sweep, or another
    `bench run` is at work in it."""
    place = Path(folder)
    try:
        (place / "output").mkdir(parents=True, exist_ok=True)
        with (place / ".lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(folder, "another bench run is at work in it", hint="wait for it") from None
            _settle(place, plan)
            store = Store(place, plan)
            try:
                yield store
            finally:
                store.close()
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise InputError(folder, f"cannot be used: {error.strerror or error}") from None


def _settle(place: Path, plan: SweepPlan) -> None:
    """Put the plan where it belongs, or find it there."""
    path = place / f"plan-{plan.round}.json"
    if path.exists():
        if read_plan(str(path)) != plan:
            raise InputError(str(path), f"is another plan of round {plan.round}", hint="name a new one with --to")
        return
    if any(place.glob("plan-*.json")):
        first = read_plan(str(min(place.glob("plan-*.json"))))
        if first.fabric != plan.fabric:
            raise InputError(str(place), "holds a sweep of another fabric", hint="name a new one with --to")
    elif plan.round > 1:
        hint = f"give the folder of round {plan.round - 1} with --to"
        raise InputError(str(place), f"holds no round before round {plan.round}", hint=hint)
    with replacing(str(path)) as stream:
        stream.write(plan_text(plan).encode())
        stream.flush()
        os.fsync(stream.fileno())
