"""What tables of any script show: a part that is not as its peers, or not as the table itself says it should be.

Rows prove that they differ and nothing of why, so that each is a report of low confidence, like a sentence of a tool.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from topodiag.checks.shared.comparisons import far, unlike
from topodiag.lazy import regex
from topodiag.model import tables
from topodiag.model.events import REMARK, Event, Trust
from topodiag.model.node import Node
from topodiag.model.tables import Row, Table
from topodiag.words.own_data import own_data, patterns
from topodiag.words.states import BAD, GOOD
from topodiag.words.text import words_of_name
from topodiag.words.units import few, in_mhz, in_ms, spell_bytes

BUSY_PERCENT = 50.0
SLOW_SHARE = 0.5
"""Share of the busy peers' clock below which a busy GPU is slow: power caps keep it above."""
TIMES, CLOSE, LEAST_MS = 2.0, 1.3, 20.0
"""A rank is late in its own work at so many times the median, where the others are within `CLOSE` of it, and by so many
milliseconds: below that no other rank waits long."""
MOST_AGREE = 0.6
"""Hosts of a list that must agree before one of them is odd."""
LEAST_SHARE = 0.9
"""Part of the peers' memory below which it is another one."""
PAIR = 2
"""GPUs of which none is usual: the better one is what both should be."""
HOT_C = 90
"""Degrees at which GPUs of all kinds slow down, or are about to."""
MOST_TOTAL = {"CRC_FLIT": 10_000, "CRC_DATA": 10_000, "REPLAY": 100, "RECOVERY": 10}
"""Totals from which NVLinks have errors: those of one link in `checks/nvlink/limits.toml`."""
MOST_SHOWN = 50
_DATA = own_data("checks/shared/tables")
_WIDTH = regex(r"Width x(\d{1,2})")
_ON_STORAGE = ("nfs", "rpc_wait", "ll_", "lustre", "cl_", "gpfs", "ceph", "beegfs", "weka", "fuse")
"""Functions of the kernel's clients of file systems."""
_COMPONENTS = patterns("checks/shared/tables", "component")


def reported_by_tables(node: Node) -> tuple[Event, ...]:
    """What the tables of a node's evidence show, as reports of others."""
    events = ([event for rule in _RULES for event in rule(table)] for table in node.tables)
    return tuple(event for of_table in events for event in of_table[:MOST_SHOWN])


def _fault(kind: str, words: str, row: Row, trust: Trust = Trust.PERSON) -> Event:
    """A row that shows a fault, in words with what the others have."""
    return Event(kind, "table", words[:300], row.origin, trust=trust)


def _fault_at(table: Table, place: int, kind: str, words: str) -> Event:
    """The same, in the words of the row and behind them what the others have."""
    row = table.rows[place]
    return _fault(kind, f"{' '.join(row.origin.text.split())[:200]}: {words}", row)


def _whose(row: Row, place: int) -> str:
    """What a row is of, in its own words."""
    heads = (f"{name} {row.cells[name]}" for name in (tables.RANK, tables.GPU, tables.HOST) if name in row.cells)
    return next(heads, "") or row.label or f"row {place + 1}"


def _states(table: Table) -> Iterator[Event]:
    """A part that is down where nearly all others are up."""
    for part, fault in _DATA["state"].items():
        words = {place: cell.strip().lower() for place, cell in table.column(f"{tables.STATE}{part}").items()}
        is_bad = {place: word in BAD for place, word in words.items() if word in BAD or word in GOOD}
        outlier = unlike(is_bad, agree=MOST_AGREE)
        if outlier is not None and not outlier.usual:
            for place in outlier.outliers:
                yield _fault_at(table, place, fault, f"{outlier.count} of {outlier.of} are not")


def _counts(table: Table) -> Iterator[Event]:
    """Fewer of a part than the table says there should be."""
    for part, fault in _DATA["part"].items():
        wanted = table.column(f"{tables.WANT}{part}")
        for place, cell in table.column(f"{tables.HAVE}{part}").items():
            has, wants = _number(cell), _number(wanted.get(place, ""))
            if has is not None and wants is not None and 0 <= has < wants:
                yield _fault_at(table, place, fault, f"{has:g} of {wants:g}")


def _memory(table: Table) -> Iterator[Event]:
    for place, cell in table.column(tables.UNCORRECTED).items():
        if (_number(cell) or 0) >= 1:
            yield _fault_at(table, place, "gpu.memory", f"uncorrected errors {cell}")


