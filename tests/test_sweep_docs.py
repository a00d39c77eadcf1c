"""docs/sweeps.md names every option, every kind of run and every field of a plan, and shows what the program prints."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.sweep_fabric import fabric_of
from tests import program
from topodiag.model.sweep import State
from topodiag.sweep.plan import KINDS, first_round
from topodiag.sweep.planfile import plan_json

PAGE = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text()
COMMON = {"--output", "--color", "--ascii", "--width", "--quiet", "--verbose", "--help", "--format", "--fail-on"}


@pytest.mark.parametrize("name", ["plan", "run", "read"])
def test_every_option_is_named(name):
    command = getattr(import_module(f"topodiag.cli.bench.{name}"), name)
    options = {option for param in command.params for option in param.opts if option.startswith("--")}
    assert {option for option in options - COMMON if option not in PAGE} == set()


def test_every_kind_of_run_and_every_state_is_named():
    assert {kind for kind in (*KINDS, "gpus") if f"`{kind}`" not in PAGE} == set()
    assert {state.value for state in State if f"`{state.value}`" not in PAGE} == set()


def test_the_plan_that_is_shown_has_the_fields_of_a_plan():
    shown = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1])
    document = json.loads(json.dumps(plan_json(first_round(fabric_of()))))
    assert shown.keys() == document.keys()
    assert shown["fabric"].keys() == document["fabric"].keys()
    assert shown["launch"].keys() == document["launch"].keys()
    assert shown["runs"][0].keys() == document["runs"][0].keys()


def test_the_first_round_that_is_shown_is_what_is_planned(tmp_path):
    racks = tmp_path / "racks.csv"
    racks.write_text("".join(f"gpu[{8 * rack + 1:03d}-{8 * rack + 8:03d}],r{rack}\n" for rack in range(8)))
    shape = ("--nodelist", "gpu[001-064]", "--rail-nics", "mlx5_[0-7]", "--topology", str(racks))
    done = program.run("bench", "plan", *shape, "-o", "plan.json", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr in PAGE
