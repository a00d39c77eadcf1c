"""From the bytes of one file to runs: the text or the JSON is read, then what a run leaves unsaid is inferred.

The JSON is that of `-J FILE` (nccl-tests v2.17.3 and later), of any of its versions, whole or cut off: nccl-tests
writes as it goes, and a crash leaves it open, so it is closed behind the last whole object. Only settings of the job's
communication are kept of the environment that it dumps: the rest may hold secrets.
SOURCE: NVIDIA/nccl-tests src/util.cu v2.17.4 to v2.19.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from topodiag.evidence.interface import to_int
from topodiag.evidence.json_values import decoded, integer, member, number, objects, text
from topodiag.evidence.nccl_tests import words
from topodiag.evidence.nccl_tests.infer import collective_of, no_traffic, ranks_of
from topodiag.evidence.nccl_tests.text import MAX_DEVICES, MAX_ERRORS, MAX_ROWS, Draft, Read, TextReader
from topodiag.evidence.network.perftest import pair_runs
from topodiag.evidence.signatures.wrappers import Unwrapped
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.model.result import UnreadLine
from topodiag.words.own_data import own_data, patterns

WITHOUT_MPI = "built without MPI"
NO_MPI = (
    f"{{count}} tables of one rank each: the program was {WITHOUT_MPI}, so every process measured itself alone; "
    "nothing here is a measurement (build with MPI=1)"
)
ADJACENT = 8
"""Lines between the heads of two runs without rows of which the first one did not end before the second began."""
ONE_RANK = "one rank: nothing is communicated, so no bandwidth was measured"


_WITH_COMMAS = b"size,count,type,"
"""How a table begins that was saved with commas between its columns."""


def read_file(data: bytes, name: str) -> Read:
    """The runs in a file's bytes, in the order in which they begin, and what was not understood, by shape, with counts.
    Reads the text of every version of nccl-tests and of its forks, and the JSON of `-J`. Never raises for content."""
    data = data.replace(b",", b" ") if data.lstrip().startswith(_WITH_COMMAS) else data
    read = (read_json(data, name) if looks_like_json(data) else None) or TextReader(name).read(data)
    drafts = _without_quoted_summaries(read.drafts)
    _count_one_rank_tables(drafts)
    runs = tuple(_run(draft, read, name) for draft in drafts) or pair_runs(data.decode("utf-8", "replace"), name)
    if b"# OSU " in data or b"# Benchmarking " in data:
        runs += (of_mpi := mpi_runs(data, name))
        read = replace(read, unread=[], left=0) if of_mpi and not drafts else read
    given = words.commands_of(read.env) if not runs else {}
    settings = {name: (read.env[name].value, line) for name, line in given.items()}
    return replace(read, runs=runs, settings=settings, drafts=[])


def _without_quoted_summaries(drafts: list[Draft]) -> list[Draft]:
    """The runs without those of summary lines alone where another has rows: a page quotes these lines once more. One
    that counts wrong values stays, as it may be of a run whose table is not there."""
    if not any(draft.rows for draft in drafts):
        return drafts
    return [draft for draft in drafts if draft.bounds or not _is_summary_alone(draft)]


def _is_summary_alone(draft: Draft) -> bool:
    ended = draft.closed or draft.bounds is not None
    return ended and not (draft.rows or draft.title or draft.devices or draft.parameters or draft.errors)


def _run(draft: Draft, read: Read, name: str) -> BenchRun:
    notes = list(draft.notes)
    collective, why = (draft.collective, "") if draft.collective else _inferred(draft, read, name)
    if why:
        notes.append(f"{collective}: known from {why}")
    nranks, ranks_why = _ranks(draft, collective)
    if draft.one_rank_tables:
        notes.append(NO_MPI.format(count=draft.one_rank_tables))
    elif nranks == 1 and draft.rows:
        notes.append(ONE_RANK)
    if draft.title is not None and draft.title.cpu_time:
        notes.append("-C 1: the time is that of the CPU's calls, the bandwidths are of the GPU's time")
    complete = (draft.closed or (draft.bounds is not None and not draft.errors)) and not draft.aborted
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
        commands=words.commands_of(draft.env),
        errors=tuple(draft.errors),
        failures=tuple(draft.failures),
        warnings=tuple(read.warnings),
        notes=tuple(notes),
        average_gbs=draft.average if draft.average is not None and draft.average >= 0 else None,
        out_of_bounds=draft.bounds,
        complete=complete,
        source=name,
        origin=draft.origin,
    )


def _inferred(draft: Draft, read: Read, name: str) -> tuple[str, str]:
    """The collective of a run that does not name it, and what tells it; "" where nothing does."""
    seen = collective_of(draft.rows, draft.checked, _listed(draft)[0])
    known = (
        (read.named[0] if len(read.named) == 1 else "", "the only one that the file names"),
        (_fitting(words.collective_of_name(name), seen, draft.rows), "the file's name"),
        (seen, "the columns and the ratio of its bandwidths"),
    )
    return next((pair for pair in known if pair[0]), ("", ""))


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


def _ranks(draft: Draft, collective: str) -> tuple[int | None, str]:
    listed, why = _listed(draft)
    if listed is not None:
        return listed, why
    ranks, how = ranks_of(draft.rows, collective, exact=draft.from_json)
    if no_traffic(draft.rows) and (collective in {"", "all_reduce"} or ranks in {None, 1}):
        return 1, "every bus bandwidth is 0"
    if "nRanks" in draft.parameters and draft.parameters["nRanks"].isdigit():
        return int(draft.parameters["nRanks"][:9]), "the header"
    return ranks, how


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


def _count_one_rank_tables(drafts: Sequence[Draft]) -> None:
    """Tells each one-rank table how many there are: two or more of one program are a build without MPI."""
    single_rank = [
        draft for draft in drafts if (not draft.devices and no_traffic(draft.rows)) or set(draft.devices) == {0}
    ]
    if len(single_rank) < 2:
        return
    pids = [draft.devices[0].pid for draft in single_rank if draft.devices]
    mingled = any(_mingled(draft, single_rank[number + 1]) for number, draft in enumerate(single_rank[:-1]))
    if not mingled and len(pids) == len(single_rank) and len({draft.key for draft in single_rank}) == 1:
        return  # one after the other: somebody ran several with one GPU each
    for draft in single_rank:
        draft.one_rank_tables = len(single_rank)


def _mingled(first: Draft, second: Draft) -> bool:
    """Whether the second run began before the first one ended."""
    if first.key != second.key:
        return True
    began, ended = second.origin.line or 0, first.rows[-1].origin if first.rows else None
    return began < (ended.line or 0) if ended is not None else began - (first.origin.line or 0) < ADJACENT


_CLOSERS = ("", "}", "]}", "]}}", "}]}", "}}]}")
"""What lacks behind an object that is whole: the document, the settings, the rows, a device, a block of a row, and the
times of its iterations."""


def load(text: str) -> tuple[Any, bool, str]:
    """The document, whether it had to be closed, and why there is none (None with a reason)."""
    value, why = decoded(text)
    whole = text[: text.rfind("}") + 1] if why else ""
    tries = (decoded(whole + closers)[0] for closers in _CLOSERS if whole)
    closed = next((document for document in tries if document is not None), None)
    return (value, False, why) if closed is None else (closed, True, "")


_CONFIG: Mapping[str, str] = own_data("evidence/nccl_tests/words")["config"]
"""Keys of `config` by the names that the text output gives them."""
_SETTINGS = ("NCCL_", "RCCL_", "UCX_", "FI_", "CUDA_VISIBLE_DEVICES")
MAX_VALUE = 1e30
_KEYS = ("results", "config", "out_of_bounds")


def looks_like_json(data: bytes) -> bool:
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(b"{") and b'"' in head[:200]


def read_json(data: bytes, source: str) -> Read | None:
    """The one run of a JSON file; None where it is JSON of something else, or none."""
    whole = data.decode("utf-8", "replace")
    document, closed, why = load(whole)
    read = Read(lines=whole.count("\n") + 1)
    if not isinstance(document, dict) or not any(key in document for key in _KEYS):
        if why and '"results"' in whole and '"bus_bw"' in whole:
            read.unread.append(UnreadLine(source, None, whole[:100], why))
            read.left = 1
            return read
        return None
    run = Draft(Unwrapped("").stream, Origin(source), from_json=True)
    read.drafts.append(run)
    _config(run, document)
    for place, entry in objects(document.get("results"), MAX_ROWS):
        row = _row(entry, source)
        if row is None:
            read.left += 1
            read.unread.append(UnreadLine(source, None, f"results[{place}]", "has no size"))
        else:
            run.rows.append(row)
            run.widths.append(4 * sum(timing.time_us is not None for timing in (row.out_of_place, row.in_place)))
            out, inside = (timing.wrong is not None for timing in (row.out_of_place, row.in_place))
            run.checked = (run.checked[0] or out, run.checked[1] or inside)
    run.bounds = integer(member(document.get("out_of_bounds"), "count"))
    average = document.get("average_bus_bandwidth", document.get("average_bus_bandwidith"))
    if isinstance(average, dict):
        value = number(average.get("bandwidth", average.get("bandwidith")), MAX_VALUE)
        run.average = -1 if value is None else value
    run.errors += filter(None, map(text, _texts(document.get("errors"), MAX_ERRORS)))
    if closed:
        run.notes.append("the JSON file was cut off and has been closed: the run was aborted")
        run.aborted = True
    return read


def _config(run: Draft, document: dict[str, Any]) -> None:
    named = [words.collective_of_binary(arg[:1000]) for arg in _texts(document.get("args"), 200)]
    run.collective = next(filter(None, named), "")
    run.nccl = words.version_of_code(integer(document.get("nccl_version")) or 0)
    for line in _texts(document.get("env"), 20_000):
        name, equals, value = line.partition("=")
        if equals and name.startswith(_SETTINGS):
            run.env[name[:100]] = words.CommandSetting(value[:300])
    config = document.get("config")
    if not isinstance(config, dict):
        return
    for key, name in _CONFIG.items():
        if isinstance(config.get(key), int | float | str):
            run.parameters[name] = str(config[key])[:100]
    _devices(run, config)


def _texts(value: object, most: int) -> list[str]:
    """The texts of a list, which others than nccl-tests may fill with anything."""
    return [item for item in value[:most] if isinstance(item, str)] if isinstance(value, list) else []


def _devices(run: Draft, config: dict[str, Any]) -> None:
    """Only the first device of each process is listed; the others follow from ranks per process, without a bus id."""
    per = (integer(config.get("nthreads"), 1, 4096) or 1) * (integer(config.get("ngpus"), 1, 4096) or 1)
    for _, entry in objects(config.get("devices"), MAX_DEVICES):
        rank = integer(entry.get("rank"), 0, MAX_DEVICES)
        if rank is None:
            continue
        first = BenchDevice(
            rank=rank,
            host=text(entry.get("hostname")) or "",
            device=integer(entry.get("device"), 0, 4096) or 0,
            name=text(entry.get("device_info")) or "",
            bus_id=normalise_bus_id(text(entry.get("device_hex")) or "") or "",
            group=integer(entry.get("group"), 0, MAX_DEVICES) or 0,
            pid=integer(entry.get("pid")) or 0,
        )
        run.devices[rank] = first
        for at in range(1, min(per, MAX_DEVICES - len(run.devices))):
            other = replace(first, rank=rank + at, device=first.device + at, bus_id="")
            run.devices.setdefault(rank + at, other)


def _row(entry: dict[str, Any], source: str) -> BenchRow | None:
    size = integer(entry.get("size"), 0, 1 << 62)
    if size is None:
        return None
    root = to_int(str(entry.get("root")), low=0, high=MAX_DEVICES)
    return BenchRow(
        size,
        integer(entry.get("count"), 0, 1 << 62) or 0,
        text(entry.get("type")) or "",
        text(entry.get("redop")) or "",
        -1 if root is None else root,
        _timing(entry.get("out_of_place")),
        _timing(entry.get("in_place")),
        origin=Origin(source),
    )


def _timing(block: object) -> Timing:
    """NaN is the text "nan"; negative numbers have no meaning in any of these fields."""
    if not isinstance(block, dict):
        return Timing()
    single = block.get("per_iter_timing")
    return Timing(
        number(block.get("time", block.get("cpu_time")), MAX_VALUE),
        number(block.get("alg_bw"), MAX_VALUE),
        number(block.get("bus_bw"), MAX_VALUE),
        number(block.get("nwrong"), MAX_VALUE),
        number(member(single, "p50_us"), MAX_VALUE),
        number(member(single, "p99_us"), MAX_VALUE),
    )


# --- tables of MPI's benchmarks: by size, the bandwidth or the time of what MPI (or NCCL below it) moves -----------
#
#     # OSU MPI-CUDA Bandwidth Test v5.7                # Benchmarking PingPong
#     # Size      Bandwidth (MB/s)                      # #processes = 2
#     262144                 9511.51                           #bytes #repetitions      t[usec]   Mbytes/sec
#                                                              262144          160        29.10      9009.86
#
# Of the Intel MPI Benchmarks the last column is read, of OSU's the first. MB are 1e6 bytes; times are microseconds.
# SOURCE: OSU Micro-Benchmarks c/util/osu_util.c (print_header), c/mpi/pt2pt/osu_bw.c, v3.1 to v7.4; Intel MPI
# Benchmarks src_c/IMB_output.c, 2018 to 2021.

MOST_TABLES = 1000
_MPI = patterns("evidence/nccl_tests/lines", "mpi")


def mpi_runs(data: bytes, source: str) -> tuple[BenchRun, ...]:
    """The tables of a text, each a run without ranks; none of a head without rows. Never raises for content."""
    tables: list[tuple[BenchRun, list[BenchRow]]] = []
    unit = ""
    for line_number, raw, _ in words.physical(data):
        line = words.labelled(line_number, raw).text
        origin = Origin(source, line_number, line.strip()[:MAX_QUOTE])
        if (head := _MPI["head"].search(line)) is not None and len(tables) < MOST_TABLES:
            title, program = (head["title"], "OSU") if head["title"] else (f"IMB {head['imb']}", "IMB")
            tables.append((BenchRun(title, (), program=program, source=source, origin=origin), []))
            unit = ""
        elif tables and (processes := _MPI["processes"].search(line)) is not None:
            run, rows = tables[-1]
            tables[-1] = replace(run, collective=f"{run.collective} on {processes['number']} processes"), rows
        elif tables and (column := _MPI["column"].search(line)) is not None:
            unit = column["unit"] or column["last"]
        elif unit and (row := _MPI["row"].match(line)) is not None and len(tables[-1][1]) < MAX_ROWS:
            value = float(row["value"])
            gbs = value / 1e3 if unit in ("MB/s", "Mbytes/sec") else None
            timing = Timing(None if gbs else value, gbs, gbs)
            tables[-1][1].append(BenchRow(int(row["size"]), out_of_place=timing, origin=origin))
        elif line.strip() and not line.startswith("#"):
            unit = ""  # the text goes on below the table
    return tuple(replace(run, rows=tuple(rows)) for run, rows in tables if rows)
