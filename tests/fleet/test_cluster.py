"""A cluster from bundles of its nodes, alone and on a network that a file describes."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files import laid
from tests.tables import examples
from topodiag.app.case.placement import PlaceOptions, open_cluster
from topodiag.evidence.intake.collected import fixture_path
from topodiag.fleet import workers
from topodiag.fleet.cluster import NodeSeen, find_bundles, rank_nodes_of, read_bundles, read_or_why
from topodiag.model.cluster_facts import ClusterFacts, merged, nested, partition_of, usable
from topodiag.model.devices import Gpu, GpuFabric, Nic, NicPort, NicRole
from topodiag.model.errors import InputError, TopodiagError
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.hosts import natural

UUID = "6f1d2c40-9a3b-4e57-8b1c-2d5e7f903a11"


def bundle(at: Path, host: str, fixture: str = "dgx-h100-healthy", *, uuid: str = "", **environ: str) -> Path:
    """A captured machine under another name, in a rack of its own, or with variables of Slurm."""
    shutil.copytree(fixture_path(fixture), at)
    manifest = json.loads((at / "manifest.json").read_text())
    (at / "manifest.json").write_text(json.dumps(manifest | {"host": host}))
    if uuid:
        document = json.loads((at / "json" / "nvml.json").read_text())
        for gpu in document["gpus"]:
            gpu["fabric"]["cluster_uuid"] = uuid
        (at / "json" / "nvml.json").write_text(json.dumps(document))
    with (at / "trees" / "settings.tree").open("a") as stream:
        stream.writelines(f"= environ\t{name}={value}\n" for name, value in environ.items())
    return at


def slurm(*names: str) -> dict[str, str]:
    """What srun says of a task's place, from the top switch down to the node."""
    pattern = ".".join(["switch"] * (len(names) - 1) + ["node"])
    return {"SLURM_TOPOLOGY_ADDR": ".".join(names), "SLURM_TOPOLOGY_ADDR_PATTERN": pattern}


def levels(facts: ClusterFacts) -> list[tuple[str, list[int]]]:
    return [(partition.kind, partition.group.tolist()) for partition in facts.partitions]


# --- bundles alone --------------------------------------------------------------------------------------------


