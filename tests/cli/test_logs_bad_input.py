"""What `topodiag logs` says to wrong, damaged and hostile input: one line that names it, exit code 2, no traceback."""

import contextlib
import gzip
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests import program
from tests.cli.small_log import HEAD, log

PROGRAM = [sys.executable, "-m", "topodiag", "logs"]
HUGE = "99999999999999999999"


def run(*args, **kwargs):
    done = program.run("logs", *args, text=False, **kwargs)
    assert b"Traceback" not in done.stderr
    assert b"internal error" not in done.stderr
    return done


def refusal(*args, **kwargs):
    done = run(*args, **kwargs)
    assert done.returncode == 2, done.stdout.decode()
    assert done.stdout == b""
    first, *rest = done.stderr.decode().splitlines()
    assert first.startswith("topodiag: error: ")
    assert len(rest) <= 1  # the remedy
    return " ".join([first, *rest])


def zst(data):
    return pytest.importorskip("zstandard").compress(data)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"hello\n", "holds no NCCL record", id="no record"),
        pytest.param(bytes(range(256)) * 50, "binary", id="binary"),
        pytest.param(gzip.compress(b"hello\n" * 9000)[:20], "cut short", id="cut gzip"),
        pytest.param(b"\x1f\x8b\x08\x00" + b"\xff" * 300, "archive is damaged", id="damaged gzip"),
        pytest.param(b"\x28\xb5\x2f\xfd" + b"\xa5" * 300, "archive is damaged", id="damaged zstd"),
        pytest.param(b"topodiag facts 3\n" + b"\xff" * 300, "is damaged", id="damaged facts"),
        pytest.param(b"topodiag facts 2\n", "another version of topodiag", id="facts of another version"),
        pytest.param(b"PAR1" + b"\xff" * 300, "another version of topodiag", id="facts kept as Parquet"),
        pytest.param(b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00trueR.", "a pickle", id="pickle"),
        pytest.param(b'<system version="1">\n</system>\n', "NCCL topology", id="topology"),
        pytest.param(b"#       size         count      type   redop\n", "an nccl-tests table", id="nccl-tests"),
        pytest.param(b'<system version="1">\n</system>\n', "topodiag topo check", id="topology and its command"),
        pytest.param(gzip.compress(b'{"paths": {}}\n'), "looks like JSON", id="packed JSON"),
        pytest.param(b'{\n "schema": "1.0",\n "tool": "topodiag-probe 0.1.0"', "manifest of a bundle", id="manifest"),
        pytest.param(b"# ours\nfile,nodes,avg_bus_bw_GBs\na,2,40.1\n", "a table of benchmark results", id="CSV"),
        pytest.param(b"GPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n", "topodiag scan ", id="bare matrix"),
        pytest.param(b"0000:3b:00.0 Infiniband controller: Mellanox\n", "lspci output", id="lspci"),
        pytest.param(b"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\n", "topodiag scan ", id="nvidia-smi"),
    ],
)
def test_a_wrong_file_is_named_for_what_it_is(tmp_path, content, said):
    (tmp_path / "job.log").write_bytes(content)
    line = refusal("job.log", cwd=tmp_path)
    assert "job.log" in line
    assert said in line


def test_a_name_cannot_paint_the_terminal(tmp_path):
    (tmp_path / "a\n\x1b[31mb.log").write_bytes(b"")
    assert "\x1b" not in refusal("a\n\x1b[31mb.log", cwd=tmp_path)


@pytest.fixture(scope="module")
def ranks_of_plain():
    shown = run("-", "--ranks", "--fail-on", "never", input=log().encode()).stdout
    assert b"node-a" in shown
    return shown


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda text: text.decode().encode("utf-16"), id="UTF-16"),
        pytest.param(lambda text: b"\xef\xbb\xbf" + text, id="byte order mark"),
        pytest.param(lambda text: b"\0" * 5000 + text, id="hole"),
        pytest.param(lambda text: text.replace(b"\n", b"\n\xff\xfe\xc0\n"), id="invalid UTF-8"),
        pytest.param(gzip.compress, id="gzip"),
        pytest.param(zst, id="zstd"),
    ],
)
def test_the_same_job_is_read_from_any_form_of_the_text(change, ranks_of_plain):
    done = run("-", "--ranks", "--fail-on", "never", input=change(log().encode()))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == ranks_of_plain


def test_absurd_numbers_cost_neither_memory_nor_a_traceback():
    head = HEAD.format(tid=10, dev=0)
    text = log() + "".join(
        f"{head}{line}\n"
        for number in ("2147483647", "2147483646", HUGE, "-1")
        for line in (
            f"ncclCommInitRank comm 0x9000 rank {number} nranks {number} cudaDev {number} nvmlDev {number} "
            f"busId ffffffffffffffff commId 0xdef - Init START",
            f"ncclCommInitRank comm (nil) rank 0 nranks {number} cudaDev 0 nvmlDev 0 busId 1000 commId 0x0 "
            f"- Init START",
            f"comm 0x9000 rank 0 nRanks {number} nNodes {number} localRanks {number} localRank {number} MNNVL 0",
            f"Channel {number}/{number} : 0 1 {number}",
            f"Ring {number} : {number} -> {number} -> {number}",
            f"Trees [{number}] {number}/-1/-1->{number}->{number}",
            f"Channel {number}/0 : {number}[{number}] -> 1[{number}] via NET/IB/{number}/GDRDMA",
            f"{number} coll channels, {number} collnet channels, 0 nvls channels, {number} p2p channels",
        )
    )
    limited = ["bash", "-c", 'ulimit -v 16000000; exec "$@"', "-", *PROGRAM]  # KiB of address space
    for view in (("--comms", "--rings", "--transports"), ("--format", "json")):
        done = subprocess.run(
            [*limited, "-", *view, "--fail-on", "never"],
            input=text.encode(), capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_leaves_is_no_error(tmp_path):
    (tmp_path / "job.log").write_text(log())
    with subprocess.Popen(
        [*PROGRAM, "job.log", "--format", "json", "--fail-on", "never"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
    ) as process:  # fmt: skip
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def workers_of(pid):
    started = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.Error):
            started += [child] if not any("resource_tracker" in word for word in child.cmdline()) else []
    return started


def write_long_logs(folder):
    """Work for a quarter of a minute, so that it is never done before the signal comes, on the disk only once."""
    one = log().encode()
    (folder / "0.log").write_bytes(one * (20_000_000 // len(one)))
    for number in range(1, 60):
        (folder / f"{number}.log").hardlink_to(folder / "0.log")


def test_ctrl_c_ends_the_work_and_its_workers(tmp_path):
    write_long_logs(tmp_path)
    with subprocess.Popen(
        [*PROGRAM, ".", "--workers", "2"], stderr=subprocess.PIPE, cwd=tmp_path, start_new_session=True
    ) as process:
        while not workers_of(process.pid):
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        said = process.stderr.read()  # ends when the last worker does
        assert process.wait(60) == 130
    assert said.splitlines()[-1] == b"topodiag: interrupted"
    assert b"Traceback" not in said


def test_a_program_that_is_killed_leaves_no_worker_and_no_file(tmp_path):
    place, kept = tmp_path / "logs", tmp_path / "tmp"
    place.mkdir()
    kept.mkdir()
    write_long_logs(place)
    with subprocess.Popen(
        [*PROGRAM, str(place), "--workers", "2"], stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(kept)}
    ) as process:
        while not (workers := workers_of(process.pid)):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        psutil.wait_procs(workers, timeout=30)
        assert not any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers)
    assert not list(kept.iterdir())
