"""`topodiag place audit` as users run it: the verdict, the table at two widths, the JSON, the exit code."""

import json
from pathlib import Path
from typing import Any

import pytest

from topodiag.cli import cli
from topodiag.cli.errors import run

CLUSTER = ("--system", "dgx-h100", "--nodes", "4", "--leaf", "2", "--oversubscription", "2")
SIZES = ("--tp", "8", "--pp", "2", "--dp", "2")


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = run(cli, ["place", "audit", *args])
    out, err = capsys.readouterr()
    return code, out, err


def document(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    _, out, err = told(capsys, *args, "--format", "json")
    assert not err
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_a_map_in_json_goes_in_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first = document(capsys, *CLUSTER, *SIZES, "--rule", "cyclic")
    path = tmp_path / "map.json"
    path.write_text(json.dumps(first))
    again = document(capsys, *CLUSTER, *SIZES, "--map", str(path))
    assert [each["path"] for each in again["inputs"]] == [str(path)]
    assert again | {"inputs": []} == first


def test_the_model_trained_changes_the_price_and_is_no_rule_of_thumb(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--model", "params=7B,layers=32", "--model", "hidden=4096")
    thumb, made = document(capsys, *CLUSTER, *SIZES), document(capsys, *CLUSTER, *SIZES, *small)
    assert made["step_ms"] < thumb["step_ms"] / 5
    assert not any("rule of thumb" in each for each in made["assumed"])
