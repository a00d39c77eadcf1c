"""Sweeps that run, and the store of what they measured."""

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import program
from tests.tables import examples, texts
from topodiag.model.errors import InputError
from topodiag.sweep import run as runner
from topodiag.sweep.plan import first_round, rail_run
from topodiag.sweep.planfile import plan_text
from topodiag.sweep.run import find_programs, measured, run_plan
from topodiag.sweep.store import RESULTS, opened_store, read_store
from topodiag.sweep.values import Fabric, Launch, State, SweepPlan

TEXTS = texts(__file__)
SRUN = TEXTS["srun"]
PERF = TEXTS["perf"]
WRITE_BW = TEXTS["write_bw"]


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Programs on PATH; FAKE is where they note what they did."""
    place = tmp_path / "bin"
    place.mkdir()
    for name, text in (
        ("srun", SRUN), ("all_reduce_perf", PERF), ("alltoall_perf", PERF), ("sendrecv_perf", PERF),
        ("ib_write_bw", WRITE_BW),
    ):  # fmt: skip
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE", str(tmp_path))
    monkeypatch.setenv("FAKE_HOW", "")
    monkeypatch.setattr(runner, "GRACE_S", 0.3)
    monkeypatch.setattr(runner, "SERVER_LEAD_S", 0.1)
    monkeypatch.setattr(runner, "BUILDS", ())
    yield tmp_path
    children = tmp_path / "children"
    left = [int(line) for line in children.read_text().split()] if children.exists() else []
    until = time.monotonic() + 3
    while any(map(alive, left)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(alive, left)), "a process outlived its run"


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


FABRIC = Fabric(("a1", "a2", "a3", "a4"), 2, 2)


def plan(kinds=("intra", "pairs"), timeout=60) -> SweepPlan:
    return replace(first_round(FABRIC, kinds), launch=Launch(timeout_s=timeout))


def go(cluster, sweep: SweepPlan, **options):
    programs, missing = find_programs(sweep)
    assert missing == ()
    with opened_store(str(cluster / "sweep"), sweep) as store:
        summary = run_plan(sweep, store, programs, **{"parallel": 8, **options})
    return summary, {result.run: result for result in read_store(str(cluster / "sweep")).results}


def test_every_run_yields_its_bus_bandwidth_at_the_greatest_size_and_keeps_its_output(cluster):
    summary, results = go(cluster, plan())
    assert summary.states == {State.OK: 6}
    assert {(each.gbs, each.size) for each in results.values()} == {(45.0, 1 << 30)}
    for each in results.values():
        assert "Avg bus bandwidth" in (cluster / "sweep" / each.output).read_text()


def test_what_is_done_is_not_done_again(cluster):
    go(cluster, plan())
    summary, _ = go(cluster, plan())
    assert (summary.done, summary.before) == (0, 6)
    assert len((cluster / "started").read_text().split()) == 6


def test_a_run_over_its_time_is_ended_with_all_its_children_and_the_others_go_on(cluster, monkeypatch):
    monkeypatch.setenv("FAKE_HOW", "hang:a1 stubborn:a2")
    summary, results = go(cluster, plan(timeout=3))
    assert summary.states == {State.TIMEOUT: 2, State.OK: 4}
    assert results["1-intra-a1"].why == "no end after 3 s"
    assert results["1-intra-a2"].state is State.TIMEOUT


@examples("how", "state", "words")
def test_a_run_without_a_good_table_says_why(cluster, monkeypatch, how, state: State, words):
    monkeypatch.setenv("FAKE_HOW", f"{how}:a1")
    summary, results = go(cluster, plan())
    assert results["1-intra-a1"].state is state
    assert words in results["1-intra-a1"].why
    assert summary.states[State.OK] == 5


def test_failed_runs_are_done_again_on_request_alone_and_both_outputs_are_kept(cluster, monkeypatch):
    monkeypatch.setenv("FAKE_HOW", "crash:a1")
    go(cluster, plan())
    monkeypatch.setenv("FAKE_HOW", "")
    assert go(cluster, plan())[0].done == 0
    summary, results = go(cluster, plan(), retry=True)
    assert (summary.done, results["1-intra-a1"].attempt, results["1-intra-a1"].state) == (1, 2, State.OK)
    assert sorted(path.name for path in (cluster / "sweep" / "output").glob("1-intra-a1.*")) == [
        "1-intra-a1.1.txt", "1-intra-a1.2.txt",
    ]  # fmt: skip


def test_it_stops_when_nothing_but_failures_comes_unless_told_to_go_on(cluster, monkeypatch):
    monkeypatch.setenv("FAKE_HOW", "crash:any")
    summary, _ = go(cluster, plan(), parallel=1)
    assert summary.done == runner.ALIKE_FAILURES
    assert "out of memory" in summary.gave_up
    summary, _ = go(cluster, plan(), parallel=1, keep_going=True)
    assert (summary.done, summary.gave_up) == (1, "")


def test_a_run_that_floods_the_disk_is_ended(cluster, monkeypatch):
    monkeypatch.setattr(runner, "MAX_OUTPUT", 1 << 20)
    monkeypatch.setenv("FAKE_HOW", "flood:a1")
    _, results = go(cluster, plan(("intra",)))
    assert results["1-intra-a1"].why == "more than 1 MiB of output"


def test_ib_write_bw_has_its_server_first_and_ends_it(cluster):
    sweep = replace(plan(("intra",)), runs=(rail_run(FABRIC, "a1", "a2", 0, 1, kind="fabric"),))
    _, results = go(cluster, sweep)
    (result,) = results.values()
    assert (result.state, result.gbs) == (State.OK, 49.0)
    assert "listening" in (cluster / "sweep" / "output" / "1-fabric-a1+a2-rail0.1.server.txt").read_text()


def test_a_torn_line_is_left_out_and_its_run_done_again(cluster):
    go(cluster, plan())
    path = cluster / "sweep" / RESULTS
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    assert read_store(str(cluster / "sweep")).torn == 1
    summary, results = go(cluster, plan())
    assert (summary.done, len(results)) == (1, 6)


def test_two_runs_at_once_in_one_folder_are_refused(cluster):
    with (
        opened_store(str(cluster / "sweep"), plan()),
        pytest.raises(InputError, match="another bench run"),
        opened_store(str(cluster / "sweep"), plan()),
    ):
        pass


def test_another_plan_of_the_same_round_is_refused(cluster):
    go(cluster, plan())
    with pytest.raises(InputError, match="another plan of round 1"):
        go(cluster, plan(("intra",)))


def test_a_later_round_needs_the_rounds_before(cluster):
    with pytest.raises(InputError, match="no round before round 2"):
        go(cluster, replace(plan(), round=2))


def test_programs_are_found_with_mpis_suffix_and_in_a_folder_of_their_own(cluster):
    place = cluster / "bin"
    (place / "alltoall_perf").rename(place / "alltoall_perf_mpi")
    found, missing = find_programs(plan())
    assert found["alltoall_perf"].endswith("alltoall_perf_mpi")
    assert missing == ()
    assert find_programs(plan(), str(cluster))[1] == ("all_reduce_perf", "alltoall_perf")


@given(st.binary(max_size=300), st.sampled_from([None, 0, 1, -9]))
def test_any_output_has_an_outcome(data, code):
    for run in (*plan().runs[:1], rail_run(FABRIC, "a1", "a2", 0, 1, kind="fabric")):
        made = measured(run, data, code)
        assert made.state is not State.OK or made.gbs


@given(st.lists(st.binary(max_size=80) | st.sampled_from([b'{"run": "x", "round": 1, "state": "ok", "gbs": 1e999}',
    b'{"run": "x", "round": 1, "state": "ok", "gbs": NaN}', b"[]", b'{"run": 1}'])))  # fmt: skip
def test_any_results_file_is_read(tmp_path_factory, lines):
    place = tmp_path_factory.mktemp("sweep")
    (place / "plan-1.json").write_text(plan_text(plan()))
    (place / RESULTS).write_bytes(b"\n".join(lines))
    read_store(str(place))


# The command line, in processes of its own.


def topodiag(*args, **kwargs):
    return program.run("bench", *args, **kwargs)


def planned(cluster, *options):
    path = cluster / "plan.json"
    done = topodiag("plan", "--nodelist", "a[1-4]", "--gpus-per-node", 2, "--kind", "intra", "--kind", "pairs",
                    "-o", path,
                    *options)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_its_runs_keeps_what_is_done_and_goes_on_later(cluster, monkeypatch, number):
    monkeypatch.setenv("FAKE_HOW", "hang:a3")
    path = planned(cluster)
    process = program.start("bench", "run", path, stderr=subprocess.PIPE, text=True)
    results = cluster / "plan.sweep" / RESULTS
    until = time.monotonic() + 30
    while not (results.exists() and results.read_bytes().count(b"\n") >= 3) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in said
    states = [json.loads(line)["state"] for line in results.read_text().splitlines()]
    assert sorted(states) == ["interrupted", "ok", "ok", "ok"]
    monkeypatch.setenv("FAKE_HOW", "")
    again = topodiag("run", path)
    assert again.returncode == 0, again.stderr
    assert "3 runs (3 done before)" in again.stderr


def test_missing_programs_are_one_line_with_what_to_do(cluster):
    path = planned(cluster)
    (cluster / "bin" / "alltoall_perf").unlink()
    done = topodiag("run", path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "topodiag: error: not found: alltoall_perf"
    assert "MPI=1" in done.stderr
    assert not (cluster / "plan.sweep").exists()


def test_a_dry_run_prints_the_commands_and_runs_none(cluster):
    done = topodiag("run", planned(cluster), "--dry-run")
    lines = done.stdout.splitlines()
    assert lines[0] == "# wave 1"
    assert len([line for line in lines if line.startswith("srun --nodes=")]) == 6
    assert not (cluster / "started").exists()
    assert not (cluster / "plan.sweep").exists()


def test_a_whole_sweep_names_the_slow_node_in_rounds_that_follow_of_themselves(cluster, monkeypatch):
    """A node whose runs are all slow: the rails by themselves are not, so that it is what they share."""
    path = cluster / "plan.json"
    topodiag("plan", "--nodelist", "a[1-6]", "--gpus-per-node", 2, "--output", path, "--quiet")
    monkeypatch.setenv("FAKE_HOW", "crowded:a2,a3 crowded:a3,a4 crowded:a3,a1 crowded:a3,a5 crowded:a3,a6")
    folder = cluster / "plan.sweep"
    assert topodiag("run", path).returncode == 0
    first = topodiag("read", folder)
    assert first.returncode == 0
    assert "suspect" in first.stdout
    assert "next: topodiag bench run" in first.stderr
    assert topodiag("run", folder).returncode == 0
    second = topodiag("read", folder, "--svg", cluster / "heat.svg", "--format", "json")
    assert second.returncode == 1, second.stderr
    document = json.loads(second.stdout)
    assert [fault["parts"] for fault in document["faults"]] == [[{"kind": "host", "place": "a3"}]]
    assert document["faults"][0]["check"] == "BEN005"
    assert (cluster / "heat.svg").read_text().startswith("<svg")


def test_the_next_plan_can_be_written_and_run_into_the_same_folder(cluster, monkeypatch):
    monkeypatch.setenv("FAKE_HOW", "slow:a2")
    path = planned(cluster)
    topodiag("run", path)
    done = topodiag("read", cluster / "plan.sweep", "--next", cluster / "next.json")
    assert done.returncode == 0
    assert topodiag("run", cluster / "next.json").returncode == 2  # of which sweep?
    assert topodiag("run", cluster / "next.json", "--to", cluster / "plan.sweep").returncode == 0
    assert (cluster / "plan.sweep" / "plan-2.json").exists()


@examples("arguments", "words")
def test_bad_input_is_one_clear_line(arguments, words):
    done = topodiag(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if "error" in line]) == 1


# --- results of a sweep: a line that is none costs its run, never the sweep


GOOD = {"run": "r1", "round": 1, "attempt": 2, "state": "ok", "gbs": 40.5, "size": 1024, "seconds": 3, "exit": 0}

PLAN = plan_text(first_round(Fabric(("a1", "a2"), 2, 1, (), {}, True)))


def stored(folder: Path, *lines: str) -> list[str]:
    """The runs that are read back, and how many lines were none."""
    (folder / "plan-1.json").write_text(PLAN)
    (folder / RESULTS).write_text("".join(f"{line}\n" for line in lines))
    made = read_store(str(folder))
    return [result.run for result in made.results] + ["torn"] * made.torn


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert stored(tmp_path, json.dumps(GOOD)) == ["r1"]
    (result,) = read_store(str(tmp_path)).results
    shown = (result.state, result.gbs, result.size, result.seconds, result.exit, result.attempt)
    assert shown == (State.OK, 40.5, 1024, 3.0, 0, 2)


@pytest.mark.parametrize("name", ["seconds", "gbs", "size", "round", "attempt"])
@pytest.mark.parametrize(
    "number", ["1" + "0" * 400, "1" + "0" * 5000, "1e999", "NaN", "Infinity", "-1", "[]", '"3"', "true"]
)
def test_a_number_beyond_all_bounds_costs_one_run_and_not_the_sweep(tmp_path: Path, name: str, number: str) -> None:
    bad = json.dumps(GOOD | {"run": "r2", name: 777}).replace("777", number)
    assert stored(tmp_path, json.dumps(GOOD), bad, json.dumps(GOOD | {"run": "r3"})) == ["r1", "r3", "torn"]


@pytest.mark.parametrize("line", ["{", "[]", "null", "3", '{"run": 1}', '{"state": []}', "[" * 9000, "\x00\xff"])
def test_a_line_that_is_no_result_is_counted_as_torn(tmp_path: Path, line: str) -> None:
    assert stored(tmp_path, json.dumps(GOOD), line) == ["r1", "torn"]


def test_each_file_of_the_folder_is_an_input_with_its_checksum(tmp_path: Path) -> None:
    stored(tmp_path, json.dumps(GOOD), "torn")
    plan, results = read_store(str(tmp_path)).inputs
    assert (plan.path, plan.sha256) == (str(tmp_path / "plan-1.json"), sha256(PLAN.encode()).hexdigest())
    assert (results.lines, results.unparsed) == (2, 1)
    assert results.sha256 == sha256((tmp_path / RESULTS).read_bytes()).hexdigest()


def test_a_folder_in_which_no_run_has_ended_has_its_plan_alone(tmp_path: Path) -> None:
    (tmp_path / "plan-1.json").write_text(PLAN)
    assert [file.kind for file in read_store(str(tmp_path)).inputs] == ["sweep plan"]
