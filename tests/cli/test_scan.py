"""Nodes, jobs and whole cases: scan, logs, diagnose."""

import contextlib
import fcntl
import gzip
import json
import os
import re
import stat
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests import program
from tests.cli.small_log import log
from tests.files import filed
from topodiag.cli import cli
from topodiag.cli.errors import Outcome
from topodiag.cli.logs import logs

PROGRAM = Path(__file__).parent / "fake_program.py"


@pytest.mark.parametrize("format_", ["table", "json", "prometheus", "nagios"])
def test_output_goes_to_a_file_that_others_can_read(topodiag, tmp_path, format_):
    target = tmp_path / "report.prom"
    done = topodiag("scan", "--format", format_, "--output", str(target))
    assert (done.returncode, done.stdout) == (0, "")
    assert "gpu-001" in target.read_text()
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask
    assert [path.name for path in tmp_path.iterdir()] == ["report.prom"]


def test_quiet_says_less_and_verbose_more(topodiag):
    sizes = [len(topodiag("scan", *args, fake="error").stdout) for args in (["-q"], [], ["-v"])]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 3


def test_a_spinner_shows_on_a_terminal_and_leaves_stdout_alone():
    master, slave = os.openpty()
    done = subprocess.run(
        [sys.executable, PROGRAM, "scan"],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=os.environ | {"FAKE": "clean", "TERM": "xterm", "LANG": "C.UTF-8"},
        timeout=60,
        check=False,
    )
    os.close(slave)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert "judging" in shown
    assert shown.endswith("\x1b[2K")
    assert done.stdout.decode().startswith("✔ gpu-001")


