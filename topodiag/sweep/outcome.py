"""What one run's output says: the bus bandwidth at its greatest size, or why there is none."""

from __future__ import annotations

from topodiag.evidence.nccl_tests import pair_runs, read_file
from topodiag.lazy import dataclass
from topodiag.model.sweep import State, SweepRun
from topodiag.sweep.commands import IB_WRITE_BW

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
