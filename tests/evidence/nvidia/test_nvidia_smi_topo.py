"""What `nvidia-smi topo` says of pairs: the ways between devices, and the peer-to-peer ways that the driver allows."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, label, text_of, value
from tests.tables import examples
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.nvidia.nvidia_smi_links import NvidiaSmiTopo, capabilities, first_node

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"

TEXT = text_of("nvidia-smi-topo", "TEXT")


def fill(text: str) -> NodeDraft:
    return draft_by(NvidiaSmiTopo(), Blob("topo.txt", text.encode()))


def words(draft: NodeDraft) -> dict[tuple[str, str], Any]:
    return {(label(pair.a), label(pair.b)): pair.offer.value for pair in draft.pairs if pair.table == "smi"}


def test_a_cell_carries_its_line() -> None:
    origin = fill(TEXT).pairs[0].offer.origin
    assert (origin.source, origin.line) == ("topo.txt", 2)
    assert origin.text.startswith("GPU0")


@examples("cell", "node")
def test_the_numa_node_is_the_first_of_a_list_that_names_one(cell: str, node: int | None) -> None:
    assert first_node(cell) == node


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


P2P = text_of("nvidia-smi-topo", "P2P")


def offered(text: str, argv: str = "") -> dict[tuple[str, int, int], str]:
    item = Item("p", "nvidia-smi-p2p", "p2p.txt", argv=tuple(argv.split())) if argv else None
    draft = draft_by(NvidiaSmiTopo(), Blob("p2p.txt", text.encode(), item))
    return {
        (pair.table, int(pair.a.keys["index"]), int(pair.b.keys["index"])): pair.offer.value for pair in draft.pairs
    }


@pytest.mark.parametrize("text", ["topo -m", "topo -p2p x", "topo -p2p", "-p2p readonly", ""])
def test_other_options_name_nothing(text: str) -> None:
    assert capabilities(text) == ()


@given(st.integers(0, len(P2P)))
def test_a_text_cut_anywhere_gives_no_other_words(cut: int) -> None:
    whole = offered(P2P, "x -p2p r")
    assert {
        key: word for key, word in offered(P2P[:cut], "x -p2p r").items() if key[0] == "p2p:read"
    }.keys() <= whole.keys()


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")
def test_the_published_case_is_recovered() -> None:
    case = json.loads((CORPUS / "cases" / "247.json").read_text())
    text = next(given["text"] for given in case["inputs"] if given["kind"] == "topo_p2p")
    assert set(offered(text).values()) == {case["facts"]["p2p"]}
    assert NvidiaSmiTopo().recognises((CORPUS / "topo_m" / "020.txt").read_text())
