"""What `nvidia-smi topo` says of pairs: the ways between devices, and the peer-to-peer ways that the driver allows."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, label, node_of, read, text_of, value
from tests.pasted import loud, said
from tests.tables import examples
from topodiag.checks.pcie.links import NarrowPcieLink, SlowPcieLink
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.nvidia.nvidia_smi_links import NvidiaSmiNvlink, NvidiaSmiTopo, capabilities, first_node
from topodiag.evidence.nvidia.nvidia_words import distinct, distinct_uuids

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


# --- What the checks of PCIe links say of `nvidia-smi --query-gpu`; what is read of it is in a table of readings


HEADER = "index, pcie.link.width.current, pcie.link.width.max, utilization.gpu [%]"


def test_a_gpu_without_a_bus_id_has_its_pcie_link_all_the_same() -> None:
    machine = node_of(f"{HEADER}\n0, 16, 16, 97 %\n1, 8, 16, 98 %\n2, 16, 16, 97 %\n")
    function = machine.pci_of(machine.gpus[1])
    assert (function.width.value, function.max_width.value) == (8, 16)
    findings = NarrowPcieLink().judge(machine).findings
    assert [finding.where.gpus for finding in findings] == [("GPU1",)]


def test_gen1_of_a_gpu_at_rest_is_no_fault() -> None:
    header = "index, pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%]"
    assert not SlowPcieLink().judge(node_of(f"{header}\n0, 1, 4, 0 %\n1, 1, 4, 0 %\n")).findings


# --- values of nvidia-smi's table that no check asks about: they leave open whether all is well, and are no fault

SOUND = "| N/A   31C    P0              61W / 400W |      3MiB / 81559MiB |      0%      Default |"
HEAD = "| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |\n"


def table(*second: str, name: str = "A100-SXM4-80GB") -> str:
    rows = (
        f"|   {index}  {name}   On  | 00000000:{index + 1:02X}:00.0 Off |                    0 |\n{text}\n"
        for index, text in enumerate(second)
    )
    return HEAD + "".join(rows)


@examples("row", "words")
def test_an_odd_value_is_quoted_and_leaves_open_whether_all_is_well(row: str, words: str, tmp_path: Path) -> None:
    answer = said(tmp_path, table(SOUND, row, SOUND))
    assert answer["verdict"]["state"] == "unknown"
    assert any(
        f"GPU1: {words}" in each or f"GPU1: its compute mode {words}" in each
        for each in answer["verdict"]["not_explained"]
    )
    assert not loud(tmp_path, table(SOUND, row, SOUND))


@examples("text")
def test_values_that_sound_machines_show_leave_nothing_open(text: str, tmp_path: Path) -> None:
    assert not said(tmp_path, text)["verdict"]["not_explained"]


# --- what `nvidia-smi -q` says as text, quoted, cut or with a bad value; its readings are rows of a table -----

REPORT = text_of("nvidia-smi-q", "REPORT")


@given(st.integers(0, len(REPORT)))
def test_a_report_cut_anywhere_keeps_the_gpus_before_the_cut(cut: int) -> None:
    whole = REPORT[:cut].count("Processes   ")
    assert len(list(read("nvidia-smi-q", REPORT[:cut])[0].entities("gpu"))) >= whole


# --- What `nvidia-smi nvlink` says of each link, whichever option was asked for


UUIDS = ["GPU-11111111-2222-3333-4444-555555555555", "GPU-11111111-2222-3333-4444-666666666666"]
LINKS = text_of("nvidia-smi-nvlink", "HEAD")


def filled_of(text: str) -> NodeDraft:
    return draft_by(NvidiaSmiNvlink(), Blob("nvlink.txt", text.encode()))


def link(draft: NodeDraft, gpu: int, number: int) -> Entity:
    return draft.gpu(index=gpu).child("nvlink", number)


def test_what_masks_and_repetitions_leave_of_ids_is_distinct() -> None:
    assert distinct_uuids([(0, "GPU-redacted"), (1, UUIDS[0]), (2, UUIDS[1].upper())]) == {
        1: UUIDS[0],
        2: UUIDS[1].upper(),
    }
    assert distinct([(0, "0000:1b:00.0"), (1, "0000:1B:00.0"), (2, "0000:2b:00.0")]) == {2: "0000:2b:00.0"}


@given(st.text(max_size=60))
def test_any_words_behind_a_link_leave_the_other_links_alone(words: str) -> None:
    text = LINKS + " Link 0: " + "".join(words.splitlines()) + "\n Link 1: 25 GB/s\n"
    assert value(link(filled_of(text), 0, 1), "line_gbs") == 25.0


@needs_corpus
def test_published_texts_are_recognised_and_read_without_a_rest() -> None:
    source = NvidiaSmiNvlink()
    number = 0
    for path in sorted((CORPUS / "links").glob("*.txt")):
        blob = Blob(path.name, path.read_bytes())
        is_nvlink = "nvlink" in "".join(blob.text.splitlines()[:2])
        assert source.recognises(blob.text) is is_nvlink, path.name
        if is_nvlink:
            assert source.parse(blob).unread == [], path.name
            number += 1
    assert number >= 8


@needs_corpus
@pytest.mark.parametrize(("number", "gpu"), [("022", 3), ("027", 0)])
def test_the_facts_of_published_links_are_recovered(number: str, gpu: int) -> None:
    case = json.loads((CORPUS / "cases" / f"{number}.json").read_text())
    facts = case["facts"]
    draft = filled_of(next(given["text"] for given in case["inputs"] if given["kind"] == "nvlink"))
    children = draft.gpu(index=gpu).children
    down = [number for (_, number), child in children.items() if value(child, "state") == "inactive"]
    assert len(children) == facts["links"]
    assert down == facts["inactive"]
    assert facts.get("gpu_model") in (None, value(draft.gpu(index=gpu), "name"))
    rates = {value(child, "line_gbs") for child in children.values()} - {None}
    assert rates == {facts.get("speed_GBps", 26.562)}
