"""The corpus' jobs: every communicator rebuilt from the hardware's file, against what NCCL's logs say of it.

The file, the NICs and the settings are those of the job; of the logs only that goes in which a file cannot know: the
CPU where none was given, GPUs that may not use P2P, NICs without GPUDirect, sockets, and cliques over hosts.
"""

import gzip
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from benchmarks.nccl_agreement import KINDS, Tally, compare_case, compare_file, compare_one, questions
from benchmarks.nccl_rings import all_orders, rings_of, trees_of
from tests.depth import some_of
from tests.nccl.corpus import ABSENT, JOBS, TOPOLOGIES, is_bare, topology, truth_of
from tests.nccl.printed import channel_line, trees_text
from tests.scanned import logs_at
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.job import Channels, Communicator, Job, Process
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import minor_of, path_types
from topodiag.model.nccl_view import Graph
from topodiag.model.node import Node
from topodiag.nccl.connect import communicator as nccl
from topodiag.nccl.connect.communicator import Member, communicator
from topodiag.nccl.graph.attach import HostTree
from topodiag.nccl.graph.domains import build_system
from topodiag.nccl.graph.graph import SearchGraph
from topodiag.nccl.graph.paths import path_table
from topodiag.nccl.predict import predict
from topodiag.nccl.settings import Settings, read_settings
from topodiag.nccl.tuning.choice import predicted_us
from topodiag.nccl.tuning.tuning import tuning_table
from topodiag.nccl.tuning.tuning_constants import ALGORITHMS, COLLECTIVES, PROTOCOLS
from topodiag.nccl.tuning.tuning_model import Cell


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
    trees: list[Element]
    members: list[Member]


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
            made.append(Case(f"{name} {logged.label}", job, logged, built, settings, trees, members))
    return tuple(made)


def channels(case: Case) -> Channels:
    built = case.built.channels
    unsaid = case.logged.channels.collnet < 0
    return Channels(built.coll, -1 if unsaid else built.collnet, built.nvls, built.p2p, built.p2p_per_peer)


def shown(graph: SearchGraph | Graph, minor: int) -> tuple[object, ...]:
    """What is printed of a graph that was found, or was printed of one; types of paths by their names."""
    names = path_types(minor).names
    types = [kind if isinstance(kind, str) else names[kind] for kind in (graph.type_intra, graph.type_inter)]
    bandwidths = round(graph.bw_intra, 3), round(graph.bw_inter, 3)
    return graph.pattern, graph.cross_nic, graph.channels, *bandwidths, *types, bool(graph.same_channels)


@pytest.mark.parametrize("name", NAMES)
def test_each_communicator_is_set_up_and_tuned_as_its_logs_say(name: str) -> None:
    """Nodes as NCCL counts them, channels, the graphs of each host, rings, trees, the tuning table, choices by size."""
    for case in cases(name):
        assert [miss for _, same, miss in compare_case(sys.modules[__name__], case) if not same] == [], case.label
        assert case.logged.channels_by_rank == {}, case.label


@pytest.mark.parametrize("name", NAMES)
def test_the_systems_of_hosts_are_those_printed(name: str) -> None:
    """Bandwidths, and the type of each way, also in versions of which no topology is in the corpus."""
    for case in cases(name):
        for host, printed in case.logged.systems.items() if not case.logged.mnnvl else ():
            place = case.job.hosts.index(host)
            ranks = {member.bus_id: member.rank for member in case.members if member.host == place}
            system = build_system(
                [HostTree(case.trees[place], ranks)], minor=case.built.minor, settings=case.settings,
                nranks=len(case.members), me=printed.of_kind("GPU")[0].rank,
            )  # fmt: skip
            assert (round(system.max_bw, 1), round(system.total_bw, 1)) == (printed.max_gbs, printed.total_gbs)
            table = path_table(system)
            paths = {ends: kind for ends, kind in printed.paths.items() if all(end.startswith(KINDS) for end in ends)}
            assert paths
            for (source, target), kind in paths.items():
                assert table[source][target][2] == kind.name, (case.label, host, source, target)