def test_a_folder_of_bundles_is_nodes_that_are_equally_near(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        bundle(tmp_path / f"b{number}", f"gpu{number}")
    facts = read_bundles([str(tmp_path)])
    assert facts.nodes == ("gpu1", "gpu2", "gpu10")
    assert (facts.gpus.tolist(), facts.system, facts.nics, facts.rails) == ([8, 8, 8], "DGX H100", (8, 400.0), 8)
    assert facts.partitions == ()
    assert facts.domain is None
    assert [note for note in facts.notes if "equally near" in note] == list(facts.notes)


def test_bundles_are_found_in_folders_below_and_named_one_by_one(tmp_path: Path) -> None:
    a = bundle(tmp_path / "rack1" / "a", "a")
    b = bundle(tmp_path / "rack2" / "b", "b")
    laid(tmp_path, {"rack2/c.tar.gz": b"", "rack2/notes.txt": "no bundle"})
    assert list(find_bundles(str(tmp_path))) == [str(a), str(b), str(tmp_path / "rack2" / "c.tar.gz")]
    assert read_bundles([str(b), str(a)]).nodes == ("a", "b")


def test_switches_are_those_that_slurm_names_to_a_task(tmp_path: Path) -> None:
    for number in range(4):
        bundle(tmp_path / f"b{number}", f"gpu{number}", **slurm("core", f"leaf{number // 2}", f"gpu{number}.example"))
    facts = read_bundles([str(tmp_path)])
    assert levels(facts) == [("leaf", [0, 0, 1, 1]), ("spine", [0, 0, 0, 0])]
    assert facts.partitions[0].names == ("leaf0", "leaf1")
    assert facts.notes == ()


def test_trays_with_one_cluster_uuid_are_one_nvlink_domain(tmp_path: Path) -> None:
    for number in range(4):
        uuid = UUID[:-1] + str(number // 2)
        bundle(tmp_path / f"b{number}", f"t{number}", "gb200-tray", uuid=uuid)
    cluster = open_cluster(PlaceOptions(bundles=(str(tmp_path),)))
    assert [(level.kind, level.groups) for level in cluster.levels] == [("nvlink", 2), ("fabric", 1)]
    assert cluster.nvlink_domain.tolist() == [0, 0, 1, 1]
    assert (cluster.system, cluster.slots, cluster.free) == ("GB200 NVL72 compute tray", 4, 16)


def test_what_differs_from_most_nodes_is_said(tmp_path: Path) -> None:
    for number in range(3):
        bundle(tmp_path / f"b{number}", f"gpu{number}")
    bundle(tmp_path / "slow", "gpu3", "dgx-h100-nic-down-and-half-rate")
    bundle(tmp_path / "other", "a0", "hgx-a100")
    bundle(tmp_path / "login", "login", "no-gpu")
    facts = read_bundles([str(laid(tmp_path, {"cut.tar.gz": b"\x1f\x8bcut"}))])
    assert facts.nodes == ("a0", "gpu0", "gpu1", "gpu2", "gpu3")
    text = "\n".join(facts.notes)
    assert "2 of 5 nodes have other NICs up than 8 of 400 Gb/s" in text
    assert "1 of 5 nodes are another system than DGX H100, and are priced like it: a0" in text
    assert "1 of 7 bundles left out, without a GPU: login" in text
    assert "1 of 7 bundles left out, unreadable: " in text
    assert "cut.tar.gz: is a damaged archive" in text


def test_of_two_captures_of_a_host_the_later_one_counts(tmp_path: Path) -> None:
    bundle(tmp_path / "a", "gpu1", "hgx-a100")
    later = bundle(tmp_path / "b", "gpu1")
    manifest = json.loads((later / "manifest.json").read_text())
    (later / "manifest.json").write_text(json.dumps(manifest | {"time": "2099-01-01T00:00:00Z"}))
    facts = read_bundles([str(tmp_path)])
    assert (facts.nodes, facts.system) == (("gpu1",), "DGX H100")
    assert any("older than another of the same host" in note for note in facts.notes)


def test_a_gpu_that_does_not_answer_is_not_free() -> None:
    gpus = tuple(Gpu(n, lost=Fact("GPU is lost") if n == 2 else Fact()) for n in range(4))
    seen = rank_nodes_of(Node("n", gpus=gpus), "n")
    assert (seen.gpus, seen.out) == (4, (2,))


def test_nics_for_the_job_are_the_compute_ports_that_are_up() -> None:
    def nic(name: str, role: NicRole, rate: float, state: str = "ACTIVE") -> Nic:
        return Nic(name, ports=(NicPort(1, state=Fact(state), rate_gbps=Fact(rate)),), role=role)

    seen = rank_nodes_of(
        Node(
            "n",
            nics=(
                nic("a", NicRole.COMPUTE, 400.0),
                nic("b", NicRole.COMPUTE, 400.0),
                nic("c", NicRole.COMPUTE, 400.0, "DOWN"),
                nic("d", NicRole.STORAGE, 200.0),
            ),
        ),
        "n",
    )
    assert seen.nics == (2, 400.0)


@pytest.mark.parametrize(
    ("fabric", "domain"),
    [
        (GpuFabric(state=Fact("completed"), clique_id=Fact(3), cluster_uuid=Fact(UUID)), f"{UUID}.3"),
        (GpuFabric(state=Fact("in_progress"), clique_id=Fact(3), cluster_uuid=Fact(UUID)), ""),
        (GpuFabric(state=Fact("completed"), cluster_uuid=Fact("00000000-0000-0000-0000-000000000000")), ""),
        (GpuFabric(), ""),
    ],
)
def test_a_domain_is_that_of_gpus_which_have_joined_it(fabric: GpuFabric, domain: str) -> None:
    assert rank_nodes_of(Node("n", gpus=(Gpu(0, fabric=fabric),)), "n").domain == domain


def test_a_redacted_address_names_no_switch() -> None:
    scheduler = {
        "SLURM_TOPOLOGY_ADDR": Fact("host-d8dc264615.d4f9fe6cee.example"),
        "SLURM_TOPOLOGY_ADDR_PATTERN": Fact("switch.switch.node"),
    }
    assert rank_nodes_of(Node("n", scheduler=scheduler), "n").tiers == ()


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_address_names_switches_or_none(address: str, pattern: str) -> None:
    scheduler = {"SLURM_TOPOLOGY_ADDR": Fact(address), "SLURM_TOPOLOGY_ADDR_PATTERN": Fact(pattern)}
    tiers = rank_nodes_of(Node("n", scheduler=scheduler), "n").tiers
    assert not tiers or len(tiers) == pattern.count(".")


@examples("content", "says")
def test_a_folder_without_nodes_is_one_clear_line(tmp_path: Path, content: dict[str, bytes], says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_bundles([str(laid(tmp_path, content))])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["/nonexistent/bundles", "", "a\0b"])
def test_a_path_that_is_not_there_is_one_clear_line_also_beside_others(path: str) -> None:
    with pytest.raises(InputError) as caught:
        read_bundles([str(fixture_path("dgx-h100-healthy")), path])
    assert "no such file" in str(caught.value) or not path
    assert "\n" not in str(caught.value)


# --- bundles on a network -------------------------------------------------------------------------------------


def machines(*names: str, **more: object) -> ClusterFacts:
    return ClusterFacts("bundles", f"{len(names)} bundles", names, gpus=np.full(len(names), 4), **more)  # type: ignore[arg-type]


def network(labels: dict[str, str]) -> ClusterFacts:
    return ClusterFacts("topology.conf", "Slurm tree", tuple(labels), nested(["leaf"], [list(labels.values())]))


def test_levels_are_the_networks_and_gpus_the_machines() -> None:
    facts = merged(network({"c": "l1", "b": "l1", "a": "l2", "x": "l2"}), machines("a", "b", "c", free={0: (1,)}))
    assert facts.nodes == ("c", "b", "a")
    assert levels(facts) == [("leaf", [0, 0, 1])]
    assert usable(facts, 8).sum(axis=1).tolist() == [4, 4, 1]
    assert any("1 nodes of topology.conf have no bundle" in note for note in facts.notes)


def test_hosts_match_by_the_first_part_of_their_names() -> None:
    facts = merged(network({"a.cluster": "l1", "b.cluster": "l2"}), machines("b", "a.example"))
    assert facts.nodes == ("a.example", "b")


def test_a_machine_that_the_network_lacks_is_alone_there() -> None:
    facts = merged(network({"a": "l1", "b": "l1"}), machines("new", "b", "a"))
    assert facts.nodes == ("a", "b", "new")
    assert levels(facts) == [("leaf", [0, 0, 1])]
    assert any("each taken to be alone there: new" in note for note in facts.notes)


def test_a_network_of_other_nodes_is_refused() -> None:
    with pytest.raises(InputError, match=r"names no node of bundles \(a\)"):
        merged(network({"x": "l1"}), machines("a"))


def test_the_domain_is_the_machines_where_they_know_it() -> None:
    file = ClusterFacts("t", "CSV", ("a", "b", "c"), domain=partition_of("nvlink", ["r", "r", "s"]))
    known = machines("c", "b", "a", domain=partition_of("nvlink", ["u", "u", "v"]))
    assert merged(file, known).domain.group.tolist() == [0, 1, 1]  # type: ignore[union-attr]
    assert merged(file, machines("c", "a")).domain.group.tolist() == [0, 1]  # type: ignore[union-attr]


@given(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1), st.lists(st.sampled_from("fghij"), unique=True))
def test_every_machine_is_kept_once_whatever_the_network_names(here: list[str], there: list[str]) -> None:
    file = network({name: f"l{ord(name) % 2}" for name in there})
    try:
        facts = merged(file, machines(*here))
    except InputError:
        assert not set(here) & set(there)
        return
    assert sorted(facts.nodes) == sorted(here)
    assert all(
        partition.group.size == len(here) and partition.groups == partition.group.max() + 1
        for partition in facts.partitions
    )


@given(st.lists(st.integers(0, 10**17), min_size=2, max_size=6), st.text("ab-.", max_size=3))
def test_nodes_are_sorted_as_they_count(numbers: list[int], name: str) -> None:
    texts = sorted((f"n{number}{name}" for number in numbers), key=natural)
    assert texts == [f"n{number}{name}" for number in sorted(numbers)]


@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_names_can_be_put_in_order(names: list[str]) -> None:
    assert sorted(map(natural, names)) == sorted(map(natural, reversed(names)))


# --- bundles read by several processes for a cluster: the same as by one, in order ----------------------------


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
