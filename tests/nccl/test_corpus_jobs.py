"""The corpus' jobs: every communicator rebuilt from the hardware's file, against what NCCL's logs say of it.

The file, the NICs and the settings are those of the job; of the logs only that goes in which a file cannot know: the
CPU where none was given, GPUs that may not use P2P, NICs without GPUDirect, sockets, and cliques over hosts.
"""

import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.nccl_agreement import Tally, compare_file
from tests.depth import some_of
from tests.nccl.corpus import ABSENT, JOBS, SPELT, TOPOLOGIES, is_bare, system_of, topology, truth_of
from tests.nccl.printed import channel_line, trees_text
from tests.nccl.test_predict import NAMES as PREDICTED
from tests.scanned import logs_at
from tests.searches import search_graphs
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.job import Channels, Communicator, Job, Process
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import minor_of, path_types
from topodiag.model.nccl_view import Graph
from topodiag.nccl.connect import communicator as nccl
from topodiag.nccl.connect.communicator import Member, communicator
from topodiag.nccl.graph.graph import RejectedError, SearchGraph
from topodiag.nccl.prediction import PredictedGraph
from topodiag.nccl.search.searched import describe
from topodiag.nccl.settings import Settings, read_settings
from topodiag.nccl.tuning.choice import choose
from topodiag.nccl.tuning.tuning import tuning_table
from topodiag.nccl.tuning.tuning_constants import COLLECTIVES


def set_up(truth: Path) -> bool:
    """Whether every rank set its communicators up, with one set of settings: jobs that ended well, and some others."""
    document = json.loads(truth.read_text())
    counted = document["counted"].get("coll_collnet_nvls_p2p_p2pperpeer")
    return document["ended"] == "ok" or (
        bool(counted) and not any(given[:1].isdigit() for given in document["settings"])
    )


NAMES = sorted(path.parent.name for path in JOBS.glob("*/truth.json") if set_up(path))

if not (NAMES and TOPOLOGIES):
    pytest.skip(ABSENT, allow_module_level=True)

_CPUS = {1: ("x86_64", {1: "GenuineIntel", 2: "AuthenticAMD"}), 3: ("arm64", {})}
_P2P_OFF = "P2P is disabled between connected GPUs"


@dataclass(frozen=True)
class Case:
    """A communicator as the logs have it, and as it was rebuilt."""

    label: str
    job: Job
    logged: Communicator
    built: nccl.Communicator
    settings: Settings


def edited(element: Element, edit: Callable[[Element], Element | None]) -> Element | None:
    """A tree with every element passed through `edit`, which drops an element by returning None."""
    changed = edit(element)
    if changed is None:
        return None
    children = [edited(child, edit) for child in changed.children]
    return replace(changed, children=tuple(child for child in children if child is not None))


def with_(element: Element, **attributes: str) -> Element:
    kept = tuple((key, value) for key, value in element.attributes if key not in attributes)
    return replace(element, attributes=(*kept, *attributes.items()))


def tree_of(name: str, job: Job, process: Process) -> Element:
    """The host's file, with the NICs, the CPU and the GPUDirect that the process found."""
    given = process.settings.get("NCCL_TOPO_FILE")
    files = [path for path in (JOBS / name).glob("*.xml") if path.name != "graph.xml"]
    path = JOBS / name / Path(given.value).name if given is not None else files[0]
    tree = read_file(path.read_bytes(), path.name).tree
    nics = {hca.name: hca for hca in process.hcas}
    system = next(c.systems[process.host] for c in job.communicators if process.host in c.systems)
    cpu = next(device.numbers for device in system.devices.values() if device.kind == "CPU")

    def edit(element: Element) -> Element | None:
        if element.tag == "net":
            hca = nics.get(element.get("name") or "")
            if hca is None:
                return None
            return with_(element, dev=str(hca.index), **({"gdr": "0"} if hca.gdr is False else {}))
        if element.tag == "cpu" and given is None:
            arch, vendors = _CPUS[cpu[0]]
            return with_(element, arch=arch, vendor=vendors.get(cpu[1], ""), familyid="0", modelid="0")
        return element

    element = edited(tree, edit)
    if process.network != "Socket":
        return element
    speed = next(d.speed_gbs for d in system.devices.values() if d.kind == "NET")
    net = Element("net", (("name", "eth0"), ("dev", "0"), ("speed", str(round(speed * 8000))), ("gdr", "0")))
    net = with_(net, port="0", guid="0x0", latency="0", maxconn="65536")
    cpus = [child for child in element.children if child.tag == "cpu"]
    nic = Element("nic", (), (net,))
    return replace(element, children=(replace(cpus[0], children=(nic, *cpus[0].children)), *element.children[1:]))


