"""GPUs by DCGM's fields, by NVML and by the XML of nvidia-smi, and the matrices of nvidia-smi topo as pasted."""

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, node_of, read, recognises, text_of, value
from tests.tables import examples
from topodiag.checks.gpu.lost import GpuLost
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.intake.same_node import host_of_text
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.nvidia.nvidia_words import event_reasons
from topodiag.evidence.nvidia.nvml import Nvml
from topodiag.evidence.nvidia.smi_matrix import Matrix, path_word, read_matrices
from topodiag.evidence.page import Page
from topodiag.model.finding import Status
from topodiag.model.node import Node

TEXT = (Path(__file__).parents[2] / "fuzz" / "texts" / "dcgm-exporter").read_text("utf-8")
UUID = "GPU-0000000{}-c086-568a-9f1a-c1e1c934c44c"


def scrape(host: str = "n1", gpus: int = 8, **fields: dict[int, float | str]) -> str:
    """One scrape: by field, what each GPU shows beside a busy, healthy one."""
    usual: dict[str, float] = {"SM_CLOCK": 1980, "GPU_UTIL": 100, "XID_ERRORS": 0, "ROW_REMAP_FAILURE": 0}
    lines = []
    for name in dict.fromkeys((*usual, *fields)):
        for gpu in range(gpus):
            value = fields.get(name, {}).get(gpu, usual.get(name, 0))
            labels = f'gpu="{gpu}",UUID="{UUID.format(gpu)}",pci_bus_id="00000000:{gpu + 1}0:00.0",Hostname="{host}"'
            lines.append(f'DCGM_FI_DEV_{name}{{{labels},modelName="NVIDIA H100 80GB HBM3"}} {value}')
    return "\n".join(lines) + "\n"


def test_the_text_names_its_host() -> None:
    assert host_of_text(Blob("m", TEXT.encode())) == "n1"


@pytest.mark.parametrize("name", ["nvidia-dcgm-exporter-x7zkq", "0f3a9be2c811"])
def test_the_name_of_a_container_is_no_host(name: str) -> None:
    assert host_of_text(Blob("m", scrape(name).encode())) == ""


@pytest.mark.parametrize("text", [TEXT, scrape(), "   " + scrape(gpus=1)])
def test_a_scrape_is_recognised(text: str) -> None:
    assert recognises("dcgm-exporter", text)


@pytest.mark.parametrize("blank", ["9223372036854775794", "2147483632", "2.147483632e+09", "140737488355328"])
def test_what_a_gpu_does_not_have_is_no_count(blank: str) -> None:
    node = node_of(scrape(ECC_DBE_VOL_TOTAL=dict.fromkeys(range(8), blank)))
    assert all("ecc_volatile_uncorrected" not in gpu.counters for gpu in node.gpus)


def test_lines_of_some_gpus_do_not_make_the_others_lost() -> None:
    assert GpuLost().judge(node_of(scrape(gpus=3))).status is Status.CLEAN


def test_of_several_scrapes_the_last_counts() -> None:
    node = node_of(scrape(SM_CLOCK={2: 345}) + scrape())
    assert node.gpus[2].sm_clock_mhz.value == 1980


def test_parts_of_a_gpu_and_switches_are_left_aside() -> None:
    part = scrape(gpus=1).replace('Hostname="n1"', 'Hostname="n1",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"')
    assert not read("dcgm-exporter", part)[1].records


def test_totals_of_links_are_said_not_to_name_them() -> None:
    node = node_of(TEXT)
    assert any("NVLinks" in gap.what for gap in node.not_observed)
    assert not any("NVLinks" in gap.what for gap in node_of(scrape()).not_observed)


def test_metrics_of_several_hosts_are_no_one_node() -> None:
    _, parsed = read("dcgm-exporter", scrape("n1") + scrape("n2"))
    assert not parsed.records
    assert "2 hosts" in parsed.unread[0].why


def test_two_texts_of_one_machine_are_one_node() -> None:
    node: Node = node_of(TEXT, f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUID.format(0)})\n")
    assert len(node.gpus) == 2


# --- what NVML's answers say, as the collector wrote them: no answer costs another one


GPU: dict[str, Any] = json.loads(text_of("nvml", "GPU0"))


def fill(given: Any) -> NodeDraft:
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    return draft_by(Nvml(), Blob("json/nvml.json", data))


def test_event_reasons_without_a_name_keep_their_number() -> None:
    assert event_reasons(0x204) == ("sw_power_cap", "reason_0x200")
    assert event_reasons(0) == ()


