"""Lines that collectors print, and nodes that boot meanwhile."""

import base64
import hashlib
import io
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.fleet.collect import lines
from topodiag.fleet.collect.archive import archive
from topodiag.fleet.collect.boot import COMMAND, argv, standard_input
from topodiag.fleet.collect.lines import Receipt
from topodiag_probes.send import Sender

BOOT = "b9fd7a66-18bf-41da-8421-5081a0e49215"
MANIFEST = {"host": "gpu1", "boot_id": BOOT, "time": "2026-11-22T22:10:58Z"}


def sent(packed: bytes) -> list[tuple[bytes, bytes]]:
    """What the collector writes for a bundle, as (kind, text)."""
    stream = io.BytesIO()
    sender = Sender(stream, "markmark", "gpu1")
    sender.hello("gpu1", BOOT)
    sender.bundle(packed, MANIFEST)
    words = [line.split(b" ", 3) for line in stream.getvalue().splitlines()]
    return [(word[2], word[3]) for word in words]


def test_a_bundle_comes_whole(tmp_path: Path) -> None:
    packed = bytes(range(256)) * 40
    receipt = Receipt(tmp_path / "part")
    for kind, text in sent(packed):
        receipt.take(kind, text)
    receipt.close()
    assert receipt.whole
    assert (tmp_path / "part").read_bytes() == packed
    assert (receipt.host, receipt.boot_id, receipt.time) == ("gpu1", BOOT, "2026-11-22T22:10:58Z")
    assert receipt.sha256 == hashlib.sha256(packed).hexdigest()


@given(st.binary(max_size=3000))
def test_any_bundle_comes_whole(packed: bytes) -> None:
    receipt = Receipt(Path("/dev/null"))
    for kind, text in sent(packed):
        receipt.take(kind, text)
    assert receipt.whole
    assert receipt.size == len(packed)


def test_every_line_is_shorter_than_what_srun_cuts() -> None:
    stream = io.BytesIO()
    sender = Sender(stream, "m" * 64, "n" * 300)
    sender.hello("h" * 300, BOOT)
    for number in range(500):
        sender.progress("start", f"ethtool-S-interface{number}", 0.0)
    sender.busy()
    sender.bundle(b"x" * 5000, MANIFEST)
    sender.fail("why " * 1000)
    assert max(map(len, stream.getvalue().splitlines())) < 1024


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda document: document[:2] + document[3:], "bytes came"),  # a piece is lost
        (
            lambda document: [document[0], document[2], document[1], *document[3:]],
            "SHA-256 differs",
        ),  # two pieces changed places
        (lambda document: [*document[:2], (b"data", b"no base64 !"), *document[2:]], "no base64"),
        (lambda document: [*document[:-1], (b"end", b"soon")], "no end of a bundle"),
    ],
)
def test_what_is_not_the_bundle_is_never_kept(tmp_path: Path, change, why: str) -> None:  # type: ignore[no-untyped-def]
    packed = b"a" * 540 + b"b" * 540 + b"c" * 540 + b"d" * 20
    receipt = Receipt(tmp_path / "part")
    for kind, text in change(sent(packed)):
        receipt.take(kind, text)
    receipt.close()
    assert not receipt.whole
    assert why in receipt.broken
    assert not (tmp_path / "part").exists()


def test_a_node_that_sends_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_BUNDLE", 5000)
    monkeypatch.setattr(lines, "MAX_NOISE", 5000)
    piece = base64.b64encode(b"x" * 540)
    flood = Receipt(tmp_path / "flood")
    assert [flood.take(b"data", piece) for _ in range(12)].index(False) == 9
    shouting = Receipt(tmp_path / "shout")
    assert [shouting.noise(b"y" * 999) for _ in range(8)].index(False) == 5
    for receipt in (flood, shouting):
        receipt.close()
        assert not receipt.whole
    assert list(tmp_path.iterdir()) == []


@given(st.binary(max_size=200), st.sampled_from([b"hello", b"busy", b"data", b"end", b"fail", b"other"]))
def test_no_line_raises(text: bytes, kind: bytes) -> None:
    receipt = Receipt(Path("/dev/null"))
    receipt.take(kind, text)
    assert not receipt.whole or kind == b"end"


def test_what_a_node_calls_itself_is_not_believed_as_a_path() -> None:
    receipt = Receipt(Path("/dev/null"))
    receipt.take(b"hello", b"../../etc x y")
    assert receipt.hello
    assert receipt.boot_id == ""
    receipt.take(b"busy", b"nvidia-smi-q,../../x")
    assert "nvidia-smi-q" in receipt.waited_for
    assert not any("/" in item for item in receipt.waited_for)


# --- The command that starts the collector on a node: any login shell, full disks, old Pythons, nothing left behind
#


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
