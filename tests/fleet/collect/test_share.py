"""A folder that nodes write into by themselves."""

import shlex
import subprocess
import threading
import time
from pathlib import Path

import pytest

from topodiag.fleet.collect import share as module
from topodiag.fleet.collect.archive import archive
from topodiag.fleet.collect.interface import Request
from topodiag.fleet.collect.run import collect
from topodiag.fleet.collect.share import Share, command
from topodiag.model.collect import State


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
