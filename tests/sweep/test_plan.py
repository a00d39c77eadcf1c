"""Plans of sweeps: few runs, every part twice, disjoint waves; their commands, and the file that they are kept in."""

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sweep_fabric import Noise, fabric_of, measure
from tests.files import filed
from tests.tables import examples
from topodiag.model.errors import InputError, TopodiagError
from topodiag.sweep.commands import command, refuse_arguments, refuse_environment
from topodiag.sweep.further import next_round
from topodiag.sweep.judge import judge
from topodiag.sweep.places import expand, fabric_from, read_racks
from topodiag.sweep.plan import DEFAULT, KINDS, edges, exists, first_round, rail_run
from topodiag.sweep.planfile import plan_json, plan_text, read_plan
from topodiag.sweep.values import Fabric, Launch, SweepPlan


def nodes(count: int) -> tuple[str, ...]:
    return tuple(f"n{number:03d}" for number in range(1, count + 1))


fabrics = st.builds(
    lambda count, gpus, racks: Fabric(
        nodes(count), gpus, gpus, racks={node: f"r{place % racks}" for place, node in enumerate(nodes(count)) if racks}
    ),
    st.integers(2, 20),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(0, 5),
)


def assert_waves_are_disjoint(plan: SweepPlan) -> None:
    taken: Counter[tuple[int, str, int]] = Counter()
    for run in plan.runs:
        for node in run.nodes:
            taken.update(
                (run.wave, node, gpu) for gpu in (run.gpus if len(run.nodes) == 1 else range(plan.fabric.gpus))
            )
    assert max(taken.values()) == 1


@given(fabrics)
def test_runs_of_a_wave_share_no_gpu_and_no_id_in_any_round(fabric):
    plans = [first_round(fabric, KINDS[:-2])]
    results = measure(plans[0], {}, Random(1), Noise(0.1, 0.3))
    second = next_round(plans, judge(plans, results))
    for plan in [*plans, *([second] if second else [])]:
        assert_waves_are_disjoint(plan)
        assert len({run.id for run in plan.runs}) == len(plan.runs)


@given(st.integers(3, 200))
def test_a_ring_gives_every_node_two_different_partners(count):
    partners: dict[int, set[int]] = {}
    for a, b, _ in edges(count):
        partners.setdefault(a, set()).add(b)
        partners.setdefault(b, set()).add(a)
    assert all(len(met) == 2 for met in partners.values())
    assert len(partners) == count


def test_64_nodes_take_some_140_runs_in_seven_waves_and_not_all_512_rails():
    plan = first_round(fabric_of(64, 8))
    assert Counter(run.kind for run in plan.runs) == {"intra": 64, "pairs": 32, "ring": 32, "racks": 8, "bisection": 4}
    assert plan.waves == 7


def test_every_rail_is_measured_by_itself_on_request():
    plan = first_round(fabric_of(8, 2), ("rails",))
    assert {(run.rail, run.gpus) for run in plan.runs} == {(rail, (rail,)) for rail in range(8)}
    assert len(plan.runs) == 8 * 8


def test_a_bisection_is_two_halves_alone_and_two_that_cross_the_middle():
    halves = first_round(fabric_of(8, 2), ("bisection",)).runs
    assert [run.nodes[:2] for run in halves] == [
        ("node001", "node002"), ("node005", "node006"), ("node001", "node003"), ("node002", "node004"),
    ]  # fmt: skip
    assert [run.wave for run in halves] == [1, 1, 2, 2]


def test_combinations_that_nccl_does_not_have_are_not_planned():
    plan = first_round(fabric_of(2, 1), (), algorithms=("Tree", "NVLS"), protocols=("LL", "Simple"),
                       collectives=("all_reduce", "all_gather"))  # fmt: skip
    assert [(run.collective, run.algorithm, run.protocol) for run in plan.runs] == [
        ("all_reduce", "Tree", "LL"), ("all_reduce", "Tree", "Simple"), ("all_reduce", "NVLS", "Simple"),
        ("all_gather", "NVLS", "Simple"),
    ]  # fmt: skip
    assert not exists("alltoall", "Ring", "")


def test_a_node_alone_with_one_gpu_leaves_nothing_to_compare():
    with pytest.raises(TopodiagError, match="nothing to compare"):
        first_round(Fabric(("a",), 1, 1))


PAIR = Fabric(("a1", "a2"), 8, 8, tuple(f"mlx5_{rail}" for rail in range(8)))


