"""One map in every launcher's words, and read back."""

import ast
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.emit.place_formats import FORMATS, write
from topodiag.emit.place_map import UnwritableMapError, to_json
from topodiag.evidence.interface import Blob
from topodiag.evidence.layout.rank_files import read_place_map
from topodiag.model.cluster import Assignment, Cluster, Level, PlaceMap, map_of


def placed(hosts: str, gpus: list[int] | None = None, **groups: list[int]) -> PlaceMap:
    """Hosts of one letter each, rank by rank."""
    names = tuple(dict.fromkeys(hosts))
    at = np.asarray([names.index(host) for host in hosts], np.int64)
    if gpus is None:
        gpus = [hosts[:rank].count(host) for rank, host in enumerate(hosts)]
    ndarrays = {name: np.asarray(number, np.int64) for name, number in groups.items()}
    return PlaceMap(names, at, np.asarray(gpus, np.int64), ndarrays, (("leaf", 1), ("spine", 1)))


GRID = placed("aabb", tp=[0, 0, 1, 1], dp=[0, 1, 0, 1])


@examples("hosts", "gpus", "form", "text", "lines", "command", "notes", "lacks")
def test_a_map_is_written_for_a_launcher(
    *,
    hosts: str,
    gpus: list[int] | None,
    form: str,
    text: str | None,
    lines: list[str] | None,
    command: str | None,
    notes: list[tuple[int, str]] | None,
    lacks: str | None,
) -> None:
    made = write(placed(hosts, gpus), form)
    assert text in {None, made.text}
    assert set(lines or ()) <= set(made.text.splitlines())
    assert (command or "") in made.command
    assert [words for at, words in notes or () if words not in made.notes[at]] == []
    assert lacks is None or lacks not in "\n".join([made.command, *made.notes])


@examples("hosts", "gpus", "form", "why")
def test_a_map_that_a_launcher_cannot_take_is_refused(hosts: str, gpus: list[int] | None, form: str, why: str) -> None:
    with pytest.raises(UnwritableMapError, match=why):
        write(placed(hosts, gpus), form)


def test_rails_are_part_of_the_map() -> None:
    place_map = PlaceMap(("a",), np.zeros(2, np.int64), np.asarray([0, 5]), rail=np.asarray([0, 1]))
    again = read_place_map(Blob("map", to_json(place_map).encode()))
    assert again.rail.tolist() == [0, 1]
    assert read_place_map(Blob("map", to_json(placed("ab")).encode())).rail.size == 0


def test_blocks_become_segments() -> None:
    place = PlaceMap(("n1", "n2", "n3", "n4"), np.arange(4), np.zeros(4, np.int64), {}, (("nvlink", 2),))
    lines = write(place, "slurm-flags").text.splitlines()
    assert "--segment=2" in lines
    assert "--nodelist=n[1-4]" in lines


def test_pods_are_indexed_by_their_first_rank() -> None:
    text = write(placed("bbaa"), "kubernetes").text
    assert '"index": 0, "node": "b"' in text
    pods = json.loads(text)["pods"]
    assert [(pod["node"], pod["ranks"], pod["gpus"]) for pod in pods] == [("b", [0, 1], [0, 1]), ("a", [2, 3], [0, 1])]


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


@pytest.mark.parametrize("host", ["a b", "-rf", "a\nb", "", "a;b"])
def test_names_that_a_launcher_would_misread_are_refused(host: str) -> None:
    place = PlaceMap((host,), np.zeros(1, np.int64), np.zeros(1, np.int64))
    with pytest.raises(UnwritableMapError, match="no host name"):
        write(place, "slurm-hostfile")


def test_an_assignment_becomes_a_map_with_the_levels_it_lies_in() -> None:
    machines = Cluster(
        ("x", "y", "z"), np.ones((3, 2), bool), np.arange(3), (Level("leaf", np.asarray([0, 0, 1]), 5, 45),), 1, 400
    )
    place_map = map_of(machines, Assignment(np.asarray([4, 5, 0, 1])))
    shown = (place_map.hosts, place_map.host.tolist(), place_map.gpu.tolist())
    assert shown == (("z", "x"), [0, 0, 1, 1], [0, 1, 0, 1])
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
    shown = (again.hosts, again.host.tolist(), again.gpu.tolist())
    assert shown == (whole.hosts, whole.host.tolist(), whole.gpu.tolist())
    assert {name: number.tolist() for name, number in again.groups.items()} == {
        name: number.tolist() for name, number in groups.items()
    }
    assert again.levels == whole.levels
