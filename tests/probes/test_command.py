"""The collector as one file: built, run under the oldest Python it promises, and well-behaved on the command line."""

import io
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tables import examples
from topodiag.evidence.intake.bundle import open_evidence
from topodiag_probes import guard
from topodiag_probes.__main__ import Progress, closing_note, main
from topodiag_probes.capture import capture

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collector, built as the documentation says."""
    target = tmp_path_factory.mktemp("pyz") / "topodiag-probe.pyz"
    subprocess.run([sys.executable, str(ROOT / "tools/build_probe.py"), str(target)], check=True, capture_output=True)
    return target


def _run(pyz: Path, *arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([python, str(pyz), *arguments], capture_output=True, timeout=60, cwd="/", check=False)


def _old_python() -> str | None:
    for place in (shutil.which("python3.6"), *map(str, Path.home().glob(".pyenv/versions/3.6.*/bin/python3.6"))):
        if place and subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
            return place
    return None


def test_the_syntax_is_that_of_python_3_6():
    pytest.importorskip("vermin")
    done = subprocess.run(
        [
            *(sys.executable, "-c", "import sys, vermin; sys.exit(vermin.main())"),
            *("-t=3.6-", "--no-tips", "--violations", str(ROOT / "probes/topodiag_probes")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_it_runs_under_python_3_6(pyz: Path, tmp_path: Path):
    python = _old_python()
    if python is None:
        pytest.skip("no python3.6 on this machine")
    done = _run(pyz, "--output", str(tmp_path / "host.tar.gz"), "--redact", python=python)
    assert done.returncode == 0, done.stderr
    evidence = open_evidence(str(tmp_path / "host.tar.gz"))
    assert evidence.is_bundle
    assert {blob.item.id for blob in evidence.blobs if blob.item} >= {"sys-cpu", "os-state", "settings"}


def test_it_imports_nothing_but_the_standard_library(pyz: Path):
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(pyz), "-q", "--only", "os-state"], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout[:2] == b"\x1f\x8b"


def test_standard_output_is_the_bundle_and_standard_error_the_note(pyz: Path, tmp_path: Path):
    done = _run(pyz)
    assert done.returncode == 0
    (tmp_path / "host.tar.gz").write_bytes(done.stdout)
    evidence = open_evidence(str(tmp_path / "host.tar.gz"))
    assert evidence.host
    assert b"captured" in done.stderr
    assert _run(pyz, "-q").stderr == b""


def test_a_terminal_is_refused_with_one_line(pyz: Path):
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, str(pyz)], stdout=theirs, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"--output" in done.stderr


@examples("arguments")
def test_what_cannot_be_meant_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process keeps its own ways to end
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert told.err


def test_a_near_miss_is_helped_along_without_a_traceback(pyz: Path):
    done = _run(pyz, "--only", "sys-pcie")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"did you mean sys-pci?" in done.stderr
    assert b"Traceback" not in done.stderr


def test_the_list_names_each_item_and_what_root_adds(pyz: Path):
    listed = _run(pyz, "--list").stdout.decode()
    assert "nvml" in listed
    assert "root adds" in listed
    assert len(listed.splitlines()) > 25


def test_a_copied_root_is_read_in_its_place(pyz: Path, machine: Path, tmp_path: Path):
    done = _run(pyz, "--root", str(machine), "--output", str(tmp_path / "x.tar.gz"))
    assert done.returncode == 0
    assert open_evidence(str(tmp_path / "x.tar.gz")).host == "gpu-001"
    assert not list(tmp_path.glob("*.part"))


def test_the_same_key_redacts_the_same_on_every_host(pyz: Path, machine: Path, tmp_path: Path):
    key = tmp_path / "key"
    key.write_text("site")
    outputs = []
    for name in ("a", "b"):
        target = tmp_path / name
        _run(pyz, "--root", str(machine), "--redact", "--redact-key", str(key), "-q", "--output", str(target))
        blobs = open_evidence(str(target)).blobs
        outputs.append({blob.name.rsplit("/", 1)[1]: blob.data for blob in blobs})
    assert outputs[0] == outputs[1]
    assert b"a088:c203:0055:1234" not in b"".join(outputs[0].values())


def test_the_key_is_not_written_over_by_the_bundle(pyz: Path, machine: Path, tmp_path: Path):
    key, link = tmp_path / "key", tmp_path / "link"
    key.write_text("a site's key")
    link.symlink_to(key)
    done = _run(pyz, "--root", str(machine), "--redact", "--redact-key", str(key), "-q", "-o", str(link))
    assert (done.returncode, b"is the file of the key" in done.stderr) == (2, True)
    assert key.read_text() == "a site's key"
    with key.open("ab") as stream:
        argv = [sys.executable, str(pyz), "--root", str(machine), "--redact", "--redact-key", str(key), "-q"]
        assert subprocess.run(argv, stdout=stream, stderr=subprocess.DEVNULL, check=False).returncode == 2
    assert key.read_text() == "a site's key"


def test_a_new_bundle_is_for_its_owner_alone(pyz: Path, machine: Path, tmp_path: Path):
    target = tmp_path / "bundle.tar.gz"
    assert _run(pyz, "--root", str(machine), "-q", "-o", str(target)).returncode == 0
    assert target.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {target.name, machine.name}


def test_a_reader_that_has_enough_ends_it_quietly(pyz: Path):
    process = subprocess.Popen([sys.executable, str(pyz), "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_can_be_stopped(pyz: Path, stub, tmp_path: Path, number: int, status: int):
    place = stub("ibstat", f"echo $$ > {tmp_path}/pid; exec sleep 600")
    environ = {**os.environ, "PATH": f"{place.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [sys.executable, str(pyz), "--only", "ibstat"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    for _ in range(500):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip():
            break
        time.sleep(0.02)
    process.send_signal(number)
    out, errors = process.communicate(timeout=20)
    assert (process.returncode, out, errors) == (status, b"", b"")
    time.sleep(0.2)
    state = Path(f"/proc/{int((tmp_path / 'pid').read_text())}/stat")
    assert not state.exists() or ") Z " in state.read_text()


def test_the_note_says_what_went_wrong_and_what_root_would_add():
    item = {"why": "", "truncated": False, "needs_root": False}
    note = closing_note(
        {
            "host": "gpu-001",
            "wall_s": 2.31,
            "items": [
                {**item, "id": "sys-net", "status": "ok"},
                {**item, "id": "lspci", "status": "ok", "needs_root": True},
                {**item, "id": "nvidia-smi-q", "status": "timeout", "why": "still running after 10.0 s"},
            ],
        }
    )
    assert note == (
        "topodiag-probe: gpu-001: 2 captured, 1 timed out, in 2.3 s\n"
        "  nvidia-smi-q: still running after 10.0 s\n"
        "  root would add: lspci (capabilities: link status, ACS control, AER)\n"
    )


def test_a_line_of_progress_is_cleared(monkeypatch: pytest.MonkeyPatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    progress = Progress()
    progress("start", "lspci", 0.0)
    progress("start", "nvml", 0.0)
    progress("done", "lspci", 0.1)
    progress.clear()
    assert "1 items, waiting for nvml" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


# --- The collector's children end when it does, however it ends: real processes, each test with a deadline


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
