"""`--dask slurm` as users run it, with a stand-in for dask-jobqueue that starts its jobs on this machine."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")

LOGS = Path(__file__).parents[2] / "fixtures" / "jobs" / "healthy" / "logs"

STAND_IN = '''
import os
import distributed

class SLURMCluster(distributed.LocalCluster):
    """As in dask-jobqueue 0.9: nothing runs before scale(), and jobs are asked for by their number."""

    def __init__(self, scheduler_options):
        if "NO_CORES" in os.environ:
            raise ValueError("You must specify how much cores to use per job")
        super().__init__(n_workers=0, threads_per_worker=1, processes=False, silence_logs=50, **scheduler_options)

    def scale(self, n=None, jobs=0, memory=None, cores=None):
        if n is None:  # closing asks for 0 workers by this argument
            with open(os.environ["CALLS"], "a") as calls:
                print("scale", jobs, memory, cores, file=calls)
        return super().scale(n or jobs)

    def close(self, *args, **kwargs):
        if not os.path.exists(os.environ["CALLS"] + ".closed"):
            open(os.environ["CALLS"] + ".closed", "w").close()
        return super().close(*args, **kwargs)
'''


def run(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "dask_jobqueue.py").write_text(STAND_IN)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "topodiag", "logs", *args],
        env=os.environ | {"PYTHONPATH": path, "CALLS": str(folder / "calls")} | env,
        capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_slurm_jobs_read_the_same_as_this_machine_and_are_given_back(tmp_path: Path) -> None:
    """Another cluster at dask's usual port is nothing to tell, of workers on this machine neither."""
    asked = (str(LOGS), "--format", "json", "--fail-on", "never")
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # somebody else has it: as good
            taken.bind(("", 8787))
            taken.listen()
        there, here = (run(tmp_path, *asked, "--dask", where, "--workers", "2") for where in ("slurm", "local"))
    assert [(done.returncode, done.stderr) for done in (there, here)] == [(0, "")] * 2
    assert json.loads(there.stdout) == json.loads(here.stdout)
    assert json.loads(there.stdout) == json.loads(run(tmp_path, *asked, "--workers", "1").stdout)
    assert (tmp_path / "calls").read_text() == "scale 2 None None\n"
    assert (tmp_path / "calls.closed").exists()


def test_without_a_number_four_jobs_are_asked_for(tmp_path: Path) -> None:
    one = str(next(iter(sorted(LOGS.iterdir()))))
    assert run(tmp_path, one, "--dask", "slurm", "--fail-on", "never").returncode == 0
    assert (tmp_path / "calls").read_text() == "scale 4 None None\n"


def test_jobs_that_are_not_described_are_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, str(LOGS), "--dask", "slurm", NO_CORES="1")
    assert (done.returncode, done.stdout) == (2, "")
    first, hint = done.stderr.splitlines()
    assert (
        first == "topodiag: error: no workers could be asked of Slurm: You must specify how much cores to use per job"
    )
    assert "jobqueue.yaml" in hint