@pytest.mark.parametrize("bad", ["text", 10**30, -5, 1e300, [], {}, True, [[1]], {"error": 3}])
def test_a_wrong_type_costs_only_that_value(bad: Any) -> None:
    usual = fill({"gpus": [GPU]}).gpu(index=0)
    for key in ("minor", "pstate", "compute_capability", "cpu_affinity", "event_reasons", "mig_mode", "remapped_rows"):
        entity = fill({"gpus": [GPU | {key: bad}]}).gpu(index=0)
        assert value(entity, "compute_mode") == "Exclusive_Process"
        assert len(entity.children) == len(usual.children)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"[" * 100_000, b'{"gpus": ' + b"9" * 10_000 + b"}", b"null"])
def test_what_is_no_document_is_left_with_why(data: bytes) -> None:
    fill(data)
    assert Nvml().parse(Blob("x", data)).unread_count <= 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GPU, "error", "0"]), inner),
    max_leaves=12,
)


@given(st.data())
def test_any_value_anywhere_is_survived(data: st.DataObject) -> None:
    pairs = [{"a": 0, "b": 1, "ancestor": 10, "p2p": {"read": 0}}]
    whole: dict[str, Any] = json.loads(text_of("nvml", "DOCUMENT")) | {"pairs": pairs}
    place: Any = whole
    while True:
        key = data.draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else 0
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JSON)
    fill(whole)


# --- What is left of a report of `nvidia-smi -q -x` that is cut, or nested without an end; its readings are in a table
#


V12 = text_of("nvidia-smi-xml", "V12")


def test_a_cut_report_keeps_the_gpus_before_the_cut() -> None:
    draft, parsed = read("nvidia-smi-xml", V12[: V12.index("<uuid>GPU-11111111-2222-3333-4444-555555555551")])
    assert value(draft.gpu(index=0), "compute_mode") == "Exclusive_Process"
    assert value(draft.gpu(index=1), "name") == "NVIDIA H100 80GB HBM3"
    assert value(draft.gpu(index=1), "compute_mode") is None
    assert parsed.unread_count >= 1


def test_endless_nesting_is_refused() -> None:
    draft, _ = read("nvidia-smi-xml", V12.replace("</gpu>", "<a>" * 100_000 + "</gpu>", 1))
    assert value(draft.gpu(index=0), "name") == "NVIDIA H100 80GB HBM3"
    assert value(draft.gpu(index=1), "pstate") == 2


CLEAN = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tPIX\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\t56-111,168-223\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\n"
)


def matrix_of(text: str) -> Parsed[int]:
    page = Page(Blob("topo.txt", text.encode()), NodeDraft())
    read_matrices(page)
    return page.parsed


def matrices(text: str) -> list[Matrix]:
    return read_matrices(Page(Blob("topo.txt", text.encode()), NodeDraft())).matrices


def cells(text: str) -> dict[tuple[str, str], str]:
    return {(row.label, column): word for m in matrices(text) for row in m.rows for column, word in row.cells.items()}


EXPECTED = {
    ("GPU0", "GPU1"): "NV18",
    ("GPU0", "NIC0"): "PIX",
    ("GPU1", "GPU0"): "NV18",
    ("GPU1", "NIC0"): "SYS",
    ("NIC0", "GPU0"): "PIX",
    ("NIC0", "GPU1"): "SYS",
}