def plan_of(launch: Launch = Launch(), kinds=DEFAULT, fabric: Fabric = PAIR) -> SweepPlan:  # noqa: B008 - frozen
    return replace(first_round(fabric, kinds), launch=launch)


def test_srun_gets_an_argument_list_with_the_nodes_and_one_rank_a_gpu():
    plan = plan_of(Launch(arguments=("--mpi=pmix",), env={"NCCL_DEBUG": "WARN"}), ("pairs",))
    assert list(command(plan, plan.runs[0]).argv) == [
        "srun", "--nodes=2", "--ntasks=16", "--ntasks-per-node=8", "--nodelist=a1,a2", "--kill-on-bad-exit=1",
        "--overlap", "--mpi=pmix", "env", "NCCL_DEBUG=WARN", "alltoall_perf", "-b", "268435456", "-e", "1073741824",
        "-f", "2", "-g", "1", "-n", "20", "-w", "5", "-c", "1",
    ]  # fmt: skip


def test_mpirun_gets_slots_by_host_and_a_rail_is_one_gpu_with_its_own_nic():
    plan = plan_of(Launch("mpirun"), ("rails",))
    run = next(run for run in plan.runs if run.rail == 3)
    argv = command(plan, run).argv
    assert argv[:5] == ("mpirun", "-np", "2", "--host", "a1:1,a2:1")
    assert argv[5:9] == ("env", "CUDA_VISIBLE_DEVICES=3", "NCCL_IB_HCA==mlx5_3", "sendrecv_perf")


def test_one_machine_alone_needs_no_launcher_and_gives_all_gpus_to_one_process():
    plan = plan_of(Launch("none"), ("intra",), Fabric(("localhost",), 4, 4))
    argv = command(plan, plan.runs[0]).argv
    assert argv[0] == "all_reduce_perf"
    assert argv[argv.index("-g") + 1] == "4"


def test_ib_write_bw_listens_on_the_first_node_and_is_called_from_the_second():
    plan = plan_of(kinds=("pairs",))
    call = command(plan, rail_run(PAIR, "a1", "a2", 5, 1, kind="fabric"))
    assert "--nodelist=a1" in call.server
    assert call.server[-1] == "5"
    assert "--nodelist=a2" in call.argv
    assert call.argv[-1] == "a1"
    assert call.argv[call.argv.index("-d") + 1] == "mlx5_5"


@given(fabrics, st.sampled_from(["srun", "mpirun"]), st.integers(1, 900))
@settings(max_examples=15)
def test_a_plan_is_read_back_as_it_was_written(tmp_path_factory, fabric, launcher, timeout):
    plan = replace(
        first_round(fabric, KINDS, algorithms=("Ring",)), launch=Launch(launcher, ("--x",), {"A": "b"}, timeout)
    )
    path = filed(tmp_path_factory.mktemp("plan"), "plan.json", plan_text(plan))
    assert read_plan(str(path)) == plan
    assert json.loads(path.read_text()) == json.loads(json.dumps(plan_json(plan)))


WRONG = [
    (lambda plan: plan | {"format": "other"}, "is no plan"),
    (lambda plan: plan | {"version": 2}, "version 2"),
    (lambda plan: plan | {"round": "1"}, r"`\$.round`"),
    (lambda plan: plan | {"runs": 3}, r"`\$.runs`"),
    (lambda plan: plan | {"runs": [7]}, r"`\$.runs\[0\]`"),
    (lambda plan: plan | {"runs": plan["runs"] * 2}, "two of its runs have one id"),
    (lambda plan: changed(plan, program="/bin/rm"), r"`\$.runs\[0\].program`"),
    (lambda plan: changed(plan, id="../../evil"), r"`\$.runs\[0\].id`"),
    (lambda plan: changed(plan, nodes="b1,b2"), "not of the fabric"),
    (lambda plan: changed(plan, nodes="-a,--b"), "no host name"),
    (lambda plan: changed(plan, nodes="@all"), "node groups"),
    (lambda plan: changed(plan, nodes="a[1-999999999]"), "more than"),
    (lambda plan: changed(plan, gpus=[99]), "gpus"),
    (lambda plan: changed(plan, rail=True), "rail"),
    (lambda plan: changed(plan, max_bytes=-1), r"`\$.runs\[0\].max_bytes`"),
    (lambda plan: plan | {"launch": plan["launch"] | {"launcher": "bash"}}, "launcher 'bash'"),
    (lambda plan: plan | {"launch": plan["launch"] | {"env": {"A=B": "c"}}}, "env"),
]


