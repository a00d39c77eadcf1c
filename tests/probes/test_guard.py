"""The collector's children end when it does, however it ends: real processes, each test with a deadline."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from topodiag_probes import guard
from topodiag_probes.capture import capture

PROBES = Path(guard.__file__).resolve().parents[1]
PATIENCE_S = 30.0

LEAVES = "setsid sh -c 'echo $$ > {folder}/escaped; exec sleep 600' > /dev/null 2>&1 &\n"
HANGS = LEAVES + "(echo $BASHPID > {folder}/child; exec sleep 600) &\necho $$ > {folder}/leader\nexec sleep 600\n"


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _until(condition, what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def _pid(path: Path) -> int:
    _until(lambda: path.is_file() and path.read_text().strip(), f"{path.name} never began")
    return int(path.read_text())


def _guards(parent: int) -> list[int]:
    """Guards that this process started, by their command line."""
    numbers = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes()
            stat = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if b"topodiag_probes.guard" in words and stat[1] == str(parent):
            numbers.append(int(folder.name))
    return numbers


@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGKILL, False), (signal.SIGKILL, True), (signal.SIGHUP, False), (signal.SIGTERM, False)],
)
def test_no_process_is_left_when_the_collector_is_ended(number: int, group: bool, stub, stubs: Path, tmp_path: Path):
    stub("lspci", HANGS.format(folder=tmp_path).replace("$BASHPID", "$(exec sh -c 'echo $PPID')"))
    command = [sys.executable, "-m", "topodiag_probes", "--only", "lspci", "--deadline", "60", "-q"]
    environ = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}", "PYTHONPATH": str(PROBES)}
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "x.tar.gz")], env=environ, start_new_session=True, stderr=subprocess.DEVNULL
    ) as collector:
        pids = [_pid(tmp_path / name) for name in ("leader", "escaped", "child")]
        pids += _guards(collector.pid)
        assert len(pids) == 4
        (os.killpg if group else os.kill)(collector.pid, number)
        collector.wait(PATIENCE_S)
    _until(lambda: not any(map(_alive, pids)), f"{pids} are left")


def test_no_process_is_left_at_the_normal_end(stub, stubs: Path, tmp_path: Path):
    stub("lspci", LEAVES.format(folder=tmp_path) + f"while ! [ -s {tmp_path}/escaped ]; do sleep 0.01; done; echo x")
    bundle = capture(only=["lspci"], extra_path=str(stubs), deadline_s=20.0)
    assert bundle.files["commands/lspci.txt"] == b"x\n"
    assert not _alive(_pid(tmp_path / "escaped"))
    assert _guards(os.getpid()) == []


def test_where_no_guard_can_be_started_the_collector_looks_itself(
    stub, stubs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", "")
    stub("lspci", LEAVES.format(folder=tmp_path) + f"while ! [ -s {tmp_path}/escaped ]; do sleep 0.01; done; echo x")
    capture(only=["lspci"], extra_path=str(stubs), deadline_s=20.0)
    _until(lambda: not _alive(_pid(tmp_path / "escaped")), "it is left")


def test_a_process_of_somebody_else_is_not_touched(stub, stubs: Path):
    with subprocess.Popen(["sleep", "600"], env={**os.environ, guard.MARK: "of another run"}) as other:
        stub("lspci", "echo x")
        capture(only=["lspci"], extra_path=str(stubs), deadline_s=20.0)
        assert other.poll() is None
        other.kill()