def _clocks(table: Table) -> Iterator[Event]:
    """A busy GPU far slower than its busy peers."""
    loads = {place: _number(cell) for place, cell in table.column(tables.LOAD).items()}
    clocks = {
        place: mhz
        for place, cell in table.column(tables.CLOCK).items()
        if (mhz := _number(cell)) and (loads.get(place) or 0.0) >= BUSY_PERCENT
    }
    if (slow := far(clocks, factor=SLOW_SHARE)) is not None:
        for place in slow.outliers:
            words = f"{in_mhz(clocks[place])}, {in_mhz(slow.usual)} on its busy peers"
            yield _fault_at(table, place, "gpu.clocks", words)


def _late(table: Table) -> Iterator[Event]:
    """A rank whose own part of a step takes far longer than the others'. Of several steps the shortest counts: one may
    hold a checkpoint."""
    for name in table.columns:
        if not name.startswith(tables.TIME):
            continue
        to_ms = 1.0 if name.endswith("ms") else 1000.0
        places: dict[str, int] = {}
        times: dict[str, float] = {}
        for place, cell in table.column(name).items():
            who, took = _whose(table.rows[place], place), _number(cell)
            if took is not None and took * to_ms < times.get(who, float("inf")):
                times[who], places[who] = took * to_ms, place
        late = far(times, factor=TIMES, floor=LEAST_MS, close=CLOSE)
        if late is None or "rank" not in " ".join(times).lower():
            continue
        usual, part = in_ms(late.usual * 1000), name.removeprefix(tables.TIME)
        for who in late.outliers:
            words = f"{who}: {part} {in_ms(times[who] * 1000)}, {usual} by the median"
            yield _fault("job.rank_late", words, table.rows[places[who]])


def _differ(table: Table) -> Iterator[Event]:
    """A host with another version or setting than most."""
    for name in table.columns:
        if name == tables.VERSION:
            fault, least = "job.versions_differ", 0.5
        elif name.startswith(tables.SETTING):
            fault, least = "job.settings_differ", 0.5
        elif name in tables.SETUP:
            fault, least = _DATA["setup"].get(name, "network.lossy"), MOST_AGREE
        else:
            continue
        by_host = {place: cell.lower() for place, cell in table.column(name).items()}
        hosts = [table.rows[place].cells.get(tables.HOST) or table.rows[place].label for place in by_host]
        outlier = unlike(by_host, agree=least)
        if outlier is not None and len(set(hosts)) == len(hosts) and all(hosts):
            for place in outlier.outliers:
                yield _fault_at(table, place, fault, f"{outlier.count} of {outlier.of} have {outlier.usual}")


def _waits(table: Table) -> Iterator[Event]:
    """Processes that the kernel cannot end, in the client of a file system."""
    states = table.column(tables.PROCESS_STATE)
    stuck = [
        place
        for place, cell in table.column(tables.WAITS_IN).items()
        if states.get(place, "").startswith("D") and cell.startswith(_ON_STORAGE)
    ]
    if stuck:
        where = few(list(dict.fromkeys(table.rows[place].cells[tables.WAITS_IN] for place in stuck)))
        yield _fault_at(table, stuck[0], "storage.trouble", f"{len(stuck)} processes wait in {where}")


def _links(table: Table) -> Iterator[Event]:
    """PCIe links narrower than both of their ends can be."""
    can = table.column(tables.CAN)
    for place, cell in table.column(tables.RUNS).items():
        wide, runs = _WIDTH.search(can.get(place, "")), _WIDTH.search(cell)
        if wide is not None and runs is not None and 0 < int(runs[1]) < int(wide[1]):
            yield _fault_at(table, place, "pcie.degraded", f"x{runs[1]} of x{wide[1]}")


def _devices(table: Table) -> Iterator[Event]:
    """Processes of one run of nccl-tests that call themselves the same rank: built without MPI, each measures alone."""
    holders: dict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    for place, row in enumerate(table.rows):
        if {tables.RANK, tables.HOST, tables.GPU, tables.PID} <= row.cells.keys():
            rank, host = row.cells[tables.RANK], row.cells[tables.HOST]
            holders[host, rank, row.cells[tables.GPU]][row.cells[tables.PID]] = place
    for (host, rank, gpu), pids in holders.items():
        if len(pids) > 1:
            words = f"{len(pids)} processes on {host} call themselves rank {rank}, on device {gpu}"
            yield _fault("gpu.shared", words, table.rows[max(pids.values())])
    first = {host: places for (host, rank, _), places in holders.items() if rank == "0"}
    several = [row for row in table.rows if (_number(row.cells.get(tables.STARTED, "")) or 0) > 1]
    if several and len(first) > 1 and all(len(pids) == 1 for pids in first.values()):
        words = f"{len(first)} processes of one command call themselves rank 0, on {few(list(first))}"
        yield _fault("benchmark.ranks_alone", words, table.rows[max(max(pids.values()) for pids in first.values())])


