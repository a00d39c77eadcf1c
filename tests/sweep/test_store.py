"""Results of a sweep: a line that is none costs its run, never the sweep."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from topodiag.model.sweep import Fabric, State
from topodiag.sweep.plan import first_round
from topodiag.sweep.planfile import plan_text
from topodiag.sweep.store import RESULTS, read_store

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
