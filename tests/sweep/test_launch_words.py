"""A plan names launchers and benchmarks only."""

import json
from pathlib import Path

import pytest

from tests.tables import examples
from topodiag.model.errors import InputError
from topodiag.model.sweep import Fabric, Launch
from topodiag.sweep.commands import refuse_arguments, refuse_environment
from topodiag.sweep.plan import first_round
from topodiag.sweep.planfile import plan_json, read_plan


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
    from dataclasses import replace  # noqa: PLC0415

    sweep = replace(first_round(Fabric(("a", "b"), 8, 8), ("pairs",)), launch=launch)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_json(sweep)))
    with pytest.raises(InputError, match="is no plan that can be run"):
        read_plan(str(path))