def _agents(table: Table) -> Iterator[Event]:
    """What a health agent calls ill itself."""
    for row in table.rows:
        cells = {name: row.cells.get(name, "").strip().lower() for name in (tables.VERDICT, tables.ILL, tables.WELL)}
        if cells[tables.VERDICT] in BAD or cells[tables.ILL] == "true" or cells[tables.WELL] == "false":
            words = row.cells.get(tables.SAYS, "")
            about = row.cells.get(tables.COMPONENT, "")
            named = f"{about} {words}" if about else words
            fault = _component(about) or _component(words)
            if fault:
                yield _fault(fault, named, row)


def _odd_gpus(table: Table) -> Iterator[Event]:
    """GPUs with a value that no check asks about, and that a sound GPU does not show. It does not say what is wrong, if
    anything is: it is quoted, and leaves open whether the machine is well."""
    groups: dict[str, list[tuple[Row, int]]] = defaultdict(list)
    for row in table.rows:
        cells, name = row.cells, f"GPU{row.cells.get(tables.GPU)}"
        if tables.FAILED_READING in cells:
            yield _fault(REMARK, f"{name}: a reading of it is an error", row)
        if cells.get(tables.COMPUTE_MODE) == "Prohibited":
            yield _fault(REMARK, f"{name}: its compute mode lets no program use it", row)
        if int(cells.get(tables.CELSIUS, 0)) >= HOT_C:
            yield _fault(REMARK, f"{name}: {cells[tables.CELSIUS]} C", row)
        if tables.MEMORY_MIB in cells and tables.PRODUCT in cells:
            groups[cells[tables.PRODUCT]].append((row, int(cells[tables.MEMORY_MIB])))
    for group in groups.values():
        from statistics import mode  # noqa: PLC0415 - slow to load

        sizes = [size for _, size in group]
        usual = mode(sizes) if len(sizes) > PAIR else max(sizes)
        for row, size in group:
            if 0 < size < LEAST_SHARE * usual:
                own, others = spell_bytes(size << 20), spell_bytes(usual << 20)
                words = f"GPU{row.cells[tables.GPU]}: its memory is {own}, and others of its kind have {others}"
                yield _fault(REMARK, words, row)


def _given_out(table: Table) -> Iterator[Event]:
    """Nodes that give out fewer GPUs than they have, or somewhat fewer than another of their product."""
    gives = {place: int(cell) for place, cell in table.column(tables.ALLOCATABLE).items()}
    products = table.column(tables.PRODUCT)
    most: dict[str, int] = {}
    for place in gives.keys() & products.keys():
        most[products[place]] = max(most.get(products[place], place), place, key=lambda at: (gives[at], -at))
    for place, count in gives.items():
        row = table.rows[place]
        has, best = int(row.cells.get(tables.CAPACITY, -1)), most.get(products.get(place, ""), place)
        if count < has:
            words = f"{row.label} gives out {count} of {has} GPUs"
        elif 2 * count > gives[best] > count:
            words = f"{row.label} gives out {count} GPUs, {table.rows[best].label} of the same product {gives[best]}"
        else:
            continue
        yield _fault("gpu.count_low", words, row, Trust.AGENT)


def _totals(table: Table) -> Iterator[Event]:
    """Errors of all NVLinks of a GPU together."""
    for name in table.columns:
        most = next((most for kind, most in MOST_TOTAL.items() if f"_{kind}_" in name), 0)
        for place, cell in table.column(name).items() if most and name.startswith(tables.TOTAL) else ():
            if float(cell) >= most:
                row, field = table.rows[place], name.removeprefix(tables.TOTAL)
                yield _fault("nvlink.errors", f"GPU {row.cells[tables.GPU]}: {field} is {float(cell):.0f}", row)


def _numa(table: Table) -> Iterator[Event]:
    """Processors without memory. Memory without processors is usual (CXL, Grace's GPUs)."""
    for place, cell in table.column(tables.MEMORY_MB).items():
        row = table.rows[place]
        if cell == "0" and row.cells.get(tables.PROCESSORS, "0") != "0":
            yield _fault(REMARK, f"NUMA node {row.cells[tables.NUMA]} has processors and no memory", row)


def _component(name: str) -> str:
    words = words_of_name(name, 200)
    return next((fault for fault, pattern in _COMPONENTS.items() if pattern.search(words)), "")


def _number(cell: str) -> float | None:
    """The number that a cell begins with: `1980 MHz` is 1980."""
    match = re.match(r"\s{0,20}\*{0,2}(-?\d{1,15}(?:\.\d{1,6})?)(?:\s{0,2}[A-Za-z%°]{1,5})?\*{0,2}\s{0,20}\Z", cell)
    return float(match[1]) if match is not None else None


_RULES: tuple[Callable[[Table], Iterator[Event]], ...] = (
    _states, _counts, _memory, _clocks, _late, _differ, _waits, _links, _devices, _agents, _odd_gpus, _given_out,
    _totals, _numa,
)  # fmt: skip
