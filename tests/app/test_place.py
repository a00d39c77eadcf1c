"""Clusters and layouts from options: a system's name, files of the site, a launcher's file, a job's logs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files import filed
from tests.tables import examples, parts
from topodiag.app.case.placement import PlaceOptions, open_cluster, open_placement
from topodiag.app.judge.placing import solve_placement
from topodiag.app.place import audit_placement
from topodiag.emit.place_formats import write
from topodiag.emit.place_map import UnwritableMapError
from topodiag.model.cluster import Cluster
from topodiag.model.errors import TopodiagError
from topodiag.model.layout import Layout

JOBS = Path(__file__).parents[3] / "shared" / "corpus" / "jobs"


def kinds(cluster: Cluster) -> list[tuple[str, int]]:
    return [(level.kind, level.groups) for level in cluster.levels]


def refused(options: PlaceOptions) -> str:
    with pytest.raises(TopodiagError) as caught:
        open_placement(options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- built-in systems -----------------------------------------------------------------------------------------


def test_a_system_is_nodes_in_leaves_below_a_spine() -> None:
    cluster = open_cluster(PlaceOptions(system="dgx-h100", nodes=32, leaf=8, oversubscription=2.0))
    assert (cluster.nodes, cluster.slots, cluster.free, cluster.rails) == (32, 8, 256, 8)
    assert kinds(cluster) == [("leaf", 4), ("spine", 1)]
    assert cluster.levels[0].gbs / cluster.levels[1].gbs == 2.0
    assert cluster.levels[0].alpha_us < cluster.levels[1].alpha_us
    assert cluster.inside_gbs > cluster.levels[0].gbs
    assert cluster.gpu == "H100 80GB HBM3"


@examples("options", "file", "text", "levels", "wanted", "ratio", "notes")
def test_the_levels_of_a_cluster(
    tmp_path: Path,
    *,
    options: dict[str, Any],
    file: str | None,
    text: str | None,
    levels: list[tuple[str, int]],
    wanted: dict[str, Any] | None,
    ratio: float | None,
    notes: str | None,
) -> None:
    """The kinds of levels with the number of their groups, more of the cluster, how much faster the first level is than
    the second one, and words of a note. A `file` of this `text` gives the network."""
    if file:
        (tmp_path / file).write_text(text or "")
    cluster = open_cluster(PlaceOptions(**options, topology=str(tmp_path / file) if file else ""))
    assert kinds(cluster) == levels
    assert parts(cluster, wanted or {}) == (wanted or {})
    assert not ratio or cluster.levels[0].gbs / cluster.levels[1].gbs == ratio
    assert any((notes or "") in note for note in cluster.notes) or not notes


def test_trays_of_a_rack_share_one_nvlink_domain() -> None:
    cluster = open_cluster(PlaceOptions(system="gb200-nvl72", nodes=36))
    assert cluster.levels[0].gbs == cluster.inside_gbs
    assert np.bincount(cluster.nvlink_domain).tolist() == [18, 18]


def test_names_sort_as_they_count() -> None:
    cluster = open_cluster(PlaceOptions(nodes=1200))
    assert list(cluster.names) == sorted(cluster.names)


@examples("options", "says")
def test_what_makes_no_cluster_is_one_clear_line(options: PlaceOptions, says: str) -> None:
    assert says in refused(options)


# --- files ----------------------------------------------------------------------------------------------------


def test_an_instance_type_of_kubernetes_names_the_system(tmp_path: Path) -> None:
    labels = {"node.kubernetes.io/instance-type": "p5.48xlarge", "topology.k8s.aws/network-node-layer-3": "a"}
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": f"n{n}", "labels": labels},
            "status": {"allocatable": {"nvidia.com/gpu": "8"}},
        }
        for n in range(2)
    ]
    place = filed(tmp_path, "nodes.json", json.dumps({"kind": "List", "items": nodes}))
    cluster = open_cluster(PlaceOptions(topology=str(place)))
    assert "p5" in cluster.system.lower()
    assert not any("--system" in note for note in cluster.notes)


def test_free_and_excluded_gpus_are_what_is_left(tmp_path: Path) -> None:
    free = filed(tmp_path, "free", "node[001-003] 0-3\n")
    cluster = open_cluster(PlaceOptions(nodes=4, free=str(free), exclude=("node002", "node003:0")))
    assert cluster.usable.sum(axis=1).tolist() == [4, 0, 3, 0]


# --- layouts --------------------------------------------------------------------------------------------------


def test_hosts_of_a_layout_are_the_nodes_where_nothing_else_names_them(tmp_path: Path) -> None:
    place = filed(tmp_path, "hosts", "gpu7 slots=8\ngpu3 slots=8\n")
    opened = open_placement(PlaceOptions(system="dgx-h100", hostfile=str(place)))
    assert opened.cluster.names == ("gpu7", "gpu3")
    assert opened.assignment.slot.tolist() == list(range(16))


def test_a_rule_seats_ranks_and_without_one_nothing_does() -> None:
    opened = open_placement(PlaceOptions(nodes=2, rule="cyclic", ranks=4))
    assert opened.assignment.slot.tolist() == [0, 8, 1, 9]
    assert open_placement(PlaceOptions(nodes=2, ranks=4)).assignment is None


@examples("options", "says")
def test_what_makes_no_layout_is_one_clear_line(options: PlaceOptions, says: str) -> None:
    assert says in refused(options)


def test_a_host_that_the_cluster_lacks_is_one_clear_line(tmp_path: Path) -> None:
    place = filed(tmp_path, "hosts", "gpu7:8\n")
    assert "host 'gpu7' is not in the cluster" in refused(PlaceOptions(nodes=2, hostfile=str(place)))


@pytest.mark.skipif(not JOBS.is_dir(), reason="the corpus of jobs is not here: layouts of real logs are not tested")
@pytest.mark.parametrize("name", ["g_tp8_packed", "g_tp8_scatter"])
def test_the_logs_of_a_job_tell_where_its_ranks_ran(name: str) -> None:
    truth = json.loads((JOBS / name / "truth.json").read_text())
    opened = open_placement(PlaceOptions(system="dgx-h100", logs=(str(JOBS / name / "logs"),)))
    assert opened.read.job is not None
    assert opened.world == truth["world_size"]
    slots = opened.assignment.slot.tolist()
    pairs = [(opened.cluster.names[slot // opened.cluster.slots], slot % opened.cluster.slots) for slot in slots]
    assert pairs == [
        (each["host"], each["gpu"]) for each in sorted(truth["ranks"], key=lambda document: document["rank"])
    ]


def test_nodes_of_a_hostfile_have_the_gpus_that_it_gives_where_nobody_says_more(tmp_path: Path) -> None:
    place = filed(tmp_path, "hosts", "gpu7 slots=4\ngpu3 slots=2\n")
    cluster = open_placement(PlaceOptions(hostfile=str(place))).cluster
    assert cluster.usable.tolist() == [[True] * 4, [True, True, False, False]]
    assert any("GPUs at hand are those of the ranks" in note for note in cluster.notes)
    assert any("taken for DGX H100" in note for note in cluster.notes)
    assert open_placement(PlaceOptions(system="dgx-h100", hostfile=str(place))).cluster.free == 16


@pytest.mark.skipif(not JOBS.is_dir(), reason="the corpus of jobs is not here: racks in real logs are not tested")
@pytest.mark.parametrize("system", ["", "dgx-h100", "gb200-nvl72"])
def test_trays_that_a_log_joins_by_nvlink_are_one_domain(system: str) -> None:
    logs = (str(JOBS / "h_gb200_2tray" / "logs"),)
    cluster = open_placement(PlaceOptions(system=system, logs=logs)).cluster
    assert cluster.nvlink_domain.tolist() == [0, 0]
    assert kinds(cluster)[0] == ("nvlink", 1)
    assert not any("block" in note for note in cluster.notes)


@pytest.mark.skipif(not JOBS.is_dir(), reason="the corpus of jobs is not here: racks in real logs are not tested")
def test_nodes_with_nvlink_between_them_are_taken_for_a_rack() -> None:
    cluster = open_placement(PlaceOptions(logs=(str(JOBS / "h_gb200_2tray" / "logs"),))).cluster
    assert (cluster.system, cluster.slots) == ("GB200 NVL72 compute tray", 4)


@given(st.integers(1, 60), st.integers(0, 20), st.integers(1, 60), st.floats(1, 8))
def test_every_level_is_coarser_and_no_faster_than_the_one_inside(
    nodes: int, leaf: int, racks: int, ratio: float
) -> None:
    try:
        cluster = open_cluster(PlaceOptions(nodes=nodes, leaf=leaf, racks=racks, oversubscription=ratio))
    except TopodiagError:
        return
    for inner, outer in zip(cluster.levels, cluster.levels[1:], strict=False):
        assert inner.groups > outer.groups
        assert inner.gbs >= outer.gbs
        assert inner.alpha_us <= outer.alpha_us
        assert len({(a, b) for a, b in zip(inner.group.tolist(), outer.group.tolist(), strict=True)}) == inner.groups
    assert nodes < 2 or cluster.levels[-1].groups == 1


# --- A new map: on healthy nodes first, for the launcher that will take it, priced by the wires that the log shows


FIXTURES = Path(__file__).parents[2] / "fixtures" / "jobs"
HEALTHY, NARROW = "fixture:dgx-h100-healthy", "fixture:dgx-h100-gpu5-x4"


def options(layout: Layout, **cluster: object) -> PlaceOptions:
    return PlaceOptions(layout=layout, **cluster)  # type: ignore[arg-type]


def test_no_rank_is_put_on_a_node_with_a_known_fault_while_others_have_room() -> None:
    solution = solve_placement(options(Layout(tp=8, dp=1), bundles=(NARROW, HEALTHY)))
    assert solution.place.hosts == ("dgx-017",)
    assert "1 node has a fault: dgx-040 (PCI001); no rank is put there" in solution.cluster.notes


def test_a_node_with_a_known_fault_that_is_needed_is_said() -> None:
    solution = solve_placement(options(Layout(tp=8, dp=2), bundles=(NARROW, HEALTHY)))
    assert set(solution.place.hosts) == {"dgx-017", "dgx-040"}
    assert any("dgx-040 (PCI001); 16 ranks do not fit on the others" in note for note in solution.cluster.notes)


def test_healthy_nodes_need_no_word() -> None:
    solution = solve_placement(options(Layout(tp=8, dp=1), bundles=(HEALTHY,)))
    assert not any("fault" in note for note in solution.cluster.notes)


TRAYS = {"system": "gb200-nvl72", "nodes": 5, "racks": 5, "exclude": ("node001:0,1", "node003:0,1")}
"""Two trays with two free GPUs each: a pair of groups is split over them, and ranks return to a node."""


@pytest.mark.parametrize("launcher", ["torchrun", "hostfile", "mpich"])
def test_a_map_is_one_that_its_launcher_takes(launcher: str) -> None:
    asked = options(Layout(tp=2, pp=2, dp=4), **TRAYS)
    with pytest.raises(UnwritableMapError, match="goes back to"):
        write(solve_placement(asked).place, launcher)
    solution = solve_placement(asked, launcher=launcher)
    assert write(solution.place, launcher).text
    assert solution.place.consecutive
    assert sorted(solution.solution.assignment.slot.tolist()) == sorted(set(solution.solution.assignment.slot.tolist()))


def test_a_launcher_that_takes_any_order_gets_the_best_map() -> None:
    asked = options(Layout(tp=2, pp=2, dp=4), **TRAYS)
    assert (solve_placement(asked, launcher="rankfile").place.host == solve_placement(asked).place.host).all()


def waited(job: str) -> tuple[float, tuple[str, ...]]:
    audit, _ = audit_placement(PlaceOptions(logs=(str(FIXTURES / job / "logs"),), layout=Layout(tp=8)))
    return audit.waited_us, audit.cluster.notes


def test_sockets_that_the_log_shows_are_what_is_priced() -> None:
    slow, texts = waited("socket-fallback")
    fast, also = waited("healthy")
    assert any("the log shows TCP sockets between nodes" in note for note in texts)
    assert any("the log shows 8 NICs of 400 Gb/s for a node in use" in note for note in also)
    assert slow > fast


def test_wires_that_are_given_count_for_more_than_those_of_the_log() -> None:
    given = PlaceOptions(nics=(4, 200.0), logs=(str(FIXTURES / "healthy" / "logs"),), layout=Layout(tp=8))
    assert not any("the log shows" in note for note in audit_placement(given)[0].cluster.notes)