def settings_of(job: Job, minor: int) -> Settings:
    process = job.processes[job.by_rank[0].process]
    env = {given.name: given.value for given in process.settings.values()}
    logs = JOBS.joinpath(*Path(job.files[0]).parts[-3:])
    if _P2P_OFF in "".join(lines(logs)):
        env["NCCL_P2P_LEVEL"] = "LOC"
    return read_settings(env, minor)


@cache
def lines(path: Path) -> tuple[str, ...]:
    with gzip.open(path, "rt", errors="replace") as stream:
        return tuple(line.rstrip("\n") for line in stream)


@cache
def cases(name: str) -> tuple[Case, ...]:
    result = logs_at(str(JOBS / name / "logs"))
    made = []
    for job in result.jobs:
        minor = minor_of(job.nccl_versions[0])
        settings = settings_of(job, minor)
        hosts = {host: index for index, host in enumerate(job.hosts)}
        process = {job.processes[rank.process].host: job.processes[rank.process] for rank in job.ranks}
        trees = [tree_of(name, job, process[host]) for host in job.hosts]
        for logged in job.communicators:
            ranks = [job.by_rank[int(rank)] for rank in logged.ranks]
            members = [Member(index, hosts[rank.host], rank.bus_id) for index, rank in enumerate(ranks)]
            cliques = [0] * len(trees) if logged.mnnvl else None
            built = communicator(trees, members, minor=minor, settings=settings, cliques=cliques)
            made.append(Case(f"{name} {logged.label}", job, logged, built, settings))
    return tuple(made)


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_counted_as_nccl_counts_them(name: str) -> None:
    for case in cases(name):
        if case.logged.nodes > 0:  # not printed before 2.20
            assert len(case.built.nodes) == case.logged.nodes, case.label


def channels(case: Case) -> Channels:
    built = case.built.channels
    unsaid = case.logged.channels.collnet < 0
    return Channels(built.coll, -1 if unsaid else built.collnet, built.nvls, built.p2p, built.p2p_per_peer)


@pytest.mark.parametrize("name", NAMES)
def test_channel_counts_are_those_of_every_rank(name: str) -> None:
    for case in cases(name):
        assert channels(case) == case.logged.channels, case.label
        assert case.logged.channels_by_rank == {}, case.label


def shown(graph: SearchGraph | Graph, minor: int) -> tuple[object, ...]:
    """What is printed of a graph that was found, or was printed of one; types of paths by their names."""
    names = path_types(minor).names
    types = [kind if isinstance(kind, str) else names[kind] for kind in (graph.type_intra, graph.type_inter)]
    bandwidths = round(graph.bw_intra, 3), round(graph.bw_inter, 3)
    return graph.pattern, graph.cross_nic, graph.channels, *bandwidths, *types, bool(graph.same_channels)


@pytest.mark.parametrize("name", NAMES)
def test_every_host_finds_the_graphs_that_it_printed(name: str) -> None:
    for case in cases(name):
        for host, graphs in case.logged.graphs.items():
            rank = next(
                index for index, world in enumerate(case.logged.ranks) if case.job.by_rank[int(world)].host == host
            )
            found = case.built.node(rank).graphs.values()
            one, other = ([shown(graph, case.built.minor) for graph in each] for each in (found, graphs))
            assert one == other, (case.label, host)


