"""From the bytes of one file to runs: the text or the JSON is read, then what a run leaves unsaid is inferred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.evidence.nccl_tests.infer import collective_of, commands_of, no_traffic, ranks_of, ratio_fits
from topodiag.evidence.nccl_tests.json_output import looks_like_json, read_json
from topodiag.evidence.nccl_tests.text import Draft, Read, TextReader
from topodiag.evidence.nccl_tests.words import collective_of_name
from topodiag.evidence.network.perftest import pair_runs
from topodiag.model.bench import BenchRow, BenchRun
from topodiag.model.provenance import Origin
from topodiag.model.result import UnreadLine

WITHOUT_MPI = "built without MPI"
NO_MPI = (
    f"{{count}} tables of one rank each: the program was {WITHOUT_MPI}, so every process measured itself alone; "
    "nothing here is a measurement (build with MPI=1)"
)
ADJACENT = 8
"""Lines between the heads of two runs without rows of which the first one did not end before the second began."""
ONE_RANK = "one rank: nothing is communicated, so no bandwidth was measured"


def read_runs(data: bytes, name: str) -> tuple[tuple[BenchRun, ...], tuple[UnreadLine, ...]]:
    """The runs in a file's bytes, in the order in which they begin, and what was not understood, by shape. Reads the
    text of every version of nccl-tests and of its forks, and the JSON of `-J`. Never raises for content."""
    read = read_file(data, name)
    return read.runs, tuple(read.unread)


def read_file(data: bytes, name: str) -> Read:
    """The same with counts."""
    read = (read_json(data, name) if looks_like_json(data) else None) or TextReader(name).read(data)
    single_ranks = _one_rank_tables(read.drafts)
    only = read.named[0] if len(read.named) == 1 else ""
    hint = collective_of_name(name)
    warnings = tuple(read.warnings)
    runs = tuple(_run(draft, name, only, hint, single_ranks.get(id(draft), 0), warnings) for draft in read.drafts)
    runs = runs or pair_runs(data.decode("utf-8", "replace"), name)
    given = commands_of(read.env) if not runs else {}
    return replace(
        read, runs=runs, settings={name: (read.env[name].value, line) for name, line in given.items()}, drafts=[]
    )


def _run(  # noqa: PLR0917 - what one run, and what the whole file says
    draft: Draft, name: str, only: str, hint: str, single_ranks: int, warnings: tuple[Origin, ...]
) -> BenchRun:
    notes = list(draft.notes)
    listed, _ = _listed(draft)
    seen = collective_of(draft.rows, draft.checked, listed)
    collective, why = draft.collective, draft.why_collective
    if not collective:
        known = (
            (only, "the only one that the file names"),
            (_fitting(hint, seen, draft.rows), "the file's name"),
            (seen, "the columns and the ratio of its bandwidths"),
        )
        collective, why = next((pair for pair in known if pair[0]), ("", ""))
        if why:
            notes.append(f"{collective}: known from {why}")
    nranks, ranks_why = _ranks(draft, collective, notes)
    if single_ranks:
        notes.append(NO_MPI.format(count=single_ranks))
    elif nranks == 1 and draft.rows:
        notes.append(ONE_RANK)
    if draft.title is not None and draft.title.cpu_time:
        notes.append("-C 1: the time is that of the CPU's calls, the bandwidths are of the GPU's time")
    ended = draft.average is not None or (draft.bounds is not None and not draft.errors)
    complete = ended and not draft.aborted
    if not complete and draft.rows and not draft.from_json:
        notes.append("no line ends it: the run was aborted, or this is an excerpt")
    devices = tuple(draft.devices[rank] for rank in sorted(draft.devices))
    return BenchRun(
        collective=collective,
        rows=_rows(draft),
        devices=devices,
        nranks=nranks,
        nranks_why=ranks_why,
        version=draft.version,
        maker=draft.maker,
        nccl=draft.nccl,
        parameters=draft.parameters,
        env={name: given.value for name, given in draft.env.items()},
        commands=commands_of(draft.env),
        errors=tuple(draft.errors),
        failures=tuple(draft.failures),
        warnings=warnings,
        notes=tuple(notes),
        average_gbs=draft.average if draft.average is not None and draft.average >= 0 else None,
        out_of_bounds=draft.bounds,
        complete=complete,
        source=name,
        origin=draft.origin,
    )


def _fitting(hint: str, seen: str, rows: Sequence[BenchRow]) -> str:
    """The collective of the file's name, unless the columns say that it is another or that it cannot be this one."""
    if not hint or not rows or seen == hint:
        return hint
    if seen:
        return ""
    return hint if (rows[-1].redop not in {"", "none"}) in _REDUCING.get(hint, (False,)) or not rows[-1].redop else ""


