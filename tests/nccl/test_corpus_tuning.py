"""The corpus' jobs: the tuning table and the choices that NCCL printed, against those computed from what it printed of
its graphs. `pytest -s` shows how many cells and choices of each job were compared, and every miss."""

import gzip
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

import pytest

from tests.nccl.corpus import ABSENT, JOBS, SPELT
from tests.nccl.corpus import JOB_NAMES as NAMES
from tests.scanned import logs_at
from topodiag.model.job import Communicator, Job
from topodiag.model.nccl_versions import minor_of, path_types
from topodiag.model.nccl_view import Graph
from topodiag.nccl.graph.graph import CommShape, Fused
from topodiag.nccl.settings import Settings, read_settings
from topodiag.nccl.tuning.choice import choose, predicted_us
from topodiag.nccl.tuning.tuning import tuning_table
from topodiag.nccl.tuning.tuning_constants import ALGORITHMS, COLLECTIVES, PROTOCOLS
from topodiag.nccl.tuning.tuning_model import Cell

if not NAMES:
    pytest.skip(ABSENT, allow_module_level=True)

_IDS = {4: 0, 1: 1, 2: 1, 3: 1, 5: 3, 6: 4}
_ROUNDED = 0.051
"""Tables are printed with one decimal."""


@dataclass
class Compared:
    cells: int = 0
    choices: int = 0
    times: int = 0
    misses: list[str] = field(default_factory=list)


def fused(graphs: list[Graph], minor: int, latency: float) -> Fused:
    numbers = path_types(minor).numbers
    return Fused(
        pattern=graphs[0].pattern,
        channels=min(graph.channels for graph in graphs),
        bw_intra=min(graph.bw_intra for graph in graphs),
        bw_inter=min(graph.bw_inter for graph in graphs),
        type_intra=max(numbers[graph.type_intra] for graph in graphs),
        type_inter=max(numbers[graph.type_inter] for graph in graphs),
        cross_nic=max(graph.cross_nic for graph in graphs),
        same_channels=min(int(graph.same_channels) for graph in graphs),
        latency_inter=latency,
    )