def own_lines(name: str, rank: int, wanted: str) -> str:
    """The first such line of a rank's log: that of the world communicator."""
    text = next((line for line in lines(JOBS / name / "logs" / f"rank{rank:03d}.log.gz") if wanted in line), "")
    return text.partition(wanted)[2]


@pytest.mark.parametrize("name", NAMES)
def test_the_worlds_lines_are_printed_word_for_word(name: str) -> None:
    world = cases(name)[0]
    built = world.built
    trees = trees_of(built)
    for rank in range(built.shape.nranks):
        assert own_lines(name, rank, " NCCL INFO Trees") == trees_text([t[rank] for t in trees], rank)
    rings = rings_of(built)
    for channel, ring in enumerate(rings):
        line = channel_line(channel, len(rings), ring, built.shape.nranks, built.minor)
        head = line.partition(":")[0]
        assert own_lines(name, 0, f" NCCL INFO {head}") == line[len(head) :]


@pytest.mark.parametrize("name", NAMES)
def test_the_worlds_nvls_heads_are_those_printed(name: str) -> None:
    built = cases(name)[0].built
    several = len(built.nodes) > 1 and built.shape.nvls_heads
    heads = zip(*(node.heads for node in all_orders(built)), strict=False) if several else ()
    for head, ranks in enumerate(heads):
        assert own_lines(name, 0, f"NVLS Head {head:2d}:") == "".join(f" {rank:2d}" for rank in ranks)


_TIME = re.compile(r"(\d+) Bytes -> Algo (\d) proto (\d) time (\d+\.\d+)")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("v2.21")])
def test_times_are_those_that_nccl_predicted(name: str) -> None:
    """NCCL 2.21 prints them, and not of which collective."""
    case = cases(name)[0]
    table = tuning_table(case.built.shape, case.settings)
    text = "\n".join(line for path in sorted((JOBS / name / "logs").glob("*.log.gz")) for line in lines(path))
    times = _TIME.findall(text)
    assert times
    for size, number, protocol_number, time in times:
        algorithm, protocol = ALGORITHMS[int(number)], PROTOCOLS[int(protocol_number)]
        cells = {each: table[each].get(algorithm, {}).get(protocol, (0.0, 0.0)) for each in COLLECTIVES}
        ours = [
            predicted_us(case.built.shape, Cell(collective, algorithm, protocol), cell)(int(size))
            for collective, cell in cells.items() if cell[1]
        ]  # fmt: skip
        assert any(one == pytest.approx(float(time), rel=1e-4) for one in ours), (size, algorithm, protocol)


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


# --- the corpus' topology files: what NCCL decided on a file alone


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_topology_is_decided_on_as_nccl_does(name: str) -> None:
    """Refused with its words, or taken with its bandwidths, the ways between devices, its graphs and their channels."""
    tally, node = Tally(), Node(name, nccl_file=topology(name))
    asked = list(questions(truth_of(name)))
    for version, nodes, truth in some_of(asked, name, always=not name.startswith("gen")):
        prediction = predict(node, nodes=nodes, version=version, sizes=(), whole=True)
        compare_one(tally, version, f"{nodes} nodes", prediction, truth)
        if prediction.accepted and not is_bare(truth):
            ours = {start: {end for end in ends if end.startswith(KINDS)} for start, ends in prediction.paths.items()}
            assert ours == {start: set(ends) for start, ends in truth["paths"].items()} or not truth["paths"]
    assert not tally.misses


def test_the_topologies_answer_for_three_versions_and_one_and_two_nodes() -> None:
    asked = {(version, nodes) for name in TOPOLOGIES for version, nodes, _ in questions(truth_of(name))}
    assert asked == {(f"2.{minor}", nodes) for minor in (27, 28, 30) for nodes in (1, 2)}
