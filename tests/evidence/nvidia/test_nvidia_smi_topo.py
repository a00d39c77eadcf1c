"""What `nvidia-smi topo -m` says of a node: words between devices, NIC names, affinity."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from tests.tables import examples
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.nvidia.nvidia_smi_topo import NvidiaSmiTopo, first_node

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"

TEXT = text_of("nvidia-smi-topo", "TEXT")


def fill(text: str, argv: tuple[str, ...] = ()) -> NodeDraft:
    item = Item("nvidia-smi-topo-m", "nvidia-smi-topo", "topo.txt", argv=argv) if argv else None
    return draft_by(NvidiaSmiTopo(), Blob("topo.txt", text.encode(), item))


def label(entity: Entity) -> str:
    keys = entity.keys
    return f"GPU{keys['index']}" if "index" in keys else str(keys.get("label", keys.get("rdma")))


def words(draft: NodeDraft, table: str = "smi") -> dict[tuple[str, str], Any]:
    return {(label(pair.a), label(pair.b)): pair.offer.value for pair in draft.pairs if pair.table == table}


def value(entity: Entity, name: str) -> Any:
    return next((offer.value for offer in entity.offers.get(name, ()) if offer.value is not None), None)


def test_both_triangles_are_offered() -> None:
    table = words(fill(TEXT))
    assert table["GPU0", "GPU1"] == table["GPU1", "GPU0"] == "NV18"
    assert table["GPU1", "NIC0"] == table["NIC0", "GPU1"] == "SYS"
    assert len(table) == 6


def test_a_cell_carries_its_line() -> None:
    origin = fill(TEXT).pairs[0].offer.origin
    assert (origin.source, origin.line) == ("topo.txt", 2)
    assert origin.text.startswith("GPU0")


def test_old_drivers_name_the_columns_by_device_in_any_order() -> None:
    draft = fill("\tGPU0\tmlx5_1\tmlx5_0\nGPU0\t X \tPHB\tPIX\nmlx5_1\tPHB\t X \tSYS\nmlx5_0\tPIX\tSYS\t X \n")
    assert words(draft)["GPU0", "mlx5_0"] == "PIX"
    assert words(draft)["mlx5_1", "mlx5_0"] == "SYS"


@pytest.mark.parametrize("cell", ["-31,64-95", "N/A", "", "0-", "99999999999", "x" * 300])
def test_a_cpu_list_that_is_none_is_unknown(cell: str) -> None:
    gpu = fill(TEXT.replace("0-55,112-167", cell)).gpu(index=0)
    assert value(gpu, "cpu_affinity") is None
    assert gpu.offers["cpu_affinity"][0].why
    assert value(gpu, "numa") == 0


@examples("cell", "node")
def test_the_numa_node_is_the_first_of_a_list_that_names_one(cell: str, node: int | None) -> None:
    assert first_node(cell) == node


def test_old_words_are_given_in_todays() -> None:
    table = words(fill("GPU0 GPU1 GPU2\nGPU0 X PSB SOC\nGPU1 PSB X SOC\nGPU2 SOC SOC X\n"))
    assert table["GPU0", "GPU1"] == "PIX"
    assert table["GPU0", "GPU2"] == "SYS"


def test_numbers_with_gaps_stay_as_they_are() -> None:
    table = words(fill("\tGPU0\tGPU2\tGPU3\nGPU0\t X \tSYS\tSYS\nGPU2\tSYS\t X \tPIX\nGPU3\tSYS\tPIX\t X \n"))
    assert table["GPU2", "GPU3"] == "PIX"
    assert ("GPU0", "GPU1") not in table


@pytest.mark.parametrize("argv", [("nvidia-smi", "topo", "-mp"), ()])
def test_the_pcie_matrix_is_a_table_of_its_own(argv: tuple[str, ...]) -> None:
    text = "GPU0 GPU1\nGPU0 X NODE\nGPU1 NODE X\n"
    draft = fill(text if argv else "$ nvidia-smi topo -mp\n" + text, argv)
    assert words(draft, "pcie") == {("GPU0", "GPU1"): "NODE", ("GPU1", "GPU0"): "NODE"}
    assert not words(draft)


@examples("text")
def test_other_tables_and_prose_are_not_recognised(text: str) -> None:
    assert not NvidiaSmiTopo().recognises(text)
    assert not words(fill(text))


@given(st.lists(st.sampled_from(TEXT.splitlines()), max_size=12), st.integers(0, 80))
def test_any_order_of_lines_invents_no_pair(lines: list[str], cut: int) -> None:
    draft = fill("\n".join(lines)[cut:])
    assert {(label(pair.a), label(pair.b)) for pair in draft.pairs} <= {
        (a, b) for a in ("GPU0", "GPU1", "NIC0") for b in ("GPU0", "GPU1", "NIC0") if a != b
    }


# ---- the corpus, where it is at hand -----------------------------------------------------------------------------

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")
NOT_TOPO = {"025.txt": "TransferBench on AMD"}


@needs_corpus
def test_every_matrix_of_the_corpus_is_recognised_and_no_other_text() -> None:
    source = NvidiaSmiTopo()
    for path in sorted((CORPUS / "topo_m").glob("*.txt")):
        text = Blob(path.name, path.read_bytes()).text
        assert source.recognises(text) is (path.name not in NOT_TOPO), path.name
    for folder in ("links", "logs", "nccl_tests", "pairwise"):
        for path in sorted((CORPUS / folder).glob("*.txt")):
            text = Blob(path.name, path.read_bytes()).text[:65536]
            assert not source.recognises(text), path


@needs_corpus
def test_matrices_of_the_corpus_agree_in_both_triangles() -> None:
    for path in sorted((CORPUS / "topo_m").glob("*.txt")):
        table = words(fill(path.read_text(errors="replace")))
        pairs = [pair for pair, word in table.items() if table.get(pair[::-1], word) != word]
        # Two matrices were drawn from a thread's words and contradict themselves in the drawing.
        assert len(pairs) <= 6, (path.name, pairs)


def cases() -> list[Any]:
    if not CORPUS.is_dir():
        return []
    rows = []
    for path in sorted((CORPUS / "cases").glob("*.json")):
        case = json.loads(path.read_text())
        rows += [
            pytest.param(case.get("facts") or {}, given["text"], id=path.stem)
            for given in case.get("inputs", ())
            if given["kind"] == "topo_m"
        ]
    return rows


@needs_corpus
@pytest.mark.parametrize(("facts", "text"), cases())
def test_the_facts_of_published_cases_are_recovered(facts: dict[str, Any], text: str) -> None:
    draft = fill(text)
    table = words(draft)
    gpus = sorted((gpu for gpu in draft.entities("gpu")), key=lambda gpu: int(gpu.keys["index"]))
    nics = [label(nic) for nic in draft.entities("nic")]
    if "gpus" in facts:
        assert len(gpus) == facts["gpus"]
    if "nics" in facts:
        assert nics == facts["nics"] if isinstance(facts["nics"], list) else len(nics) == facts["nics"]
    if "link" in facts:
        assert {word for (a, b), word in table.items() if a[:3] == b[:3] == "GPU"} == {facts["link"]}
    if "numa" in facts:
        assert [value(gpu, "numa") for gpu in gpus] == facts["numa"]
    if "numa_affinity" in facts:
        seen = [value(gpu, "numa") for gpu in gpus if "numa" in gpu.offers]
        assert seen == [int(cell.split(",")[0]) for cell in facts["numa_affinity"]]
    if "gpu_numa_id" in facts:
        assert [value(gpu, "memory_numa") for gpu in gpus if "memory_numa" in gpu.offers] == facts["gpu_numa_id"]
    if isinstance(facts.get("gpu_nic"), str):
        assert {word for (a, b), word in table.items() if a[:3] == "GPU" and b[:3] == "NIC"} == {facts["gpu_nic"]}
    for gpu, nic in (facts.get("gpu_nic") or {}).items() if isinstance(facts.get("gpu_nic"), dict) else ():
        assert nearest(table, f"GPU{gpu}", nics) == [nic]
    for gpu, nic in facts.get("gpu_nic_pix", {}).items():
        assert nearest(table, f"GPU{gpu}", nics) == [f"NIC{nic}"]
    for gpu, nic in facts.get("nearest", {}).items():
        assert nearest(table, gpu, nics) == [nic]
    for gpu, near in facts.get("closest", {}).items():
        assert nearest(table, gpu, nics) == near
    for pair, word in facts.get("pairs", {}).items():
        a, b = pair.split("-")
        assert table[f"GPU{a}", f"GPU{b}"] == word
    if "cpu_affinity_odd" in facts:
        assert facts["cpu_affinity_odd"] in {value(gpu, "cpu_affinity") for gpu in gpus}


def nearest(table: dict[tuple[str, str], str], gpu: str, nics: list[str]) -> list[str]:
    order = ["PIX", "PXB", "PHB", "NODE", "SYS"]
    best = min(order.index(table[gpu, nic]) for nic in nics)
    return [nic for nic in nics if order.index(table[gpu, nic]) == best]
