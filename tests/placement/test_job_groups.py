"""Groups of a job by its logs alone, and ranks on the slots of a cluster."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from tests.tables import examples
from topodiag.app.case.placement import Placement, PlaceOptions, open_cluster, open_placement
from topodiag.emit.place_formats import write
from topodiag.evidence.interface import Blob
from topodiag.evidence.layout.rank_files import read_slurm_hostfile
from topodiag.model.cluster import Assignment, Cluster, RankHosts, map_of
from topodiag.model.connections import no_connections
from topodiag.model.errors import InputError, TopodiagError
from topodiag.model.finding import Confidence
from topodiag.model.job import Communicator, Job, Operations, Rank
from topodiag.model.layout import BY_NAME, Layout, Role
from topodiag.model.layout_groups import groups_of
from topodiag.placement.audit import Audit, audit
from topodiag.placement.job_groups import NO_ROLES, joined_by_nvlink, layout_of_job, talk_of_job
from topodiag.placement.seats import RULES, assign, by_rule, ranks_of
from topodiag.placement.solve import solve

JOBS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus" / "jobs"
NAMES = sorted(path.parent.name for path in JOBS.glob("*g_tp8_*/truth.json"))


@cache
def opened(name: str) -> Placement:
    return open_placement(PlaceOptions(system="dgx-h100", logs=(str(JOBS / name / "logs"),)))


def audited(name: str) -> Audit:
    made = opened(name)
    assert made.read.job is not None
    assert made.assignment is not None
    return audit(made.cluster, talk_of_job(made.cluster, made.read.job), made.assignment)


@pytest.mark.skipif(not NAMES, reason=f"the corpus is not at {JOBS}: nothing was compared")
def test_the_packed_and_the_scattered_job_are_there() -> None:
    assert {"g_tp8_packed", "g_tp8_scatter"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_exactly_the_split_groups_of_the_truth_are_named(name: str) -> None:
    truth: dict[str, Any] = json.loads((JOBS / name / "truth.json").read_text())
    wanted = {tuple(group["ranks"]) for group in truth["communicators"] if group["name"] == "TP" and group["nodes"] > 1}
    report = audited(name)
    named = {
        tuple(dimension.groups[number].tolist())
        for dimension in report.dimensions
        for number in dimension.split.tolist()
    }
    assert named == wanted
    assert bool(wanted) == ("scatter" in name)


@pytest.mark.parametrize("name", NAMES)
def test_the_map_to_compare_with_has_none_applied_to_the_truth(name: str) -> None:
    truth = json.loads((JOBS / name / "truth.json").read_text())
    report = audited(name)
    node = report.cluster.node_of(report.best.slot)
    for group in truth["communicators"]:
        if group["name"] == "TP":
            assert len(set(node[group["ranks"]].tolist())) == 1


# --- jobs made by hand --------------------------------------------------------------------------------------


def cluster() -> Cluster:
    return open_cluster(PlaceOptions(system="dgx-h100", nodes=2))


def communicator(index: int, role: Role, ranks: list[int], **more: Any) -> Communicator:
    many: dict[str, Any] = {"role": role, "role_sure": Confidence.HIGH, "parent": 0, **more}
    return Communicator(index, len(ranks), np.asarray(ranks, np.int64), **many)


def operations(**calls: int) -> dict[int, Operations]:
    sizes = {name: count << 20 for name, count in calls.items()}
    return {0: Operations(0, sum(calls.values()), bytes_by_collective=sizes, calls_by_collective=calls)}


def job(*communicators: Communicator, ranks: int = 4) -> Job:
    world = Communicator(0, ranks, np.arange(ranks), role=Role.WORLD, role_sure=Confidence.HIGH)
    return Job("job", ranks, (), (), (world, *communicators), no_connections(), ("a", "b"))


def test_a_log_of_whole_steps_gives_sizes_and_calls() -> None:
    tensor = communicator(1, Role.TP, [0, 1], operations=operations(AllReduce=320))
    data = communicator(2, Role.DP, [0, 2], operations=operations(AllGather=2))
    talk = talk_of_job(cluster(), job(tensor, data))
    table = {demand.dimension: (demand.collective, demand.calls, demand.bytes) for demand in talk.demands}
    assert table["tp"] == ("all_reduce", 320, 1 << 20)
    assert table["dp"] == ("all_gather", 2, 2 << 20), "NCCL logs one rank's part, nccl-tests counts all"
    assert not any("rule of thumb" in assumption for assumption in talk.assumed)


def test_a_log_of_first_operations_gives_sizes_alone() -> None:
    tensor = communicator(1, Role.TP, [0, 1], operations=operations(AllReduce=1))
    data = communicator(2, Role.DP, [0, 2], operations=operations(AllReduce=1))
    talk = talk_of_job(cluster(), job(tensor, data))
    table = {demand.dimension: (demand.calls, demand.bytes) for demand in talk.demands}
    assert table == {"tp": (5120, 1 << 20), "dp": (1, 1 << 20)}
    assert any("too few operations to be training steps" in assumption for assumption in talk.assumed)


def test_a_log_without_operations_is_the_rule_of_thumb() -> None:
    talk = talk_of_job(cluster(), job(communicator(1, Role.TP, [0, 1]), communicator(2, Role.TP, [2, 3])))
    (tensor,) = talk.demands
    assert tensor.groups.tolist() == [[0, 1], [2, 3]]
    assert tensor.bytes > 0
    assert any("rule of thumb" in assumption for assumption in talk.assumed)


def test_guesses_and_torn_groups_are_left_out_and_said() -> None:
    guess = communicator(1, Role.TP, [0, 1], role_sure=Confidence.LOW)
    torn = communicator(2, Role.DP, [0, -1])
    talk = talk_of_job(cluster(), job(guess, torn))
    assert [demand.dimension for demand in talk.demands] == ["all"]
    assert len(talk.assumed) == 3
    assert talk.assumed[-1] == NO_ROLES


def test_what_groups_were_split_from_is_no_group() -> None:
    parent = communicator(1, Role.TP, [0, 1, 2, 3], parent=-1)
    children = [communicator(2, Role.TP, [0, 1], parent=1), communicator(3, Role.TP, [2, 3], parent=1)]
    (tensor,) = talk_of_job(cluster(), job(parent, *children)).demands
    assert tensor.groups.tolist() == [[0, 1], [2, 3]]


def test_two_communicators_of_one_group_are_one_group() -> None:
    twice = [communicator(number, Role.TP, [0, 1]) for number in (1, 2)]
    (tensor,) = talk_of_job(cluster(), job(*twice)).demands
    assert tensor.groups.tolist() == [[0, 1]]


def test_hosts_that_nvlink_joins_are_one_domain() -> None:
    """NCCL counts the trays of a rack as one node; groups over two of them are not split."""
    trays = replace(cluster(), names=("a", "b"))
    rack = communicator(1, Role.TP, [0, 1, 2, 3], nodes=1, hosts=("a", "b"))
    fabric = joined_by_nvlink(trays, job(rack))
    assert fabric.nvlink_domain.tolist() == [0, 0]
    assert [level.kind for level in fabric.levels] == ["nvlink", "fabric"]
    judged = audit(fabric, talk_of_job(fabric, job(rack)), Assignment(np.asarray([0, 1, 8, 9])))
    assert judged.dimensions[0].domains.tolist() == [1]
    assert not judged.dimensions[0].split.size


def test_hosts_that_only_the_network_joins_stay_apart() -> None:
    trays = replace(cluster(), names=("a", "b"))
    assert joined_by_nvlink(trays, job(communicator(1, Role.TP, [0, 1], nodes=2, hosts=("a", "b")))) is trays


def test_an_empty_job_says_nothing() -> None:
    empty = replace(job(ranks=1), communicators=())
    assert not talk_of_job(cluster(), empty).demands


# --- the parallel sizes of a job that ran: told by its communicators where they leave no doubt, and by nothing else


def comms(
    layout: Layout, world: int, names: Sequence[str], confidence: Confidence = Confidence.HIGH
) -> list[Communicator]:
    """The communicators of these dimensions, as a log names them."""
    communicators: list[Communicator] = []
    for name in names:
        for row in groups_of(layout, world)[name]:
            role = BY_NAME[name].role
            communicators.append(
                Communicator(len(communicators) + 1, len(row), row.astype(np.int64), role=role, role_sure=confidence)
            )
    return communicators


def of(layout: Layout, names: Sequence[str], world: int = 16, sure: Confidence = Confidence.HIGH) -> Job:
    return jobs.job(world // 8, communicators=comms(layout, world, names, sure))


@examples("layout")
def test_sizes_that_make_all_ranks_are_the_layout(layout: Layout) -> None:
    sizes = layout.for_world(16).sizes
    found = layout_of_job(of(layout, [name for name, size in sizes.items() if size > 1]))
    assert dict(found.sizes) == dict(sizes)
    assert all(found.stride(name) == layout.stride(name) for name, size in sizes.items() if size > 1)


def torn() -> Job:
    """Groups that no order of dimensions makes."""
    first, *others = comms(Layout(tp=8, dp=2), 16, ["tp", "dp"])
    return jobs.job(2, communicators=[replace(first, ranks=np.array([0, 1, 2, 3, 4, 5, 6, 15])), *others])


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(of(Layout(tp=4, dp=4), ["tp"]), id="one dimension alone does not say what the others are"),
        pytest.param(of(Layout(tp=8, dp=2), ["tp", "dp"], sure=Confidence.LOW), id="roles that are a guess"),
        pytest.param(jobs.job(2), id="one communicator"),
        pytest.param(torn(), id="groups that no order makes"),
    ],
)
def test_what_leaves_a_doubt_tells_no_layout(run: Job) -> None:
    assert layout_of_job(run) is None


# --- Jobs of the corpus, solved from their logs: the emitted map, set against what the corpus knows of the job


def tensor_groups(truth: dict[str, Any]) -> list[list[int]]:
    return [
        communicator["ranks"] for communicator in truth["communicators"] if str(communicator["name"]).startswith("TP")
    ]


@pytest.mark.parametrize("name", ["g_tp8_scatter", "g_tp8_packed"])
def test_the_emitted_map_splits_no_tensor_group_of_the_truth(name: str) -> None:
    if not (JOBS / name).is_dir():
        pytest.skip(f"no corpus at {JOBS}")
    opened = open_placement(PlaceOptions(logs=(str(JOBS / name),)))
    assert opened.read.job is not None
    talk = talk_of_job(opened.cluster, opened.read.job)
    solution = solve(opened.cluster, talk.demands, talk.world)
    text = write(map_of(opened.cluster, solution.assignment), "slurm-hostfile").text
    again = assign(opened.cluster, read_slurm_hostfile(Blob("hosts", text.encode())))
    node = opened.cluster.node_of(again.slot)
    groups = tensor_groups(json.loads((JOBS / name / "truth.json").read_text()))
    assert groups
    assert all(np.unique(node[group]).size == 1 for group in groups)


# --- Where the ranks of a job ran, from its logs, also of ranks that left no line


def job_of(hosts: str, *, without: tuple[int, ...] = (), gpus: bool = True) -> Job:
    """Hosts of one letter each, rank by rank."""
    ranks = [
        Rank(rank, host, 100 + rank, nvml_dev=hosts[:rank].count(host) if gpus else 0, bus_id=f"0000:{rank:02x}:00.0")
        for rank, host in enumerate(hosts)
        if rank not in without
    ]
    return Job("job", len(hosts), tuple(ranks), (), (), no_connections(), tuple(sorted(set(hosts))))


def places(run: Job) -> list[tuple[str, int]]:
    rank_hosts = ranks_of(run, "log")
    return [
        (rank_hosts.hosts[at], gpu) for at, gpu in zip(rank_hosts.host.tolist(), rank_hosts.gpu.tolist(), strict=True)
    ]


def test_ranks_are_where_their_lines_say() -> None:
    assert places(job_of("abab")) == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert ranks_of(job_of("abab"), "log").notes == ()


def test_gpus_that_all_processes_call_0_are_counted_by_bus_id() -> None:
    assert places(job_of("aabb", gpus=False)) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


@pytest.mark.parametrize(("hosts", "without"), [("abab", (1,)), ("aabb", (2,)), ("abababab", (5, 7))])
def test_ranks_without_a_line_are_where_the_others_leave_room(hosts: str, without: tuple[int, ...]) -> None:
    document = job_of(hosts, without=without)
    pairs = places(document)
    assert [pairs[rank] for rank in without] == [("b", -1)] * len(without)
    assert [pair for rank, pair in enumerate(pairs) if rank not in without] == [
        (rank.host, rank.nvml_dev) for rank in document.ranks
    ]


def test_it_is_said() -> None:
    (note,) = ranks_of(job_of("abab", without=(1,)), "log").notes
    assert note == "ranks without a line in the log are taken to be on b, where others of the job leave room: 1"


@examples("hosts", "without", "says")
def test_ranks_that_can_be_anywhere_are_one_clear_line(hosts: str, without: tuple[int, ...], says: str) -> None:
    with pytest.raises(InputError) as caught:
        ranks_of(job_of(hosts, without=without), "log")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def cluster_of(*names: str, free: list[list[int]] | None = None, gpus: int = 2) -> Cluster:
    usable = np.ones((len(names), gpus), bool)
    if free is not None:
        usable[:] = False
        for node, numbers in enumerate(free):
            usable[node, numbers] = True
    return Cluster(names, usable, np.arange(len(names)), (), 1.0, 400.0)


def named(*hosts: str, gpus: list[int] | None = None, whole: bool = False) -> RankHosts:
    distinct = tuple(dict.fromkeys(hosts))
    host = np.asarray([distinct.index(host) for host in hosts], np.int64)
    gpu = np.full(len(hosts), -1, np.int64) if gpus is None else np.asarray(gpus, np.int64)
    return RankHosts("file", distinct, host, gpu, whole)


@examples("names", "free", "rule", "slots")
def test_a_rule_takes_slots_in_its_order(
    names: list[str], free: list[list[int]] | None, rule: str, slots: list[int]
) -> None:
    assert by_rule(cluster_of(*names, free=free), rule).slot.tolist()[: len(slots)] == slots


A_AND_B = cluster_of("a", "b", free=[[1], [0, 1]])


@pytest.mark.parametrize(
    ("fabric", "ranks", "slots"),
    [
        pytest.param(A_AND_B, named("b", "a", "b"), [2, 1, 3], id="ranks of a node take its free GPUs in their order"),
        pytest.param(A_AND_B, named("b", "a", whole=True), [2, 3, 1], id="whole hosts give all their free GPUs"),
        pytest.param(cluster_of("a", gpus=4), named(*"aaa", gpus=[-1, 0, -1]), [1, 0, 2], id="named GPUs are taken"),
        pytest.param(cluster_of("a.hpc", "b.hpc"), named("b", "a.other"), [2, 0], id="the first part of a host's name"),
    ],
)
def test_ranks_of_hosts_take_their_slots(fabric: Cluster, ranks: RankHosts, slots: list[int]) -> None:
    assert assign(fabric, ranks).slot.tolist() == slots


@examples("hosts", "gpus", "world", "says")
def test_what_cannot_be_seated_is_one_clear_line(
    hosts: list[str], gpus: list[int] | None, world: int | None, says: str
) -> None:
    with pytest.raises(TopodiagError) as caught:
        assign(cluster_of("a", "b"), named(*hosts, gpus=gpus), world or 0)
    assert says in str(caught.value)


def test_more_ranks_than_gpus_is_one_clear_line() -> None:
    with pytest.raises(TopodiagError, match="5 ranks do not fit on 4 usable GPUs of 2 nodes"):
        by_rule(cluster_of("a", "b"), "block", 5)


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6), st.sampled_from(RULES))
def test_a_rule_seats_every_rank_on_its_own_free_gpu(rows: list[list[bool]], rule: str) -> None:
    usable = np.asarray(rows)
    fabric = Cluster(tuple(f"n{n}" for n in range(len(rows))), usable, np.arange(len(rows)), (), 1.0, 400.0)
    assert sorted(by_rule(fabric, rule).slot.tolist()) == fabric.free_slots().tolist()


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=5), st.randoms())
def test_names_of_slots_seat_the_same_slots(rows: list[list[bool]], random: object) -> None:
    usable = np.asarray(rows)
    fabric = Cluster(tuple(f"n{n}" for n in range(len(rows))), usable, np.arange(len(rows)), (), 1.0, 400.0)
    slots = fabric.free_slots().tolist()
    random.shuffle(slots)  # type: ignore[attr-defined]
    if slots:
        ranks = named(*(fabric.names[slot // 3] for slot in slots), gpus=[slot % 3 for slot in slots])
        assert assign(fabric, ranks).slot.tolist() == slots
