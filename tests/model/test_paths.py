"""Path types and widths by NCCL's definitions."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, parts
from topodiag.model.links import Link, LinkKind
from topodiag.model.nccl_enums import PathType
from topodiag.model.paths import edges_of_ways, nic_paths, paths_from, way_of
from topodiag.model.provenance import Fact


def link(a: str, b: str, kind: LinkKind, gbs: float = 48.0, now: float | None = None) -> Link:
    return Link(a, b, kind, intended_gbs=Fact(gbs), negotiated_gbs=Fact(gbs if now is None else now))


PCIE, SMP = LinkKind.PCIE, LinkKind.SMP


TWO_SOCKETS = [
    link("gpu:0", "pci:a", PCIE),
    link("gpu:1", "pci:a", PCIE),
    link("nic:mlx5_0", "pci:a", PCIE),
    link("gpu:2", "pci:b", PCIE),
    link("pci:a", "pci:top", PCIE),
    link("pci:b", "pci:top", PCIE),
    link("pci:top", "cpu:0", PCIE),
    link("gpu:3", "cpu:0", PCIE),
    link("gpu:4", "cpu:1", PCIE),
    link("cpu:0", "cpu:1", SMP, 10.0),
]


@examples("to", "kind")
def test_a_path_is_as_good_as_its_worst_hop(to: str, kind: PathType) -> None:
    assert paths_from("gpu:0", edges_of_ways(map(way_of, TWO_SOCKETS)))[to].type is kind


@examples("two_sockets", "links", "to_nic", "paths")
def test_a_path_is_what_its_links_make_it(
    two_sockets: bool | None, links: list[tuple[str, str, LinkKind, float]], to_nic: bool | None, paths: dict[str, Any]
) -> None:
    own = [link(a, b, kind, gbs) if gbs >= 0 else Link(a, b, kind) for a, b, kind, gbs in links]
    edges = edges_of_ways(map(way_of, [*TWO_SOCKETS, *own] if two_sockets else own))
    if to_nic:
        vertices = {f"gpu:{number}": number for number in range(5)}
        found = nic_paths(vertices, ["nic:mlx5_0"], {gpu: paths_from(gpu, edges) for gpu in vertices})
    else:
        found = {("gpu:0", end): path for end, path in paths_from("gpu:0", edges).items()}
    assert parts(found, paths) == paths


VERTICES = st.sampled_from(["gpu:0", "gpu:1", "gpu:2", "pci:a", "pci:b", "cpu:0", "cpu:1", "nvs:0", "nic:x"])


@given(st.lists(st.builds(link, VERTICES, VERTICES, st.sampled_from(list(LinkKind)), st.floats(1, 500)), max_size=25))
def test_any_graph_gives_simple_paths_over_its_own_links(links: list[Link]) -> None:
    edges = edges_of_ways(map(way_of, links))
    wired = {(cable.a, cable.b) for cable in links} | {(cable.b, cable.a) for cable in links}
    for start in ("gpu:0", "cpu:0", "nic:x"):
        for end, path in paths_from(start, edges).items():
            assert (path.vertices[0], path.vertices[-1]) == (start, end)
            assert len(set(path.vertices)) == len(path.vertices)
            assert set(zip(path.vertices, path.vertices[1:], strict=False)) <= wired
