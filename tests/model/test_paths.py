"""Paths between devices, also those of the corpus; and the maker of a text's machine."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.path_agreement import CORPUS, Comparison, compare
from tests.checks.jobs import job
from tests.tables import examples, parts
from topodiag.model.bench import BenchDevice, BenchRun
from topodiag.model.devices import Gpu, PciDevice
from topodiag.model.events import Event
from topodiag.model.job import Event as JobEvent
from topodiag.model.links import Link, LinkKind
from topodiag.model.maker import dialect_of, maker_named, makers_of, run_maker
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.paths import edges_of_ways, nic_paths, paths_from, way_of
from topodiag.model.provenance import Fact, Origin
from topodiag.words.dialect import AMD, NVIDIA, Maker


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


# --- the model's paths are NCCL's: types and widths on every machine of the corpus


pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus of NCCL's own decisions is not beside this checkout"
)

ONE_WAY_NVLINKS = "gen011.xml"
"""More NVLinks are listed in one direction than in the other."""


@pytest.fixture(scope="module")
def pairs() -> list[Comparison]:
    return list(compare())


def test_there_is_something_to_agree_with(pairs: list[Comparison]) -> None:
    assert len(pairs) > 5000


def test_every_way_from_a_gpu_to_a_nic_is_nccls(pairs: list[Comparison]) -> None:
    to_nics = [pair for pair in pairs if pair.b.startswith("NET/")]
    assert [nic for nic in to_nics if not (nic.same_type and nic.same_width)] == []


def test_every_way_between_gpus_is_nccls_but_where_nccl_prefers_the_network(pairs: list[Comparison]) -> None:
    between = [pair for pair in pairs if pair.b.startswith("GPU/") and pair.theirs[0] != "NET"]
    assert [comparison for comparison in between if not comparison.same_type] == []
    assert [
        comparison for comparison in between if not comparison.same_width and comparison.file != ONE_WAY_NVLINKS
    ] == []


def event(kind: str) -> Event:
    return Event(kind, "", "", Origin("dmesg", 1))


def function(bus_id: str, vendor: int, code: int) -> dict[str, PciDevice]:
    return {bus_id: PciDevice(bus_id, class_code=Fact(code), vendor=Fact(vendor))}


@examples("name", "maker")
def test_a_product_names_its_maker(name: str, maker: Maker | None) -> None:
    assert maker_named(name) is maker


@pytest.mark.parametrize(
    ("node", "makers"),
    [
        (Node("n"), set()),
        (Node("n", events=(event("amdgpu"),)), {Maker.AMD}),
        (Node("n", events=(event("xid"),)), {Maker.NVIDIA}),
        (Node("n", events=(event("hung-task"),)), set()),
        (Node("n", smi_matrix={("GPU0", "GPU1"): Fact("XGMI")}), {Maker.AMD}),
        (Node("n", smi_matrix={("GPU0", "GPU1"): Fact("NV18")}), {Maker.NVIDIA}),
        (Node("n", smi_matrix={("GPU0", "GPU1"): Fact("NV18"), ("GPU0", "GPU2"): Fact("XGMI")}), set(Maker)),
        (Node("n", gpus=(Gpu(0, name=Fact("AMD Instinct MI250X")),)), {Maker.AMD}),
        (Node("n", pci=function("0000:05:00.0", 0x1002, 0x120000)), {Maker.AMD}),
        # The graphics of a CPU on a node with NVIDIA's GPUs: no GPU of a job.
        (Node("n", pci=function("0000:c4:00.0", 0x1002, 0x030000), makers=frozenset({Maker.NVIDIA})), {Maker.NVIDIA}),
        (Node("n", events=(event("amdgpu"), event("xid"))), {Maker.AMD, Maker.NVIDIA}),
    ],
)
def test_a_node_tells_whose_gpus_it_has(node: Node, makers: set[Maker]) -> None:
    assert makers_of(node) == makers
    assert dialect_of(node) is (AMD if makers == {Maker.AMD} else NVIDIA)


@examples("text", "versions", "dialect")
def test_a_job_without_a_library_is_of_amd_by_its_errors(text: str, versions: tuple[str, ...], dialect: str) -> None:
    events = (JobEvent("cuda", text, ""),)
    assert dialect_of(replace(job(1), events=events, nccl_versions=versions)) is (AMD if dialect == "AMD" else NVIDIA)


def test_a_run_is_of_the_maker_of_its_devices_or_of_its_program() -> None:
    device = BenchDevice(0, "n", 0, name="AMD Instinct MI300X")
    assert run_maker(BenchRun("all_reduce", (), devices=(device,))) is Maker.AMD
    assert run_maker(BenchRun("all_reduce", (), maker=Maker.AMD)) is Maker.AMD
    assert run_maker(BenchRun("all_reduce", ())) is None
