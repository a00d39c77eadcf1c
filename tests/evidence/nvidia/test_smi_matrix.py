"""Reading the matrices of `nvidia-smi topo` as people paste them."""

import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.nvidia.smi_matrix import Matrix, path_word, read_matrices
from topodiag.evidence.page import Page

CLEAN = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tPIX\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\t56-111,168-223\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\n"
)


def read(text: str) -> Parsed[int]:
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
    assert read(text).unread_count == 1


@examples("rows")
def test_a_matrix_whose_rows_disagree_is_rejected_as_a_whole(rows: str) -> None:
    text = "GPU0 GPU1 GPU2\n" + rows
    assert cells(text) == {}
    assert read(text).unread[0].line == 1
    assert "the matrix is not used" in read(text).unread[0].why


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
