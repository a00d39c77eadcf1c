"""Reading the matrices of `nvidia-smi topo` as people paste them."""

import string

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


def test_numa_alone_is_the_numa_affinity() -> None:
    assert matrices("\tGPU0\tGPU1\tNUMA\nGPU0\t X \tSYS\t0\nGPU1\tSYS\t X \t1\n")[0].rows[1].tail == {"numa": "1"}


def test_missing_rows_cost_only_themselves() -> None:
    assert cells("\tGPU0\tGPU1\tGPU2\nGPU2\tSYS\tPIX\t X \n") == {("GPU2", "GPU0"): "SYS", ("GPU2", "GPU1"): "PIX"}


def test_a_row_cut_short_keeps_the_cells_it_has() -> None:
    assert cells("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPIX") == {("GPU0", "GPU1"): "PIX"}


def test_nic_rows_without_columns_are_read() -> None:
    text = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \nNIC0\tNODE\tSYS\n"
    assert cells(text)["NIC0", "GPU0"] == "NODE"


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


def test_repeated_tabs_are_read_right() -> None:
    text = "\t\tGPU0\t\tGPU1\t\tNIC0\nGPU0\t\tX\t\tNV18\t\tPIX\nGPU1\t\tNV18\t\tX\t\tSYS\nNIC0\t\tPIX\t\tSYS\t\tX\n"
    assert cells(text) == EXPECTED


def test_nvlink_counts_that_differ_by_direction_are_kept_for_the_checks() -> None:
    text = "GPU0 GPU1\nGPU0 X NV18\nGPU1 NV12 X\n"
    assert cells(text) == {("GPU0", "GPU1"): "NV18", ("GPU1", "GPU0"): "NV12"}


def test_two_tables_in_one_text_stay_apart_with_their_commands() -> None:
    text = (
        "$ nvidia-smi topo -m\nGPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n"
        "$ nvidia-smi topo -p2p r\n GPU0 GPU1\nGPU0 X OK\nGPU1 OK X\n"
    )
    first, second = matrices(text)
    assert (first.is_p2p, first.command) == (False, "-m")
    assert (second.is_p2p, second.command) == (True, "-p2p r")


def test_lines_are_counted_from_one() -> None:
    assert [row.line.number for row in matrices("\n\n" + CLEAN)[0].rows] == [4, 5, 6]


def test_a_rack_of_gpus_is_read() -> None:
    labels = [f"GPU{n}" for n in range(72)] + [f"NIC{n}" for n in range(56)]
    body = ["\t".join([a, *(" X " if a == b else "NV18" for b in labels)]) for a in labels]
    assert len(cells("\n".join(["\t" + "\t".join(labels), *body]))) == 128 * 127


@given(st.text(alphabet=string.printable + "\x1bé|", max_size=400))
def test_any_text_is_survived(text: str) -> None:
    read(text)


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


def test_an_x_between_two_devices_leaves_the_matrix_out() -> None:
    """It stands where a device meets itself, so cells are missing and nobody knows which."""
    assert cells(CLEAN.replace("NV18", "X", 1)) == {}