HEADER, *ROWS = CLEAN.splitlines()
FORMS = {
    "as printed": CLEAN,
    "underline split in the middle": CLEAN.replace("\tCPU Affinity", "\x1b[0m\t\x1b[4mCPU Affinity"),
    "escape characters lost": CLEAN.replace("\x1b", ""),
    "indented": "".join(f"        {line}\n" for line in CLEAN.splitlines()),
    "commented": "".join(f"# {line}\n" for line in CLEAN.splitlines()),
    "quoted": "".join(f"> {line}\n" for line in CLEAN.splitlines()),
    "backtick before the header": "\t\t`" + CLEAN,
    "tabs made blanks": CLEAN.expandtabs(8),
    "header without separators": "GPU0GPU1NIC0CPU AffinityNUMA AffinityGPU NUMA ID\n" + "\n".join(ROWS),
    "tab and blanks mixed": (
        "\t\tGPU0    GPU1    NIC0\nGPU0\t X      NV18  \tPIX\nGPU1  NV18    X   SYS\nNIC0\tPIX SYS X\n"
    ),
    "in a notebook": "".join(
        f'      "{line}\\n",\n' for line in CLEAN.replace("\x1b", "\\u001b").replace("\t", "\\t").splitlines()
    ),
    "windows line ends": CLEAN.replace("\n", "\r\n"),
    "blank lines between": CLEAN.replace("\n", "\n\n"),
    "markdown, affinity first": (
        "| CPU Affinity | | GPU0 | GPU1 | NIC0 |\n|---|---|---|---|---|\n| 0-55 | GPU0 | X | NV18 | PIX |\n"
        "| 56-111 | GPU1 | NV18 | X | SYS |\n|  | NIC0 | PIX | SYS | X |\n"
    ),
    "other text around": (
        f"$ nvidia-smi\nDriver Version: 570\n$ nvidia-smi topo -m\n{CLEAN}\nLegend:\n\n  X    = Self\n"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_way_of_pasting_gives_the_same_cells(form: str) -> None:
    assert cells(FORMS[form]) == EXPECTED


@pytest.mark.parametrize("form", ["as printed", "tabs made blanks", "in a notebook", "indented", "commented"])
def test_affinity_survives_pasting(form: str) -> None:
    row = matrices(FORMS[form])[0].rows[1]
    assert row.tail == {"cpu": "56-111,168-223", "numa": "1", "memory": "N/A"}


@examples("text", "wanted")
def test_a_matrix_is_read(text: str, wanted: dict[str, Any]) -> None:
    """All `cells` or some of them (`among`), what stands behind the last row (`tail`), the `lines` of the rows, and the
    `tables` with their commands, and whether they are of peer-to-peer ways."""
    found = matrices(text)
    table = {" ".join(pair): word for pair, word in cells(text).items()}
    shown = {
        "cells": table, "among": {pair: table.get(pair) for pair in wanted.get("among", ())},
        "tail": found[0].rows[-1].tail if found else {},
        "lines": [row.line.number for each in found for row in each.rows],
        "tables": [[each.command, each.is_p2p] for each in found],
    }  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted


@pytest.mark.parametrize("word", ["???", "FOO", "NV", "-1"])
def test_an_impossible_cell_costs_only_that_cell(word: str) -> None:
    text = CLEAN.replace("GPU1\tNV18", f"GPU1\t{word}")
    assert cells(text) == {pair: cell for pair, cell in EXPECTED.items() if pair != ("GPU1", "GPU0")}
    assert matrix_of(text).unread_count == 1


@examples("rows")
def test_a_matrix_whose_rows_disagree_is_rejected_as_a_whole(rows: str) -> None:
    text = "GPU0 GPU1 GPU2\n" + rows
    assert cells(text) == {}
    assert matrix_of(text).unread[0].line == 1
    assert "the matrix is not used" in matrix_of(text).unread[0].why


def test_a_rack_of_gpus_is_read() -> None:
    labels = [f"GPU{n}" for n in range(72)] + [f"NIC{n}" for n in range(56)]
    body = ["\t".join([a, *(" X " if a == b else "NV18" for b in labels)]) for a in labels]
    assert len(cells("\n".join(["\t" + "\t".join(labels), *body]))) == 128 * 127


@given(st.data())
def test_cut_doubled_and_shuffled_lines_invent_no_cell(data: st.DataObject) -> None:
    lines = CLEAN.splitlines()
    picked = data.draw(st.lists(st.sampled_from(lines), max_size=8))
    cut = data.draw(st.integers(0, 200))
    text = "\n".join(picked)[: cut or None]
    # A word may be cut to a shorter one (NV18 to NV1); it must stay in its place.
    assert set(cells(text)) <= set(EXPECTED)


@given(
    st.sampled_from(sorted(EXPECTED)),
    st.text(alphabet=string.ascii_letters + string.digits, min_size=1, max_size=12).filter(
        lambda word: path_word(word) is None and word != "X"
    ),
)
@example(("GPU1", "GPU0"), "NUMA")
@example(("GPU0", "GPU1"), "CPU")
def test_a_bad_word_loses_no_other_cell(pair: tuple[str, str], word: str) -> None:
    lines = [line.split("\t") for line in CLEAN.splitlines()]
    columns = ["GPU0", "GPU1", "NIC0"]
    lines[1 + columns.index(pair[0])][1 + columns.index(pair[1])] = word
    table = cells("\n".join("\t".join(line) for line in lines))
    assert {key: cell for key, cell in table.items() if key != pair} == {
        key: cell for key, cell in EXPECTED.items() if key != pair
    }
