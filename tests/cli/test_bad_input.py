"""What a user may give by mistake or malice: one line that names it, exit code 2, no traceback, bounded memory."""

import contextlib
import gzip
import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import psutil
import pytest

from tests import program
from tests.cli.small_log import HEAD, log
from tests.tables import examples

HEALTHY = "fixture:dgx-h100-healthy"
MEMORY = 3 << 28
"""What the program may take beyond its own code, bytes: three times the most that a bundle may unpack to."""


def scan(*args, **kwargs):
    """The real program, whose memory is limited."""
    return program.run("scan", *args, timeout=60, memory=MEMORY, **kwargs)


def refused(done, *words):
    assert done.returncode == 2
    assert not done.stdout
    said = done.stderr.splitlines()
    assert said[0].startswith("topodiag: error: ")
    assert len(said) <= 2
    assert all(word in done.stderr for word in words), done.stderr


def archive(path, *members):
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as packed:
        for member, data in members:
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("empty", b"", "is empty"),
        ("blank", b" \n\n", "it is blank"),
        ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, "it is binary"),
        ("cut.tar.gz", gzip.compress(os.urandom(5000))[:2000], "it is binary"),
        ("junk.gz", b"\x1f\x8b" + bytes(1000), "damaged archive"),
    ],
)
def test_a_file_that_is_no_evidence_is_named(tmp_path, name, data, words):
    (tmp_path / name).write_bytes(data)
    refused(scan(tmp_path / name), name, words)


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path):
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(30 << 20)) * 10)
    refused(scan(tmp_path / "bomb.gz"), "bomb.gz", "unknown file type")


def test_a_sparse_member_is_refused_whatever_size_it_claims(tmp_path):
    member = tarfile.TarInfo("holes")
    member.pax_headers = {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "holes",
        "GNU.sparse.realsize": str(50 << 20),
    }  # fmt: skip
    made = archive(tmp_path / "b.tar.gz", *[(member, f"1\n{50 << 20}\n0\n".encode().ljust(512, b"\0"))] * 100)
    refused(scan(made), "b.tar.gz", "without evidence in it", "holes: no plain file")


def test_folders_count_as_members_too(tmp_path):
    folders = [(tarfile.TarInfo(f"d{number}"), b"") for number in range(20_001)]
    for member, _ in folders:
        member.type = tarfile.DIRTYPE
    refused(scan(archive(tmp_path / "b.tar.gz", *folders)), "b.tar.gz", "more than 20000 members")


@pytest.mark.parametrize("deep", [b"[" * 200_000, b'{"schema": "1.0", "x": ' + b"9" * 1_000_000 + b"}"])
def test_a_manifest_that_python_cannot_hold_is_not_json(tmp_path, deep):
    made = archive(tmp_path / "b.tar.gz", (tarfile.TarInfo("manifest.json"), deep))
    refused(scan(made), "manifest.json: is not JSON", "is the bundle whole?")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_named(tmp_path):
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "secret.txt").chmod(0)
    refused(scan(tmp_path / "secret.txt"), "secret.txt", "permission denied", "mode and owner")
    refused(scan(tmp_path), "secret.txt", "mode and owner")


def with_closed(stream, path):
    """A scan by a shell that closed a stream of it."""
    argv = ["/bin/sh", "-c", f'exec "$@" {stream}&-', "sh", *program.ARGV, "scan", path]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_closed_standard_input_is_said_and_closed_output_keeps_the_verdict():
    refused(with_closed("<", "-"), "<stdin>", "is closed")
    done = with_closed(">", HEALTHY)
    assert (done.returncode, done.stderr) == (0, "")


@examples("env")
def test_no_environment_stops_the_report(env):
    done = scan(HEALTHY, "-v", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "GPU7" in done.stdout


def test_a_file_name_that_is_not_utf8_is_named_without_its_bytes():
    refused(scan(os.fsdecode(b"\xff\xfe.tar.gz")), ".tar.gz", "no such file")


def test_ctrl_c_during_a_capture_leaves_no_command_behind(tmp_path):
    begun = tmp_path / "begun"
    hung = tmp_path / "nvidia-smi"
    hung.write_text(f"#!/bin/sh\ntrap '' INT TERM\necho $$ >> {begun}\nsleep 60\n")
    hung.chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = [sys.executable, "-m", "topodiag", "scan"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as child:
        while not begun.exists():
            assert child.poll() is None
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=30) == ("", "topodiag: interrupted\n")
    assert child.returncode == 130
    assert all(is_gone(int(pid)) for pid in begun.read_text().split())


def is_gone(pid):
    """Whether a process ends within ten seconds; a zombie has ended."""
    status = Path(f"/proc/{pid}/status")
    for _ in range(500):
        try:
            if "State:\tZ" in status.read_text():
                return True
        except OSError:  # it may end between two looks, or while it is read
            return True
        time.sleep(0.02)
    return False


# --- What `topodiag logs` says to wrong, damaged and hostile input: one line that names it, exit code 2, no traceback


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
        pytest.param(b"topodiag facts 4\n" + b"\xff" * 300, "is damaged", id="damaged facts"),
        pytest.param(b"topodiag facts 2\n", "another version of topodiag", id="facts of another version"),
        pytest.param(b"PAR1" + b"\xff" * 300, "another version of topodiag", id="facts kept as Parquet"),
        pytest.param(b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00trueR.", "a pickle", id="pickle"),
        pytest.param(b'<system version="1">\n</system>\n', "NCCL topology", id="topology"),
        pytest.param(b"#       size         count      type   redop\n", "an nccl-tests table", id="nccl-tests"),
        pytest.param(b'<system version="1">\n</system>\n', "topodiag topo check", id="topology and its command"),
        pytest.param(gzip.compress(b'{"paths": {}}\n'), "looks like JSON", id="packed JSON"),
        pytest.param(b'{\n "schema": "1.0",\n "tool": "topodiag-probe 0.1.0"', "manifest of a bundle", id="manifest"),
        pytest.param(b"# ours\nfile,nodes,avg_bus_bw_GBs\na,2,40.1\n", "a table of benchmark results", id="CSV"),
        pytest.param(b"size,nodes,time,algbw,busbw\n8,2,40.1,1,1\n", "a table of benchmark results", id="CSV of sizes"),
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
