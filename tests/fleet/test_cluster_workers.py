"""Bundles read by several processes for a cluster: the same as by one, in order."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from topodiag.evidence.intake.collected import fixture_path
from topodiag.fleet import workers
from topodiag.fleet.cluster import NodeSeen, read_or_why
from topodiag.model.errors import TopodiagError


def paths(tmp_path: Path) -> list[str]:
    broken = tmp_path / "cut.tar.gz"
    broken.write_bytes(b"\x1f\x8bcut")
    names = ("dgx-h100-healthy", "gb200-tray", "no-gpu", "mig-on")
    return [*(str(fixture_path(name)) for name in names), str(broken), "/nonexistent"]


def test_many_processes_say_what_one_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = paths(tmp_path)
    monkeypatch.setattr(workers, "CHUNK", 2)
    monkeypatch.setattr(workers, "cpus", lambda: 2)
    found = list(workers.by_all_cores(read_or_why, here, worth=True))
    assert found == [read_or_why(path) for path in here]
    assert [type(each) for each in found] == [NodeSeen] * 4 + [str] * 2


def test_a_worker_that_dies_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(*_: object, **__: object) -> Iterator[NodeSeen | str]:
        raise BrokenProcessPool

    monkeypatch.setattr(workers, "CHUNK", 2)
    monkeypatch.setattr(workers, "cpus", lambda: 2)
    monkeypatch.setattr(ProcessPoolExecutor, "map", dead)
    with pytest.raises(TopodiagError, match="a worker process ended"):
        list(workers.by_all_cores(read_or_why, paths(tmp_path), worth=True))
