"""The command that starts the collector on a node: any login shell, full disks, old Pythons, nothing left behind."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from topodiag.fleet.collect.archive import archive
from topodiag.fleet.collect.boot import COMMAND, argv, standard_input

ARGUMENTS = ("--send", "markmark", "--deadline", "5", "--only", "os-state")


@cache
def collector() -> bytes:
    return archive()


def kinds(output: bytes) -> list[str]:
    return [line.split()[2].decode() for line in output.splitlines() if line.startswith(b"markmark")]


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "csh", "tcsh", "fish", "zsh", "ksh"])
def test_any_login_shell_takes_the_command(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    given = standard_input(collector(), "markmark", ARGUMENTS, tied=False)
    done = subprocess.run([shell, "-c", COMMAND], input=given, capture_output=True, timeout=60, check=False)
    assert kinds(done.stdout)[0] == "hello", done.stderr
    assert kinds(done.stdout)[-1] == "end"


def test_the_command_holds_nothing_that_a_shell_could_take_apart() -> None:
    inside = COMMAND.partition("'")[2].rpartition("'")[0]
    assert not set(inside) & set("'\\\n!`")
    assert argv() == ("/bin/sh", "-c", inside)


def old_python(given: bytes, folders: str) -> subprocess.CompletedProcess[bytes]:
    """What a Python without memfd does, where only these folders exist."""
    line, _, rest = given.partition(b"\n")
    code = line.replace(b"memfd_create", b"no_such_call").replace(
        b'(os.environ.get(\\"XDG_RUNTIME_DIR\\"), \\"/dev/shm\\", os.environ.get(\\"TMPDIR\\"), \\"/tmp\\",'
        b' \\"/var/tmp\\", \\"/run\\")',
        folders.encode(),
    )
    assert folders.encode() in code
    run = [sys.executable, "-c", "import sys;exec(sys.stdin.buffer.readline())"]
    return subprocess.run(run, input=code + b"\n" + rest, capture_output=True, timeout=60, check=False)


def test_a_python_without_memfd_takes_the_first_folder_that_holds_the_collector(tmp_path: Path) -> None:
    given = standard_input(collector(), "markmark", ARGUMENTS, tied=False)
    done = old_python(given, f"[None, '/nowhere', '{tmp_path}']")
    assert kinds(done.stdout)[-1] == "end", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_node_without_any_room_says_so() -> None:
    given = standard_input(collector(), "markmark", ARGUMENTS, tied=False)
    done = old_python(given, "['/nowhere']")
    assert kinds(done.stdout) == ["fail"]
    assert b"no folder takes the collector" in done.stdout


def test_the_collector_ends_when_its_reader_is_gone() -> None:
    given = standard_input(collector(), "markmark", ("--send", "markmark", "--sample", "600"))
    process = subprocess.Popen(argv(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdin.write(given)
    process.stdin.flush()
    assert process.stdout.readline().split()[2] == b"hello"
    process.stdin.close()
    assert process.wait(20) != 0
    process.stdout.close()


def test_a_collector_that_did_not_arrive_whole_is_not_started() -> None:
    given = standard_input(collector(), "markmark", ARGUMENTS)[:-10]
    done = subprocess.run(argv(), input=given, capture_output=True, timeout=60, check=False)
    assert done.stdout == b""
    assert b"did not arrive whole" in done.stderr
