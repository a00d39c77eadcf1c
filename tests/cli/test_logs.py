"""What `topodiag logs` does with its options, its streams and its exit codes, on a small log of its own."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import program
from tests.cli.small_log import log
from tests.files import filed
from topodiag.cli.logs import logs


@pytest.fixture
def small(tmp_path):
    return str(filed(tmp_path, "job.log", log()))


def run(*args, **kwargs):
    return program.run("logs", *args, **kwargs)


def test_standard_input_is_read(small):
    with open(small) as stream:
        done = run("-", "--format", "json", "--fail-on", "never", stdin=stream)
    assert json.loads(done.stdout)["facts"]["jobs"][0]["world_size"] == 2


def test_several_workers_tell_the_same_job(tmp_path):
    lines = log().splitlines(keepends=True)
    place = tmp_path / "long.log"
    noise = "step 1 | loss 2.5 | 400 TFLOPS | nothing that concerns anybody here\n" * 480_000  # 32 MB: two tasks
    place.write_text("".join([*lines[: len(lines) // 2], noise, *lines[len(lines) // 2 :]]))
    told = [run(str(place), "--workers", workers, "--format", "json", "--fail-on", "never") for workers in "13"]
    assert {done.stderr for done in told} == {""}
    first, *others = (json.loads(done.stdout) for done in told)
    assert first["facts"]["jobs"][0]["world_size"] == 2
    assert all(other["facts"] == first["facts"] for other in others)
    assert all(other["findings"] == first["findings"] for other in others)


def test_saved_facts_tell_the_same_job(small, tmp_path):
    kept = str(tmp_path / "job.facts")
    first = run(small, "--save", kept, "--format", "json", "--fail-on", "never")
    again = run(kept, "--format", "json", "--fail-on", "never")
    assert json.loads(first.stdout)["facts"] == json.loads(again.stdout)["facts"]


def test_a_packed_log_is_the_same_job(small, tmp_path):
    done = run(str(filed(tmp_path, "job.log.gz", gzip.compress(log().encode()))), "--ranks", "--fail-on", "never")
    assert "0000:01:00.0" in done.stdout


def test_tables_are_written_as_csv_and_parquet(small, tmp_path):
    rows = run(small, "--csv", "ranks", "--fail-on", "never").stdout.splitlines()
    assert rows[0] == "job,rank,host,pid,cuda_dev,nvml_dev,bus_id,nics"
    assert len(rows) == 3
    target = tmp_path / "ranks.parquet"
    assert run(small, "--parquet", "ranks", "--output", str(target), "--fail-on", "never").returncode == 0
    assert target.read_bytes()[:4] == b"PAR1"


def test_a_missing_or_wrong_file_is_exit_2(tmp_path):
    assert run(str(tmp_path / "none.log")).returncode == 2
    done = run(str(filed(tmp_path, "picture.log", b"\x89PNG\r\n\x1a\n" + bytes(100))))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("args", [["--help"], ["scan", "--help"], ["logs", "--help"], ["env"], ["scan", "-"]])
def test_only_reading_logs_loads_numpy(args):
    code = (
        "import sys\nfrom topodiag.cli import main\n"
        f"try:\n    main({args!r})\nexcept SystemExit:\n    pass\n"
        "sys.exit(bool({'numpy', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"\tGPU0\nGPU0\t X\n", capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_option_is_in_the_guide():
    guide = (Path(__file__).parents[2] / "docs" / "logs.md").read_text()
    options = [opt for param in logs.params for opt in param.opts if opt.startswith("--")]
    assert [option for option in options if option not in guide] == []
