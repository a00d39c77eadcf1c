"""Path types and widths by NCCL's definitions."""

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.model.links import Link, LinkKind, Path
from topodiag.model.nccl_enums import PathType
from topodiag.model.paths import edges_of_ways, nic_paths, paths_from, way_of
from topodiag.model.provenance import Fact


def link(a: str, b: str, kind: LinkKind, gbs: float = 48.0, now: float | None = None) -> Link:
    return Link(a, b, kind, intended_gbs=Fact(gbs), negotiated_gbs=Fact(gbs if now is None else now))


PCIE, NVLINK, SMP, C2C = LinkKind.PCIE, LinkKind.NVLINK, LinkKind.SMP, LinkKind.C2C


def to_nic(links: list[Link], gpus: int) -> dict[tuple[str, str], Path]:
    """The ways from gpu:0, gpu:1 ... to mlx5_0."""
    vertices = {f"gpu:{number}": number for number in range(gpus)}
    edges = edges_of_ways(map(way_of, links))
    return nic_paths(vertices, ["nic:mlx5_0"], {gpu: paths_from(gpu, edges) for gpu in vertices})


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


def test_a_path_is_as_wide_as_its_narrowest_link() -> None:
    assert paths_from("gpu:0", edges_of_ways(map(way_of, TWO_SOCKETS)))["gpu:4"].negotiated_gbs == 10.0


def test_an_unknown_width_makes_the_path_unknown_not_zero() -> None:
    links = [link("gpu:0", "cpu:0", PCIE), Link("gpu:1", "cpu:0", PCIE)]
    assert paths_from("gpu:0", edges_of_ways(map(way_of, links)))["gpu:1"].negotiated_gbs is None


def test_nvlink_beats_pcie_and_one_gpu_between_makes_it_nvb() -> None:
    links = [*TWO_SOCKETS, link("gpu:0", "gpu:4", NVLINK, 20.0), link("gpu:4", "gpu:3", NVLINK, 20.0)]
    paths = paths_from("gpu:0", edges_of_ways(map(way_of, links)))
    assert paths["gpu:4"].type is PathType.NVL
    assert paths["gpu:3"].type is PathType.NVB


def test_nvlink_never_goes_through_two_gpus() -> None:
    chain = [link(f"gpu:{n}", f"gpu:{n + 1}", NVLINK) for n in range(3)]
    assert "gpu:3" not in paths_from("gpu:0", edges_of_ways(map(way_of, chain)))


def test_pcie_never_goes_through_a_gpu_or_a_nic() -> None:
    links = [link("gpu:0", "gpu:1", NVLINK), link("gpu:1", "pci:a", PCIE), link("nic:x", "pci:a", PCIE)]
    assert "nic:x" not in paths_from("gpu:0", edges_of_ways(map(way_of, links)))


def test_all_gpus_on_nvswitches_are_nvl() -> None:
    links = [link(f"gpu:{n}", "nvs:0", NVLINK, 370.8) for n in range(8)]
    paths = paths_from("gpu:0", edges_of_ways(map(way_of, links)))
    assert {paths[f"gpu:{n}"].type for n in range(1, 8)} == {PathType.NVL}
    assert paths["gpu:7"].negotiated_gbs == 370.8


def test_a_far_nic_is_reached_through_an_nvlink_peer() -> None:
    links = [*TWO_SOCKETS, link("gpu:4", "nvs:0", NVLINK, 370.8), link("gpu:0", "nvs:0", NVLINK, 370.8)]
    path = to_nic(links, 5)["gpu:4", "nic:mlx5_0"]
    assert path.type is PathType.PXN
    assert path.vertices == ("gpu:4", "nvs:0", "gpu:0", "pci:a", "nic:mlx5_0")


def test_a_coherent_gpu_reaches_its_cpus_nic_as_p2c() -> None:
    links = [link("gpu:0", "cpu:0", C2C, 450.0), link("nic:mlx5_0", "cpu:0", PCIE)]
    assert to_nic(links, 1)["gpu:0", "nic:mlx5_0"].type is PathType.P2C


def test_a_gpu_on_a_root_port_of_its_own_is_phb_not_p2c() -> None:
    links = [link("gpu:0", "cpu:0", PCIE), link("nic:mlx5_0", "cpu:0", PCIE)]
    assert to_nic(links, 1)["gpu:0", "nic:mlx5_0"].type is PathType.PHB


def test_of_two_gpus_beside_a_nic_only_its_local_one_lends_it() -> None:
    """NCCL gives each NIC to one GPU; a peer that NVLink joins to the other one alone goes its own way."""
    links = [*TWO_SOCKETS, link("gpu:1", "gpu:4", NVLINK, 20.0)]
    paths = to_nic(links, 5)
    assert paths["gpu:0", "nic:mlx5_0"].type is PathType.PIX
    assert paths["gpu:4", "nic:mlx5_0"].type is PathType.SYS


def test_a_path_to_nowhere_is_no_path() -> None:
    assert to_nic([link("gpu:0", "cpu:0", PCIE)], 1) == {}


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