@pytest.mark.parametrize("name", NAMES)
def test_rings_are_those_printed(name: str) -> None:
    for case in cases(name):
        rings = case.built.rings()
        assert dict(enumerate(rings)) == dict(case.logged.rings), case.label


@pytest.mark.parametrize("name", NAMES)
def test_trees_are_those_printed(name: str) -> None:
    for case in cases(name):
        trees = case.built.trees()
        for channel, pairs in case.logged.trees.items():
            assert {rank: trees[channel][rank].up for rank, _ in pairs} == dict(pairs), (case.label, channel)


def own_lines(name: str, rank: int, wanted: str) -> str:
    """The first such line of a rank's log: that of the world communicator."""
    text = next((line for line in lines(JOBS / name / "logs" / f"rank{rank:03d}.log.gz") if wanted in line), "")
    return text.partition(wanted)[2]


@pytest.mark.parametrize("name", NAMES)
def test_the_worlds_lines_are_printed_word_for_word(name: str) -> None:
    world = cases(name)[0]
    built = world.built
    trees = built.trees()
    for rank in range(built.shape.nranks):
        assert own_lines(name, rank, " NCCL INFO Trees") == trees_text([t[rank] for t in trees], rank)
    rings = built.rings()
    for channel, ring in enumerate(rings):
        line = channel_line(channel, len(rings), ring, built.shape.nranks, built.minor)
        head = line.partition(":")[0]
        assert own_lines(name, 0, f" NCCL INFO {head}") == line[len(head) :]


@pytest.mark.parametrize("name", NAMES)
def test_the_worlds_nvls_heads_are_those_printed(name: str) -> None:
    built = cases(name)[0].built
    several = len(built.nodes) > 1 and built.shape.nvls_heads
    heads = zip(*(node.heads for node in built.orders()), strict=False) if several else ()
    for head, ranks in enumerate(heads):
        assert own_lines(name, 0, f"NVLS Head {head:2d}:") == "".join(f" {rank:2d}" for rank in ranks)


@pytest.mark.parametrize("name", NAMES)
def test_the_tuning_table_is_the_one_printed_to_one_per_cent(name: str) -> None:
    for case in cases(name):
        table = tuning_table(case.built.shape, case.settings)
        for (collective, algorithm, protocol), logged in case.logged.tuning.items():
            built = table[collective].get(SPELT.get(algorithm.upper(), algorithm), {}).get(SPELT[protocol.upper()])
            assert built is not None or logged == (0, 0), (case.label, collective, algorithm, protocol)
            for value, wanted in zip(built or (0, 0), logged, strict=True):
                assert value == pytest.approx(wanted, rel=0.01, abs=0.051), (
                    case.label,
                    collective,
                    algorithm,
                    protocol,
                )


@pytest.mark.parametrize("name", NAMES)
def test_choices_are_those_printed(name: str) -> None:
    for case in cases(name):
        shape, settings = case.built.shape, case.settings
        table = tuning_table(shape, settings)
        for logged in case.logged.choices:
            # 2.21 does not say of which collective.
            for collective in [logged.collective] if logged.collective else COLLECTIVES:
                size = logged.bytes * (shape.nranks if collective in {"AllGather", "ReduceScatter"} else 1)
                built = choose(shape, table, settings, collective, size if logged.collective else logged.bytes)
                if built is not None and (built.algorithm.upper(), built.protocol.upper()) == (
                    logged.algorithm.replace("_", "").upper(),
                    logged.protocol.upper(),
                ):
                    break
            else:
                pytest.fail(f"{case.label}: {logged}")


