"""The captures of a fleet are read once each, by any number of workers alike."""

import json
import pickle
import shutil
import tarfile
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.fleet.fleets import plain
from topodiag.fleet import nodes as module
from topodiag.fleet.nodes import Fleet, _latest, read_fleet, read_some
from topodiag.model.errors import InputError
from topodiag.model.finding import Finding, Severity

FOUND = Finding("NVL001", Severity.ERROR, "a fault", "seen", "expected", ("mend it",))
FIXTURES = Path(__file__).parents[2] / "fixtures" / "nodes"


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hosts, one of them captured twice, and a file that is no capture."""
    top = tmp_path_factory.mktemp("fleet")
    for rack, host, day in (("r1", "n1", 1), ("r1", "n2", 1), ("r2", "n3", 1), ("r2", "n1", 2)):
        place = top / rack / f"{host}-{day}"
        shutil.copytree(FIXTURES / "no-gpu", place)
        manifest = json.loads((place / "manifest.json").read_text())
        manifest["host"], manifest["time"] = host, f"2026-03-0{day}T08:00:00Z"
        (place / "manifest.json").write_text(json.dumps(manifest))
    (top / "broken.tar.gz").write_bytes(b"\x1f\x8bnothing")
    return top


@pytest.fixture(scope="module")
def fleet(captures: Path) -> Fleet:
    return read_fleet([str(captures)], workers=1)


def test_the_latest_capture_of_a_host_counts_and_the_older_one_is_named(fleet: Fleet) -> None:
    assert [node.host for node in fleet.nodes] == ["n1", "n2", "n3"]
    assert fleet.nodes[0].time == "2026-03-02T08:00:00Z"
    assert [gap.why for gap in fleet.left_out if "r1/n1-1" in gap.what] == ["an older capture of n1"]


def test_a_capture_that_cannot_be_read_costs_itself(fleet: Fleet) -> None:
    [broken] = [gap for gap in fleet.left_out if gap.what.endswith("broken.tar.gz")]
    assert broken.why


def test_a_capture_that_holds_nothing_is_no_healthy_node(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "no-gpu", tmp_path / "n1")
    (tmp_path / "n2").mkdir()
    manifest = {"schema": "1.0", "tool": "topodiag-probe 0.1.0", "host": "n2", "samples": [], "items": []}
    (tmp_path / "n2" / "manifest.json").write_text(json.dumps(manifest))
    fleet = read_fleet([str(tmp_path)], workers=1)
    assert [node.host for node in fleet.nodes] == ["login-02"]
    assert [gap.why for gap in fleet.left_out] == ["holds nothing that was read of the node"]


@pytest.mark.parametrize("sums", ["SHA256SUMS", "n2.tar.gz.sha256"])
def test_a_bundle_that_has_changed_since_it_was_collected_is_named_and_not_read(tmp_path: Path, sums: str) -> None:
    for host in ("n1", "n2", "n3"):
        with tarfile.open(tmp_path / f"{host}.tar.gz", "w:gz") as archive:
            archive.add(FIXTURES / "no-gpu", ".")
    kept = [f"{sha256((tmp_path / f'n{at}.tar.gz').read_bytes()).hexdigest()}  n{at}.tar.gz\n" for at in (1, 2)]
    (tmp_path / sums).write_text("".join(kept))
    shutil.copyfile(tmp_path / "n3.tar.gz", tmp_path / "n2.tar.gz")
    with (tmp_path / "n2.tar.gz").open("ab") as stream:
        stream.write(b"\0" * 512)
    fleet = read_fleet([str(tmp_path)], workers=1)
    changed = [gap.what for gap in fleet.left_out if "has changed since it was collected" in gap.why]
    assert changed == [str(tmp_path / "n2.tar.gz")]


class Pool:
    """Workers that are this process: what goes to them and comes back is pickled."""

    def map(self, work, tasks, chunksize=1):  # type: ignore[no-untyped-def]
        return (pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(task))))) for task in tasks)


def test_processes_say_what_one_process_says(captures: Path, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    monkeypatch.setattr(module, "FEW", 0)
    monkeypatch.setattr(module, "CHUNK", 2)
    monkeypatch.setattr(
        "topodiag.fleet.workers.pool_of", lambda workers, *_: started.append(workers) or nullcontext(Pool())
    )
    assert read_fleet([str(captures)], workers=2) == fleet
    assert started == [2]


def test_nodes_with_the_same_facts_share_them(captures: Path) -> None:
    digests, _ = read_some([str(captures / "r1" / "n1-1"), str(captures / "r1" / "n2-1")])
    one, other = ({fact.family: fact for fact in node.facts} for node in digests)
    assert one["os"] is other["os"]


def test_machines_of_one_name_that_have_no_gpu_in_common_are_several() -> None:
    one = replace(plain(), host="localhost", path="a", machine=frozenset({"GPU-1"}))
    again = replace(one, path="b", time="2026-03-02T08:00:00Z", findings=(FOUND,))
    other = replace(one, path="c", machine=frozenset({"GPU-2"}), findings=(FOUND,))
    nodes, older = _latest([one, again, other])
    assert sorted((node.host, node.path) for node in nodes) == [("localhost#1", "b"), ("localhost#2", "c")]
    assert [each.what for each in older] == ["a"]
    assert {node.findings[0].where.nodes for node in nodes} == {("localhost#1",), ("localhost#2",)}


def test_a_folder_without_a_node_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(InputError, match="holds no node that can be read"):
        read_fleet([str(tmp_path)])


def test_progress_counts_captures(captures: Path) -> None:
    pairs: list[tuple[int, int]] = []
    read_fleet([str(captures)], workers=1, on_read=lambda done, total: pairs.append((done, total)))
    assert pairs[-1] == (5, 5)
