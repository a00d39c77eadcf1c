"""The corpus' jobs: the tuning table and the choices that NCCL printed, against those computed from what it printed of
its graphs. `pytest -s` shows how many cells and choices of each job were compared, and every miss."""

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.depth import some_of
from tests.nccl.corpus import ABSENT, JOB_NAMES, JOBS, SPELT, TOPOLOGIES, is_bare, system_of, topology, truth_of
from tests.nccl.corpus import JOB_NAMES as NAMES
from tests.scanned import logs_at
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.job import Communicator, Job
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import minor_of, path_types
from topodiag.model.nccl_view import Graph
from topodiag.nccl.graph.attach import HostTree
from topodiag.nccl.graph.domains import build_system
from topodiag.nccl.graph.graph import CommShape, SearchGraph
from topodiag.nccl.graph.paths import path_table
from topodiag.nccl.settings import Settings, read_settings
from topodiag.nccl.tuning.choice import choose, predicted_us
from topodiag.nccl.tuning.tuning import tuning_table
from topodiag.nccl.tuning.tuning_constants import ALGORITHMS, COLLECTIVES, PROTOCOLS
from topodiag.nccl.tuning.tuning_model import Cell

if not (NAMES and TOPOLOGIES):
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


def fused(graphs: list[Graph], minor: int, latency: float) -> SearchGraph:
    numbers = path_types(minor).numbers
    return SearchGraph(
        id=0,
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


# --- The corpus' topologies: every path, bandwidth and refusal that NCCL printed for them, and the systems of its
# jobs


def questions(name: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Minor version, nodes, truth."""
    for version, by_nodes in truth_of(name).items():
        for nodes, answer in by_nodes.items():
            yield minor_of(version), int(nodes), answer


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_system_of_the_corpus_is_as_nccl_printed_it(name: str) -> None:
    file = topology(name)
    for minor, nodes, truth in some_of(list(questions(name)), name, always=not name.startswith("gen")):
        about = f"2.{minor}, {nodes} nodes"
        words = (truth.get("warn") or [""])[0]
        refusal = file.refusal(minor)
        if refusal is not None:
            assert not truth["accepted"], about
            assert refusal.words.startswith(words[:40]), about
            continue
        system = system_of(name, minor, nodes)
        if isinstance(system, str):
            assert not truth["accepted"], (about, system)
            assert words in ("", system), about
            continue
        if is_bare(truth):
            assert not system.nets, about
            continue
        assert truth["accepted"], (about, words)
        counts = {"gpus": len(system.gpus), "nets": len(system.nets), "nvs": len(system.nvs)}
        assert counts == truth["counts"], about
        assert system.max_bw == pytest.approx(truth["system"]["max_bw"], abs=0.051), about
        assert system.total_bw == pytest.approx(truth["system"]["total_bw"], abs=0.051), about
        if truth["paths"]:
            assert printed(path_table(system)) == truth["paths"], about


def printed(table: Any) -> dict[str, dict[str, list[Any]]]:
    """Without the kinds that the truth leaves out."""
    kinds = ("GPU", "NVS", "CPU", "NET")
    return {
        source: {target: list(path) for target, path in ways.items() if target.startswith(kinds)}
        for source, ways in table.items()
    }


def test_the_corpus_answers_for_three_versions_and_one_and_two_nodes() -> None:
    asked = {(minor, nodes) for name in TOPOLOGIES for minor, nodes, _ in questions(name)}
    assert asked == {(minor, nodes) for minor in (27, 28, 30) for nodes in (1, 2)}


# --- jobs: systems of single ranks in logs of more versions -------------------------------------------------

NOT_IN_THE_FILE = {
    "f_h100_2node_nonic_socket": "NICs are network interfaces that NCCL found on the machine",
    "h_h100_2node_nogdr": "the file was not given to NCCL, and the CPU is the machine's own",
    "h_gb200_2tray": "NCCL built for x86 doubles the CPUs of an Arm file",
}
DRIVER_SAYS = {"d_pcie8_nop2p": {"NCCL_P2P_DISABLE": "1"}}
"""What the driver of the emulated machine said, in the words of a setting with the same effect."""
_PATH = re.compile(r"((?:GPU|NVS|CPU|NET)/\S+) \(([0-9]+)/([0-9.]+)/(\w+)\)")


def compared_jobs() -> list[str]:
    ended = {name: json.loads((JOBS / name / "truth.json").read_text())["ended"] for name in JOB_NAMES}
    return [name for name in JOB_NAMES if ended[name] == "ok" and name not in NOT_IN_THE_FILE]


def plain(label: str) -> str:
    """`GPU/0-1b000` and `GPU/1B000` alike."""
    kind, _, local = label.partition("/")
    return f"{kind}/{local.rpartition('-')[2].lower()}"


def systems_in(log: Path) -> Iterator[list[str]]:
    """For every communicator of a rank the lines from `=== System` to the last path, in the order of set-up."""
    lines: list[str] | None = None
    with gzip.open(log, "rt", errors="replace") as file:
        for line in file:
            text = line.partition("NCCL INFO ")[2].rstrip("\n")
            if text.startswith("=== System"):
                lines = [text]
            elif lines is not None and text.startswith(("Setting affinity", "NVLS", "Pattern")):
                yield lines
                lines = None
            elif lines is not None and text:
                lines.append(text)


@pytest.mark.parametrize("name", compared_jobs())
def test_every_system_of_a_jobs_logs_is_as_each_rank_saw_it(name: str) -> None:
    folder = JOBS / name
    truth = json.loads((folder / "truth.json").read_text())
    minor = minor_of(truth["nccl_version"][0])
    env = dict(setting.split("=", 1) for setting in truth["settings"] if ":" not in setting)
    settings = read_settings({**env, **DRIVER_SAYS.get(name, {})}, minor)
    hosts = {rank["rank"]: rank["host"] for rank in truth["ranks"]}
    buses = {rank["rank"]: rank["bus_id"] for rank in truth["ranks"]}
    compared = 0
    for rank in some_of(list(hosts), name):
        host = hosts[rank]
        log = folder / "logs" / f"rank{rank:03d}.log.gz"
        tree = tree_in(given_file(folder, log))
        members = [communicator["ranks"] for communicator in truth["communicators"] if rank in communicator["ranks"]]
        for ranks, lines in zip(members, systems_in(log), strict=True):
            mine = {buses[each]: at for at, each in enumerate(ranks) if hosts[each] == host}
            system = build_system(
                [HostTree(tree, mine)], minor=minor, settings=settings, nranks=len(ranks), me=ranks.index(rank)
            )
            assert lines[0] == f"=== System : maxBw {system.max_bw:.1f} totalBw {system.total_bw:.1f} ==="
            table = {
                plain(key): {plain(to): way for to, way in ways.items()} for key, ways in path_table(system).items()
            }
            for line in lines:
                source, mark, ways = line.partition(" :")
                if not mark or plain(source) not in table:
                    continue
                for target, hops, bw, kind in _PATH.findall(ways):
                    path = table[plain(source)][plain(target)]
                    assert (path[0], path[2]) == (int(hops), kind), (rank, source, target)
                    assert path[1] == pytest.approx(float(bw), abs=0.051), (rank, source, target)
                    compared += 1
    assert compared


@cache
def tree_in(path: Path) -> Element:
    return read_file(path.read_bytes(), "topology").tree


def given_file(folder: Path, log: Path) -> Path:
    """The topology file that a rank was given, by its log; else the only one."""
    with gzip.open(log, "rt", errors="replace") as file:
        text = next((line for line in file if "NCCL_TOPO_FILE set by environment to" in line), "")
    named = folder / Path(text.split()[-1]).name if text else folder
    return named if named.is_file() else next(path for path in sorted(folder.glob("*.xml")) if path.name != "graph.xml")