def changed(plan, **fields):
    return plan | {"runs": [plan["runs"][0] | fields, *plan["runs"][1:]]}


@pytest.mark.parametrize(("spoil", "words"), WRONG)
def test_a_plan_that_is_none_is_refused_in_one_line_that_names_the_field(tmp_path, spoil, words):
    path = filed(tmp_path, "plan.json", json.dumps(spoil(plan_json(plan_of()))))
    with pytest.raises(InputError, match=words) as refused:
        read_plan(str(path))
    assert "\n" not in refused.value.message


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(["fabric", "launch", "runs", "round", "ib_write_bw"]), st.none() | st.text(max_size=10), junk)
def test_whatever_stands_in_a_field_of_a_plan_it_is_read_or_refused(tmp_path_factory, key, inner, value):
    plan = plan_json(plan_of())
    if isinstance(plan[key], dict) and inner is not None:
        name = inner if inner in plan[key] else next(iter(plan[key]))
        plan[key] = plan[key] | {name: value}
    else:
        plan[key] = value
    path = filed(tmp_path_factory.mktemp("junk"), "plan.json", json.dumps(plan))
    with suppress(InputError):  # whatever else is raised fails the test
        read_plan(str(path))


def test_deeply_nested_json_is_refused(tmp_path):
    path = filed(tmp_path, "plan.json", "[" * 200_000)
    with pytest.raises(InputError, match="is no plan"):
        read_plan(str(path))


@pytest.mark.parametrize(
    "text",
    ["n[1-99999999999]", "n[1-9999][1-9999]", ",".join(f"n[{i}-{i + 9999}]" for i in range(0, 40000, 10000)), "n[1-"
     "20001]", "n[001-999],m[000001-999999]"],
)  # fmt: skip
def test_a_node_set_beyond_all_clusters_is_refused_before_it_is_expanded(text):
    with pytest.raises(TopodiagError, match="more than 20000 nodes"):
        expand(text)


@examples("data", "name", "racks")
def test_racks_come_from(data: bytes, name: str, racks: dict[str, str]):
    assert read_racks(data, name) == racks


RACKLESS = {b"n1,r1\nn1,r2\n": ":2: n1 is in r1 and in r2", b"n1\n": ":1: 'n1' is not NODE,RACK", b"": "names no rack",
            b"n[1-99999999],r1": "more than", b"\xff\xfe\n": "is not NODE,RACK"}  # fmt: skip


@pytest.mark.parametrize(("data", "words"), RACKLESS.items())
def test_a_rack_file_that_contradicts_itself_or_is_none_is_refused_with_its_line(data, words):
    with pytest.raises(InputError, match=words):
        read_racks(data, "racks.csv")


def test_nics_keep_the_order_in_which_they_are_given():
    fabric = fabric_from(["n[1-2]"], gpus=4, nics="mlx5_3,mlx5_[0-2]", rails=None, racks=None, leaf_per_rail=True)
    assert fabric.nics == ("mlx5_3", "mlx5_0", "mlx5_1", "mlx5_2")
    assert fabric.rails == 4


def test_racks_that_name_none_of_the_nodes_are_refused(tmp_path):
    path = filed(tmp_path, "racks.csv", "m1,r1\n")
    with pytest.raises(InputError, match="names none of the nodes"):
        fabric_from(["n1"], gpus=8, nics="", rails=None, racks=str(path), leaf_per_rail=True)


# --- A plan names launchers and benchmarks only ---------------------------------------------------------------


@examples("launcher", "words")
def test_what_would_start_another_program_is_refused(launcher: str, words: list[str]) -> None:
    assert refuse_arguments(launcher, words)


@examples("launcher", "words")
def test_options_of_the_launcher_are_taken(launcher: str, words: list[str]) -> None:
    assert not refuse_arguments(launcher, words)


def test_variables_that_load_code_are_refused() -> None:
    assert refuse_environment({"LD_PRELOAD": "/tmp/x.so"})
    assert refuse_environment({"PATH": "/tmp"})
    assert not refuse_environment({"NCCL_DEBUG": "WARN", "NCCL_NET_PLUGIN": "ofi", "UCX_TLS": "tcp"})


@examples("launch")
def test_a_plan_that_starts_anything_else_is_not_run(launch: Launch, tmp_path: Path) -> None:
    sweep = replace(first_round(Fabric(("a", "b"), 8, 8), ("pairs",)), launch=launch)
    path = filed(tmp_path, "plan.json", json.dumps(plan_json(sweep)))
    with pytest.raises(InputError, match="is no plan that can be run"):
        read_plan(str(path))