def shape_of(name: str, job: Job, comm: Communicator) -> CommShape:
    """From the lines `Pattern`, `=== System` and `N coll channels`; compute capabilities and latencies from the XML."""
    minor = minor_of(job.nccl_versions[0])
    xml = "".join(path.read_text() for path in (JOBS / name).glob("*.xml"))
    capabilities = [int(sm) for sm in re.findall(r'<gpu [^>]*sm="(\d+)"', xml)]
    latencies = [float(text) for text in re.findall(r'latencyinter="([\d.]+)"', xml)]
    by_id: dict[int, list[Graph]] = {}
    for graphs in comm.graphs.values():
        for graph in graphs:
            by_id.setdefault(_IDS[graph.pattern], []).append(graph)
    fuseds = {number: fused(graphs, minor, max(latencies, default=0.0)) for number, graphs in by_id.items()}
    least = min(fuseds[0].channels, fuseds[1].channels)
    fuseds |= {number: replace(fuseds[number], channels=least) for number in (0, 1)}
    hosts = Counter(job.by_rank[int(rank)].host for rank in comm.known)
    nodes = comm.nodes if comm.nodes > 0 else len(hosts)
    cpus = [d.numbers for system in comm.systems.values() for d in system.devices.values() if d.kind == "CPU"]
    return CommShape(
        minor=minor,
        nranks=comm.nranks,
        local_ranks=tuple(hosts.values()) if nodes == len(hosts) else (comm.nranks // nodes,) * nodes,
        min_sm=min(capabilities),
        max_sm=max(capabilities),
        cpu_arch=cpus[0][0],
        cpu_vendor=cpus[0][1],
        graphs=fuseds,
        channels=comm.channels.coll,
        nvls_channels=max(comm.channels.nvls, 0),
        nvs=any(d.kind == "NVS" for system in comm.systems.values() for d in system.devices.values()),
        max_tree_pattern=max(graph.pattern for graph in by_id[1]),
        cuda=0,
    )


def settings_of(job: Job, minor: int) -> Settings:
    process = job.processes[job.by_rank[0].process]
    return read_settings({given.name: given.value for given in process.settings.values()}, minor)


@cache
def compared(name: str) -> Compared:
    made = Compared()
    for job in logs_at(str(JOBS / name / "logs")).jobs:
        for comm in job.communicators:
            if comm.tuning:
                _compare(made, name, job, comm)
    _compare_times(made, name)
    return made


def _compare(made: Compared, name: str, job: Job, comm: Communicator) -> None:
    shape = shape_of(name, job, comm)
    settings = settings_of(job, shape.minor)
    table = tuning_table(shape, settings)
    where = f"{name} {comm.label} n={comm.nranks} N={shape.nodes}"
    for (collective, algorithm, protocol), printed in comm.tuning.items():
        made.cells += 1
        mine = table[collective][SPELT[algorithm]][SPELT[protocol]]
        if not all(abs(a - b) <= max(_ROUNDED, 0.01 * b) for a, b in zip(mine, printed, strict=True)):
            made.misses.append(f"{where}: {collective} {algorithm} {protocol}: {mine}, printed {printed}")
    for choice in comm.choices:
        made.choices += 1
        total = choice.bytes * (comm.nranks if choice.collective in {"AllGather", "ReduceScatter"} else 1)
        wanted = SPELT[choice.algorithm], SPELT[choice.protocol]
        # 2.21 does not say of which collective, and prints the size as looked up.
        of = [choice.collective] if choice.collective else list(COLLECTIVES)
        found = [choose(shape, table, settings, collective, total) for collective in of]
        if wanted not in [(one.algorithm, one.protocol) for one in found if one]:
            made.misses.append(f"{where}: {choice} as {[(c.algorithm, c.protocol, c.time_us) for c in found if c]}")


_TIME = re.compile(r"(\d+) Bytes -> Algo (\d) proto (\d) time (\d+\.\d+)")


def printed_times(name: str) -> Iterator[tuple[int, str, str, float]]:
    for path in sorted((JOBS / name / "logs").glob("*.log.gz")):
        for size, algorithm, protocol, time in _TIME.findall(gzip.decompress(path.read_bytes()).decode()):
            yield int(size), ALGORITHMS[int(algorithm)], PROTOCOLS[int(protocol)], float(time)


def _compare_times(made: Compared, name: str) -> None:
    """Up to 2.21 NCCL prints the time that it predicted. The jobs that do have one communicator."""
    times = list(printed_times(name))
    if not times:
        return
    job = logs_at(str(JOBS / name / "logs")).jobs[0]
    shape = shape_of(name, job, job.communicators[0])
    table = tuning_table(shape, settings_of(job, shape.minor))
    for size, algorithm, protocol, time in times:
        made.times += 1
        entries = [(c, table[c].get(algorithm, {}).get(protocol, (0.0, 0.0))) for c in COLLECTIVES]
        mine = [predicted_us(shape, Cell(c, algorithm, protocol), entry)(size) for c, entry in entries if entry[1]]
        if not any(abs(one - time) <= 1e-4 * time for one in mine):
            made.misses.append(f"{name}: {size} bytes {algorithm} {protocol}: {mine} us, printed {time}")


@pytest.mark.parametrize("name", NAMES)
def test_cells_choices_and_times_are_those_that_nccl_printed(name: str) -> None:
    assert compared(name).misses == []


def test_the_comparison_reached_every_version_of_the_corpus() -> None:
    lines = [f"{'job':32} {'cells':>6} {'choices':>8} {'times':>6} {'misses':>7}"]
    total = Compared()
    for name in NAMES:
        one = compared(name)
        lines.append(f"{name:32} {one.cells:6} {one.choices:8} {one.times:6} {len(one.misses):7}")
        lines += [f"    {miss}" for miss in one.misses]
        total.cells, total.choices = total.cells + one.cells, total.choices + one.choices
        total.times, total.misses = total.times + one.times, total.misses + one.misses
    lines.append(f"{'all':32} {total.cells:6} {total.choices:8} {total.times:6} {len(total.misses):7}")
    sys.stdout.write("\n" + "\n".join(lines) + "\n")
    assert total.cells > 10_000
    assert total.choices > 100
    assert total.times >= 10
