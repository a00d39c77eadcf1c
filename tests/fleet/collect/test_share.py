"""Collecting of many nodes: what is shared, and how long each may take."""

import os
import shlex
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.tables import texts
from topodiag.fleet.collect import share as module
from topodiag.fleet.collect.archive import archive
from topodiag.fleet.collect.interface import Request
from topodiag.fleet.collect.run import collect
from topodiag.fleet.collect.share import Share, command
from topodiag.fleet.collect.ssh import Ssh
from topodiag.model.collect import Collection, State


def test_what_nodes_write_into_the_folder_is_checked_and_kept_like_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_S", 0.05)
    host = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip()
    request = Request(archive(), "", deadline_s=5.0)

    def node() -> None:
        while not (tmp_path / "topodiag-probe.pyz").exists():
            time.sleep(0.02)
        argv = shlex.split(command(str(tmp_path), request).replace("--jitter 5", "--quiet"))
        subprocess.run(argv, check=True)

    runs = threading.Thread(target=node)
    runs.start()
    done = collect(Share(), [host], str(tmp_path), request, whole_s=60)
    runs.join()
    assert done.answers[0].state is State.ANSWERED
    assert (tmp_path / done.answers[0].file).is_file()
    assert subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=False).returncode == 0
    assert not list((tmp_path / "incoming").rglob("*.tar.gz*"))


def test_what_is_not_whole_is_waited_for_and_what_nobody_asked_for_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_S", 0.01)
    place = tmp_path / "incoming" / "5b"
    place.mkdir(parents=True)
    for name in ("gpu1-b9fd7a66-20261122T221058Z.tar.gz", "gpu7-b9fd7a66-20261122T221058Z.tar.gz"):
        (place / name).write_bytes(b"half of a bundle")
        (place / f"{name}.sha256").write_text("0" * 64 + f"  {name}\n")
    done = collect(Share(), ["gpu1"], str(tmp_path), Request(b"", ""), whole_s=0.1)
    assert done.answers[0].state is State.TIMED_OUT
    assert len(list(place.iterdir())) == 4


# --- The time of the whole, shorter than that of a node: what came stays, and no node that was cut off is called hung
#


TEXTS = texts(__file__)
_SSH = TEXTS["ssh"]
NODES = ("answers", "refuses", "silent")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ssh that runs the command here."""
    place = tmp_path / "bin" / "ssh"
    place.parent.mkdir()
    place.write_text(_SSH)
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.parent}:{os.environ['PATH']}")


def asked(to: Path, within_s: float) -> Collection:
    return collect(Ssh(), NODES, str(to), Request(archive(), "", deadline_s=5.0), whole_s=within_s)


@pytest.mark.usefixtures("program")
def test_a_whole_shorter_than_the_time_of_a_node_keeps_what_came_and_says_what_did_not(tmp_path: Path) -> None:
    done = asked(tmp_path / "to", 8.0)
    assert [answer.state for answer in done.answers] == [State.ANSWERED, State.REFUSED, State.TIMED_OUT]
    assert "Connection refused" in done.answers[1].why
    assert "when the time of the whole was over" in done.answers[2].why
    assert [path.name for path in (tmp_path / "to").glob("*.tar.gz")] == [done.answers[0].file]


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("within_s", [0.0, 0.2])
def test_a_whole_of_no_time_ends_at_once_without_an_error(tmp_path: Path, within_s: float) -> None:
    done = asked(tmp_path / "to", within_s)
    assert done.answers[2].state is State.TIMED_OUT
    assert done.stopped
    assert not list((tmp_path / "to").glob("*.hung.tar.gz"))


@pytest.mark.usefixtures("program")
def test_a_node_that_is_silent_until_both_times_are_over_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topodiag.fleet.collect.interface.GRACE_S", 0.0)
    request = Request(archive(), "", deadline_s=0.5, connect_s=0)
    done = collect(Ssh(), ("silent",), str(tmp_path / "to"), request, whole_s=request.node_s)
    assert [answer.state for answer in done.answers] == [State.TIMED_OUT]
