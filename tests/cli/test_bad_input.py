"""What a user may give by mistake or malice: one line that names it, exit code 2, no traceback, bounded memory."""

import gzip
import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from tests import program
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
    with gzip.open(tmp_path / "bomb.gz", "wb") as bomb:
        for _ in range(300):
            bomb.write(bytes(1 << 20))
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


def test_a_folder_that_holds_itself_ends(tmp_path):
    (tmp_path / "topo.txt").write_text("hello\n")
    (tmp_path / "again").symlink_to(tmp_path)
    refused(scan(tmp_path), "unknown file type")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_named(tmp_path):
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "secret.txt").chmod(0)
    refused(scan(tmp_path / "secret.txt"), "secret.txt", "permission denied", "mode and owner")
    refused(scan(tmp_path), "secret.txt", "mode and owner")


def test_closed_standard_input_is_said():
    program = [sys.executable, "-m", "topodiag", "scan", "-"]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *program], capture_output=True, text=True, timeout=60, check=False
    )
    refused(done, "<stdin>", "is closed")


def test_closed_standard_output_keeps_the_verdict():
    program = [sys.executable, "-m", "topodiag", "scan", HEALTHY]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *program], capture_output=True, text=True, timeout=60, check=False
    )
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