_REDUCING = {"all_reduce": (True,), "reduce": (True,), "reduce_scatter": (True,), "sendrecv": (True, False)}
"""Whether the operation's column is filled in; where the column is missing (before v2.13) nothing is said."""


def _rows(draft: Draft) -> tuple[BenchRow, ...]:
    """A row is cut where it has fewer numbers than most: then the run was aborted in it."""
    most = max(draft.widths, default=0)
    return tuple(
        replace(row, cut=True) if width < most else row for row, width in zip(draft.rows, draft.widths, strict=True)
    )


def _ranks(draft: Draft, collective: str, notes: list[str]) -> tuple[int | None, str]:
    listed, why = _listed(draft)
    ranks, how = ranks_of(draft.rows, collective, exact=draft.from_json)
    if listed is None:
        if no_traffic(draft.rows) and (collective in {"", "all_reduce"} or ranks in {None, 1}):
            return 1, "every bus bandwidth is 0"
        if "nRanks" in draft.parameters and draft.parameters["nRanks"].isdigit():
            return int(draft.parameters["nRanks"][:9]), "the header"
        return ranks, how
    if no_traffic(draft.rows) and listed > 1:
        notes.append(f"every bus bandwidth is 0, as of one rank, but the device list has {listed}")
    elif ranks is not None and ranks != listed and not ratio_fits(draft.rows, collective, listed):
        notes.append(f"{how} says {ranks} ranks, the device list {listed}: one of them is not of this {collective} run")
    return listed, why


def _listed(draft: Draft) -> tuple[int | None, str]:
    """Ranks by the device list. With NCCL_TESTS_SPLIT the table is that of the first rank's group."""
    if not draft.devices:
        return None, ""
    first = draft.devices[min(draft.devices)]
    groups = {device.group for device in draft.devices.values()}
    if len(groups) > 1:
        own = sum(device.group == first.group for device in draft.devices.values())
        return own, f"the device list, group {first.group} of {len(groups)}"
    last = max(draft.devices)
    if last + 1 != len(draft.devices):
        return last + 1, f"the device list, of which {len(draft.devices)} lines are there"
    if draft.devices_cut:
        return None, ""
    return len(draft.devices), "the device list"


def _one_rank_tables(drafts: Sequence[Draft]) -> dict[int, int]:
    """How many one-rank tables there are, for each of them: two or more of one program are a build without MPI."""
    single_rank = [
        draft for draft in drafts if (not draft.devices and no_traffic(draft.rows)) or set(draft.devices) == {0}
    ]
    if len(single_rank) < 2:
        return {}
    pids = [draft.devices[0].pid for draft in single_rank if draft.devices]
    mingled = any(_mingled(draft, single_rank[number + 1]) for number, draft in enumerate(single_rank[:-1]))
    if not mingled and len(pids) == len(single_rank) and len({draft.key for draft in single_rank}) == 1:
        return {}  # one after the other: somebody ran several with one GPU each
    return {id(draft): len(single_rank) for draft in single_rank}


def _mingled(first: Draft, second: Draft) -> bool:
    """Whether the second run began before the first one ended."""
    if first.key != second.key:
        return True
    began, ended = second.origin.line or 0, first.rows[-1].origin if first.rows else None
    return began < (ended.line or 0) if ended is not None else began - (first.origin.line or 0) < ADJACENT