def test_a_terminal_gets_colour_and_its_width():
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 61, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "LC_ALL"}}
    child = subprocess.Popen(
        [sys.executable, PROGRAM, "scan", "-q"],
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env=clean | {"FAKE": "error", "TERM": "xterm", "LANG": "C.UTF-8"},
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end of the terminal is closed
        while piece := os.read(master, 65536):
            shown += piece
    assert child.wait(60) == 1
    os.close(master)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r", "")
    assert shown.startswith(b"\x1b[1;31m")
    assert 50 < max(map(len, plain.splitlines())) <= 61


# --- `topodiag diagnose` as users run it: one verdict, exit codes, JSON, and the files that apply a fix


SICK = "fixture:dgx-h100-gpu3-12of18-nvlink"


def run(*args: str) -> tuple[Result, int]:
    reached = Outcome()
    done = CliRunner().invoke(cli, ["diagnose", *args], obj=reached)
    return done, done.exit_code or reached.code


def test_the_json_has_the_keys_of_the_published_form() -> None:
    document = json.loads(run(SICK, "--format", "json")[0].stdout)
    assert document["verdict"]["state"] == "at_risk"
    [cause] = document["verdict"]["causes"]
    assert (cause["check"], cause["status"]) == ("NVL001", "established")
    assert set(cause) >= {
        "where", "mechanism", "cost", "predicted", "measured", "fix", "confirm", "evidence", "consequences",
        "contradicted_by",
    }  # fmt: skip
    assert set(cause["cost"]) == {
        "gbs_lost", "share", "step_share", "step_range", "communication_share", "step_said", "step_says",
        "step_agrees", "text",
    }  # fmt: skip
    assert set(document) >= {"inputs", "facts", "findings", "not_observed", "verdict", "identity", "timeline", "clocks"}
    assert {"unrelated", "ruled_out", "not_explained", "next_evidence"} <= set(document["verdict"])


def test_a_short_text_on_standard_input_is_judged_as_from_a_file(tmp_path: Path) -> None:
    text = "NCCL version 2.28.3 compiled with CUDA 12.9\nmlx5_2 link_downed 0\nmlx5_7 link_downed 5\n"
    file = tmp_path / "paste.txt"
    file.write_text(text)
    answers = []
    for given, name in ((str(file), str(file)), ("-", "<stdin>")):
        done = CliRunner().invoke(cli, ["diagnose", given, "--width", "200"], input=text, obj=Outcome())
        answers.append((done.exception, done.output.replace(name, "TEXT")))
    assert answers[0] == answers[1]
    assert answers[1][0] is None


def run_of(pid: int, *after: str) -> str:
    """A job of two ranks on one node that comes up and takes ten steps, and what it prints last."""
    lines = [f"n0:{pid}:{pid} [0] NCCL INFO NCCL version 2.27.7+cuda12.8"]
    for rank in range(2):
        head = f"n0:{pid + rank}:{pid + 9 + rank} [{rank}] NCCL INFO "
        lines += [
            f"{head}Channel 00/0 : {rank}[{rank}] -> {1 - rank}[{1 - rank}] via P2P/CUMEM",
            f"{head}ncclCommInitRankConfig comm 0x{pid} rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank}"
            f" busId {rank + 1}000 commId 0xab{pid} - Init COMPLETE",
        ]
    steps = [f"iteration {at}/ 100 | elapsed time per iteration (ms): 512.{at} | loss: 2.1" for at in range(10)]
    return "\n".join((*lines, *steps, *after, ""))


DIED = "n0:1001:1010 [1] misc/ibvwrap.cc:94 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"


@pytest.mark.parametrize(
    ("ends", "options", "words", "code"),
    [
        (([DIED], []), [], "HEALTHY  the last of 2 runs: no fault in what was seen of 1 job of 2 ranks; an earlier", 0),
        (([DIED], []), ["--fail-on", "info"], "an earlier run failed (unrelated)", 1),
        (([], []), [], "HEALTHY  no fault in what was seen of 2 jobs of 4 ranks", 0),
        (([], [DIED.replace("100", "300").replace("1010", "3010")]), [], "FAILED", 1),
    ],
)
def test_a_last_run_that_is_well_says_how_an_earlier_run_ended(
    tmp_path: Path, ends: tuple[list[str], list[str]], options: list[str], words: str, code: int
) -> None:
    log = tmp_path / "job.log"
    log.write_text(run_of(1000, *ends[0]) + run_of(3000, *ends[1]), encoding="utf-8")
    done, reached = run("--width", "200", *options, str(log))
    assert words in done.stdout
    assert reached == code


# --- what `topodiag logs` does with its options, its streams and its exit codes, on a small log of its own


@pytest.fixture
def small(tmp_path):
    return str(filed(tmp_path, "job.log", log()))


def logs_of(*args, **kwargs):
    return program.run("logs", *args, **kwargs)


def test_standard_input_is_read(small):
    with open(small) as stream:
        done = logs_of("-", "--format", "json", "--fail-on", "never", stdin=stream)
    assert json.loads(done.stdout)["facts"]["jobs"][0]["world_size"] == 2


def test_several_workers_tell_the_same_job(tmp_path):
    place = filed(tmp_path, "job.log.gz", gzip.compress(log().encode()))  # an archive is shared, however short
    told = [logs_of(str(place), "--workers", workers, "--format", "json", "--fail-on", "never") for workers in "13"]
    assert {done.stderr for done in told} == {""}
    first, *others = (json.loads(done.stdout) for done in told)
    assert first["facts"]["jobs"][0]["world_size"] == 2
    assert all(other["facts"] == first["facts"] for other in others)
    assert all(other["findings"] == first["findings"] for other in others)


def test_saved_facts_tell_the_same_job(small, tmp_path):
    kept = str(tmp_path / "job.facts")
    first = logs_of(small, "--save", kept, "--format", "json", "--fail-on", "never")
    again = logs_of(kept, "--format", "json", "--fail-on", "never")
    assert json.loads(first.stdout)["facts"] == json.loads(again.stdout)["facts"]


def test_tables_are_written_as_csv_and_parquet(small, tmp_path):
    rows = logs_of(small, "--csv", "ranks", "--fail-on", "never").stdout.splitlines()
    assert rows[0] == "job,rank,host,pid,cuda_dev,nvml_dev,bus_id,nics"
    assert len(rows) == 3
    target = tmp_path / "ranks.parquet"
    assert logs_of(small, "--parquet", "ranks", "--output", str(target), "--fail-on", "never").returncode == 0
    assert target.read_bytes()[:4] == b"PAR1"


def test_every_option_is_in_the_guide():
    guide = (Path(__file__).parents[2] / "docs" / "logs.md").read_text()
    options = [opt for param in logs.params for opt in param.opts if opt.startswith("--")]
    assert [option for option in options if option not in guide] == []
