"""What `topodiag bench PATH...` prints, takes and refuses, as a program."""

import gzip
import json
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests import program
from tests.files import filed
from tests.nccl_tests import table
from tests.valid import assert_valid

SCHEMA = json.loads((files("topodiag.report") / "schema" / "diagnose-2.0.schema.json").read_text())


def run(*args: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return program.run("bench", *args, **kwargs)


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(filed(tmp_path, "all_reduce.log", table()))


def test_standard_input_and_packed_files_are_read(out: str, tmp_path: Path) -> None:
    text = Path(out).read_text()
    assert "all_reduce  8 ranks" in run("-", "--fail-on", "never", input=text).stdout
    packed = filed(tmp_path, "x.gz", gzip.compress(text.encode()))
    assert "all_reduce  8 ranks" in run(str(packed), "--fail-on", "never").stdout
    with packed.open("rb") as stream:
        assert "all_reduce  8 ranks" in run("-", "--fail-on", "never", stdin=stream).stdout


def test_the_json_is_of_the_published_schema(out: str) -> None:
    document = json.loads(run(out, "--format", "json", "--fail-on", "never").stdout)
    assert_valid(document, SCHEMA)
    (made,) = document["facts"]["benchmarks"]
    assert (made["collective"], made["nranks"], len(made["rows"])) == ("all_reduce", 8, 24)
    assert made["rows"][-1]["bytes"] == 1 << 33
    assert made["fit"]["alpha_us"] == pytest.approx(20, rel=0.01)
    assert made["fit"]["beta_gbs"] == pytest.approx(230, rel=0.01)
    assert document["inputs"][0]["kind"] == "nccl-tests"
    assert document["inputs"][0]["unparsed"] == 0