def test_the_comparison_reached_the_whole_corpus() -> None:
    made = [case for name in NAMES for case in cases(name)]
    sys.stdout.write(
        f"\n{len(NAMES)} jobs, {len(made)} communicators, {sum(len(case.logged.graphs) for case in made)} hosts, "
        f"{sum(len(case.logged.rings) for case in made)} rings, "
        f"{sum(len(case.logged.tuning) for case in made)} tuning cells, "
        f"{sum(len(case.logged.choices) for case in made)} choices compared\n"
    )
    assert {case.built.minor for case in made} >= {18, 21, 27, 28, 30}
    assert len(made) > 100


# --- the corpus' whole communicators: what NCCL's released libraries decided on the hardware of a topology file

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "topo2"
FILES = sorted(FOLDER.glob("*.xml"))


@pytest.mark.parametrize("path", some_of(FILES, "communicators", 2), ids=lambda path: path.stem)
def test_a_communicator_is_as_nccl_sets_it_up(path: Path) -> None:
    tally = Tally()
    compare_file(tally, path)
    assert sum(tally.asked.values()) > 100
    assert not tally.misses


# --- The corpus' topology files: every channel that NCCL's search found on them, against those found here


_WITH_NVLS = 3
MINORS = (27, 28, 30)
MADE_UP = ("gen", "x_")
"""How names of files begin that are drawn by chance, or are one machine in other spellings."""
_LEAST_ORDERS = 0.99


@dataclass
class Count:
    graphs: int = 0
    channels: int = 0
    equal_channels: int = 0
    misses: list[str] = field(default_factory=list)


def _found(name: str, minor: int, nodes: int, nvls: bool) -> tuple[PredictedGraph, ...] | None:
    """The graphs of rank 0, None where NCCL would not start."""
    system = "" if topology(name).refusal(minor) else system_of(name, minor, nodes)
    if isinstance(system, str):
        return None
    try:
        return tuple(describe(system, graph) for graph in search_graphs(system, read_settings({}, minor), nvls=nvls))
    except RejectedError:
        return None


_SUMMARY = ("pattern", "cross_nic", "channels", "bw_intra", "bw_inter", "type_intra", "type_inter", "same_channels")


def _compare(where: str, graph: PredictedGraph, wanted: dict[str, Any], count: Count) -> None:
    count.graphs += 1
    ours, theirs = [getattr(graph, key) for key in _SUMMARY], [wanted[key] for key in _SUMMARY]
    if [round(value, 6) if isinstance(value, float) else value for value in ours] != theirs:
        count.misses.append(f"{where}: {ours} where NCCL has {theirs} of {_SUMMARY}")
    orders = [tuple(order) for order in wanted["orders"]]
    count.channels += len(orders)
    count.equal_channels += sum(ours == theirs for ours, theirs in zip(graph.orders, orders, strict=False))


@pytest.mark.parametrize("minor", MINORS)
def test_every_graph_is_that_of_nccl(minor: int) -> None:
    count = Count()
    for name in sorted(set(TOPOLOGIES) - set(PREDICTED)):
        if minor not in some_of(MINORS, name, always=not name.startswith(MADE_UP)):
            continue
        for nodes in (1, 2):
            truth = truth_of(name)[f"2.{minor}"][str(nodes)]
            wanted = truth.get("graphs") or []
            graphs = _found(name, minor, nodes, len(wanted) == _WITH_NVLS)
            where = f"{name} on {nodes} under 2.{minor}"
            if is_bare(truth):
                assert graphs is not None, where
                continue
            if (graphs is not None) != truth["accepted"]:
                count.misses.append(f"{where}: NCCL {'accepts' if truth['accepted'] else 'refuses'} it")
            for ours, theirs in zip(graphs or (), wanted, strict=False):
                _compare(where, ours, theirs, count)
            if graphs is not None and len(graphs) != len(wanted):
                count.misses.append(f"{where}: {len(graphs)} graphs where NCCL has {len(wanted)}")
    sys.stdout.write(
        f"2.{minor}: {count.graphs} graphs, {count.equal_channels} of {count.channels} channels in NCCL's order\n"
    )

    assert count.graphs
    assert not count.misses, "\n".join(count.misses)
    assert count.equal_channels >= _LEAST_ORDERS * count.channels
