"""Every exit code that docs/exit-codes.md promises, asked of the real program."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import program
from tests.evidence.live.test_ras import status
from tests.tables import examples

DOCS = Path(__file__).parents[2] / "docs" / "exit-codes.md"
PROGRAM = Path(__file__).parent / "fake_program.py"


def test_a_clean_node_is_0(topodiag):
    assert topodiag("scan").returncode == 0


@examples("worst", "fail_on", "code")
def test_findings_at_or_above_fail_on_are_1(topodiag, worst, fail_on, code):
    args = ["--fail-on", fail_on] if fail_on else []
    assert topodiag("scan", *args, fake=worst).returncode == code


@examples("args")
def test_wrong_usage_is_2_in_one_line_without_a_traceback(topodiag, args):
    done = topodiag(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("topodiag: error: ")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_unreadable_input_is_2_with_place_and_hint(topodiag):
    done = topodiag("scan", "evil.txt", fake="unreadable")
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["topodiag: error: evil?[31m.txt:3: is not evidence", "  hint: give a bundle"]


def test_an_error_of_our_own_is_2_and_hides_its_traceback(topodiag):
    done = topodiag("scan", fake="bug")
    assert done.returncode == 2
    assert "internal error: ZeroDivisionError" in done.stderr
    assert "--debug" in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback(topodiag):
    done = topodiag("--debug", "scan", fake="bug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_an_interrupt_is_130(topodiag):
    done = topodiag("scan", fake="interrupt")
    assert (done.returncode, done.stderr) == (130, "topodiag: interrupted\n")


@examples("fake", "code", "state")
def test_nagios_has_its_own_codes_and_always_one_line(topodiag, fake, code, state):
    done = topodiag("scan", "--format", "nagios", fake=fake)
    assert done.returncode == code
    assert done.stdout.startswith(f"TOPODIAG {state} - ")
    assert done.stdout.count("\n") == 1


def test_nagios_with_wrong_usage_is_unknown(topodiag):
    done = topodiag("scan", "--format=nagios", "--no-such-option")
    assert done.returncode == 3
    assert done.stdout.startswith("TOPODIAG UNKNOWN - ")


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["scan", "--help"], ["explain"], ["fixtures"]])
def test_asking_for_information_is_0(topodiag, args):
    assert topodiag(*args).returncode == 0


def test_without_a_command_the_help_is_shown(topodiag):
    done = topodiag()
    assert "Commands:" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def run_into_closed_pipe(fake):
    """The program writing into a pipe that nobody reads from the start."""
    reader, writer = os.pipe()
    os.close(reader)
    env = os.environ | {"FAKE": fake}
    with os.fdopen(writer, "wb") as out:
        return subprocess.run(
            [sys.executable, PROGRAM, "scan"], stdout=out, stderr=subprocess.PIPE, env=env, timeout=60, check=False
        )


@pytest.mark.parametrize(("fake", "code"), [("clean", 0), ("error", 1), ("huge", 1)])
def test_a_closed_pipe_is_quiet_and_keeps_the_verdict(fake, code):
    done = run_into_closed_pipe(fake)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_2_and_said(topodiag):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, PROGRAM, "scan"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"FAKE": "huge"},
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "topodiag: error: the output cannot be written: No space left on device\n"


def test_a_real_ctrl_c_is_130():
    program = [
        sys.executable,
        "-c",
        "import signal, sys, time\n"
        "from topodiag.cli.errors import run\n"
        "import click\n"
        "@click.command()\n"
        "def wait():\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "sys.exit(run(wait, []))\n",
    ]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        first = child.stdout.readline()
        assert first == "ready\n", child.stderr.read()
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
        assert child.stderr.read() == "topodiag: interrupted\n"


def test_the_page_of_exit_codes_has_them_all():
    documented = set(re.findall(r"^\| (\d+) \|", DOCS.read_text(), re.M))
    assert documented == {"0", "1", "2", "3", "130"}


def hung_answer(folder: Path) -> str:
    """Two answers of RAS, ten seconds apart, in which rank 5 stays behind."""
    for number in range(2):
        (folder / f"answer{number}.json").write_text(json.dumps(status(8, 5, stamp=f"2026-11-22 08:19:{10 + number}0")))
    return str(folder)


FAULT, WHOLE = "fixture:dgx-h100-gpu3-12of18-nvlink", "fixture:dgx-h100-healthy"
STATES = {
    "diagnose, slow": (("diagnose", "fixture:nic-missing"), 1),
    "diagnose, failed": (("diagnose", "fixture:two-ranks-on-one-gpu"), 1),
    "diagnose, hung": (("diagnose", "fixture:data-loader-of-one-rank"), 1),
    "diagnose, healthy": (("diagnose", "fixture:finished-with-loud-words"), 0),
    "a path alone, slow": (("fixture:nic-missing",), 1),
    "logs, slow by a warning": (("logs", "fixture:nic-missing"), 1),
    "logs, failed": (("logs", "fixture:version-mismatch"), 1),
    "logs, hung": (("logs", "fixture:data-loader-of-one-rank"), 1),
    "logs, healthy": (("logs", "fixture:finished-with-loud-words"), 0),
    "scan, a fault": (("scan", FAULT), 1),
    "scan, healthy": (("scan", WHOLE), 0),
    "bench, low": (("bench", "fixture:all-reduce-gdr-off", "--machine", WHOLE), 1),
    "bench, normal": (("bench", "fixture:all-reduce-healthy", "--machine", WHOLE), 0),
    "ras, hung": (("logs", "RAS"), 1),
    "fleet compare, one to exclude": (("fleet", "compare", FAULT, WHOLE), 1),
    "fleet compare, healthy": (("fleet", "compare", WHOLE), 0),
}


@pytest.mark.parametrize("case", STATES)
def test_the_verdict_is_the_exit_code_in_every_command_and_its_last_line_says_so(tmp_path: Path, case: str) -> None:
    args, code = STATES[case]
    done = program.run(*(hung_answer(tmp_path) if word == "RAS" else word for word in args))
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines()[-1].endswith("exit 1") == (code == 1)


@pytest.mark.parametrize("case", ["diagnose, slow", "logs, slow by a warning", "scan, a fault", "bench, low"])
def test_fail_on_never_is_0_and_says_nothing_of_it(tmp_path: Path, case: str) -> None:
    done = program.run(*STATES[case][0], "--fail-on", "never")
    assert done.returncode == 0
    assert "exit 1" not in done.stdout
