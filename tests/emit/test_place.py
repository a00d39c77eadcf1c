"""One map in every launcher's words, and read back."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.emit.place_formats import FORMATS, write
from topodiag.emit.place_map import UnwritableMapError, to_json
from topodiag.evidence.interface import Blob
from topodiag.evidence.layout.rank_files import read_index_map, read_place_map
from topodiag.model.cluster import Assignment, Cluster, Level
from topodiag.model.errors import InputError
from topodiag.model.place_map import PlaceMap, map_of


def placed(hosts: str, gpus: list[int] | None = None, **groups: list[int]) -> PlaceMap:
    """Hosts of one letter each, rank by rank."""
    names = tuple(dict.fromkeys(hosts))
    at = np.asarray([names.index(host) for host in hosts], np.int64)
    if gpus is None:
        gpus = [hosts[:rank].count(host) for rank, host in enumerate(hosts)]
    ndarrays = {name: np.asarray(number, np.int64) for name, number in groups.items()}
    return PlaceMap(names, at, np.asarray(gpus, np.int64), ndarrays, (("leaf", 1), ("spine", 1)))


GRID = placed("aabb", tp=[0, 0, 1, 1], dp=[0, 1, 0, 1])


def test_a_slurm_hostfile_has_a_line_per_task() -> None:
    written_file = write(placed("abab"), "slurm-hostfile")
    assert written_file.text == "a\nb\na\nb\n"
    assert "srun -n 4 -N 2 --ntasks-per-node=2 --distribution=arbitrary" in written_file.command


def test_uneven_hosts_get_no_tasks_per_node() -> None:
    assert "ntasks-per-node" not in write(placed("aab"), "slurm-hostfile").command


def test_a_rankfile_names_each_rank_with_its_local_rank() -> None:
    text = write(placed("abab"), "rankfile").text
    assert text.splitlines() == ["rank 0=a slot=0", "rank 1=b slot=0", "rank 2=a slot=1", "rank 3=b slot=1"]


def test_hostfiles_count_slots_in_the_order_of_ranks() -> None:
    assert write(placed("bba"), "hostfile").text == "b slots=2\na slots=1\n"
    assert write(placed("bba"), "mpich").text == "b:2\na:1\n"


@pytest.mark.parametrize("name", ["rankfile", "hostfile"])
def test_mpirun_binds_no_rank_to_one_core(name: str) -> None:
    assert "--bind-to none" in write(placed("bba"), name).command


@pytest.mark.parametrize("name", ["hostfile", "mpich", "torchrun"])
def test_what_fills_host_after_host_cannot_go_back_to_one(name: str) -> None:
    with pytest.raises(UnwritableMapError, match="rank 2 goes back to a"):
        write(placed("aba"), name)


def test_torchrun_gets_node_ranks_and_the_warning_about_dynamic_rendezvous() -> None:
    written_file = write(placed("bbaa"), "torchrun")
    assert written_file.text == "0 b\n1 a\n"
    assert "--nnodes=2 --nproc-per-node=2 --node-rank=N --master-addr=b" in written_file.command
    assert "c10d" in written_file.notes[0]
    assert "b: 2, a: 1" in write(placed("bba"), "torchrun").notes[1]


def test_a_map_against_the_order_of_gpus_says_so() -> None:
    written_file = write(placed("aa", [1, 0]), "rankfile")
    assert "rank 1 has GPU 0 of a after a rank with a higher GPU" in written_file.notes[-1]


def test_a_map_on_the_upper_gpus_says_what_each_host_shows_its_ranks() -> None:
    written_file = write(placed("aabb", [4, 5, 4, 5]), "slurm-hostfile")
    assert "ranks of a sit on GPUs 4,5" in written_file.notes[-1]
    assert "CUDA_VISIBLE_DEVICES=4,5 there, and likewise on 1 more" in written_file.notes[-1]
    assert not any("CUDA" in note for note in write(placed("aabb", [-1, -1, 0, 1]), "slurm-hostfile").notes)


def test_a_rankfile_comes_with_the_hosts_that_mpirun_needs_without_a_scheduler() -> None:
    assert "--host a:2,b:1" in write(placed("aba"), "rankfile").notes[0]
    assert "--hostfile with a line per host" in write(placed("abcdef"), "rankfile").notes[0]


def test_intel_mpi_takes_counts_from_a_machinefile_only() -> None:
    assert "Intel MPI: mpiexec -n 3 -machinefile FILE" in write(placed("bba"), "mpich").notes[0]


def test_rails_are_part_of_the_map() -> None:
    place_map = PlaceMap(("a",), np.zeros(2, np.int64), np.asarray([0, 5]), rail=np.asarray([0, 1]))
    again = read_place_map(Blob("map", to_json(place_map).encode()))
    assert again.rail.tolist() == [0, 1]
    assert read_place_map(Blob("map", to_json(placed("ab")).encode())).rail.size == 0


def test_slurm_is_asked_for_the_nodes_and_the_leaves() -> None:
    lines = write(placed("aabb"), "slurm-flags").text.splitlines()
    assert {"--nodes=2", "--ntasks=4", "--ntasks-per-node=2", "--nodelist=a,b", "--switches=1"} <= set(lines)


def test_blocks_become_segments() -> None:
    place = PlaceMap(("n1", "n2", "n3", "n4"), np.arange(4), np.zeros(4, np.int64), {}, (("nvlink", 2),))
    lines = write(place, "slurm-flags").text.splitlines()
    assert "--segment=2" in lines
    assert "--nodelist=n[1-4]" in lines


def test_pods_are_indexed_by_their_first_rank() -> None:
    text = write(placed("bbaa"), "kubernetes").text
    assert '"index": 0, "node": "b"' in text
    again = read_index_map(Blob("x", text.encode()))
    assert again.hosts == ("b", "a")
    assert again.gpu.tolist() == [0, 1, 0, 1]


def test_groups_become_lists_and_a_mesh() -> None:
    text = write(GRID, "new-group").text
    assert "'tp': [\n        [0, 1],\n        [2, 3],\n" in text
    assert "torch.tensor([0, 1, 2, 3]).reshape((2, 2))" in text
    assert "mesh_dim_names=('dp', 'tp')" in text
    ast.parse(text)


def test_groups_that_form_no_grid_make_no_mesh() -> None:
    written_file = write(placed("aabb", x=[0, 0, 1, 1], y=[0, 0, 1, 1]), "new-group")
    assert "DeviceMesh" not in written_file.text
    assert "no grid" in written_file.notes[0]


def test_a_map_without_groups_has_none_to_write() -> None:
    with pytest.raises(UnwritableMapError, match="no groups"):
        write(placed("ab"), "new-group")


@pytest.mark.parametrize("host", ["a b", "-rf", "a\nb", "", "a;b"])
def test_names_that_a_launcher_would_misread_are_refused(host: str) -> None:
    place = PlaceMap((host,), np.zeros(1, np.int64), np.zeros(1, np.int64))
    with pytest.raises(UnwritableMapError, match="no host name"):
        write(place, "slurm-hostfile")


def test_two_ranks_on_one_gpu_are_refused() -> None:
    with pytest.raises(UnwritableMapError, match="GPU 0 of a has two ranks"):
        write(placed("aa", [0, 0]), "hostfile")


def test_an_assignment_becomes_a_map_with_the_levels_it_lies_in() -> None:
    machines = Cluster(
        ("x", "y", "z"), np.ones((3, 2), bool), np.arange(3), (Level("leaf", np.asarray([0, 0, 1]), 5, 45),), 1, 400
    )
    place_map = map_of(machines, Assignment(np.asarray([4, 5, 0, 1])))
    assert (place_map.hosts, place_map.host.tolist(), place_map.gpu.tolist()) == (
        ("z", "x"),
        [0, 0, 1, 1],
        [0, 1, 0, 1],
    )
    assert place_map.levels == (("leaf", 2),)


maps = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=24).map(lambda letters: placed("".join(letters)))


@given(maps, st.sampled_from(sorted(FORMATS)))
def test_what_is_written_is_the_same_map_when_it_is_read(place: PlaceMap, name: str) -> None:
    """`write` reads back; here the readers are also held against the map for what they can say."""
    read = FORMATS[name][1]
    if name == "new-group" or (name in {"hostfile", "mpich", "torchrun"} and not place.consecutive):
        with pytest.raises(UnwritableMapError, match=r"goes back to|no groups"):
            write(place, name)
        return
    written_file = write(place, name)
    if read is not None:
        again = read(Blob(name, written_file.text.encode()))
        where = [place.hosts[host] for host in place.host.tolist()]
        if again.whole:
            assert [again.hosts[host] for host in again.host.tolist()] == list(dict.fromkeys(where))
        else:
            assert [again.hosts[host] for host in again.host.tolist()] == where


@given(maps, st.randoms(use_true_random=False))
def test_the_canonical_map_keeps_its_groups(place: PlaceMap, random: object) -> None:
    groups = {"tp": np.arange(place.ranks, dtype=np.int64) // 2, "x": np.full(place.ranks, -1, np.int64)}
    groups["x"][0] = 3
    whole = PlaceMap(place.hosts, place.host, place.gpu, groups, place.levels)
    again = read_place_map(Blob("map.json", to_json(whole).encode()))
    assert (again.hosts, again.host.tolist(), again.gpu.tolist()) == (
        whole.hosts,
        whole.host.tolist(),
        whole.gpu.tolist(),
    )
    assert {name: number.tolist() for name, number in again.groups.items()} == {
        name: number.tolist() for name, number in groups.items()
    }
    assert again.levels == whole.levels


@given(st.binary(max_size=200))
def test_no_bytes_break_the_readers(data: bytes) -> None:
    for read in (read_place_map, read_index_map):
        try:
            read(Blob("x", data))
        except InputError:
            continue
