"""Foreign text is made harmless, and lines of a page are whole or counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tables import examples
from topodiag.report.interface import Style
from topodiag.report.text import Page
from topodiag.words.text import MAX_CHARS, clean


@pytest.mark.parametrize(
    ("raw", "safe"),
    [
        ("NVIDIA H100", "NVIDIA H100"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("tab\tline\nend", "tab line end"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\ud800", "\\ud800"),
        ("[bold]x[/]", "[bold]x[/]"),
    ],
)
def test_what_could_steer_a_terminal_is_shown_as_an_escape(raw, safe):
    assert clean(raw) == safe


def test_ascii_spells_known_signs_and_escapes_the_rest():
    assert clean("18 × 26.6 – µs é", ascii_only=True) == "18 x 26.6 - us \\xe9"


def test_long_text_is_cut_with_a_mark():
    assert clean("a" * (2 * MAX_CHARS)) == "a" * (MAX_CHARS - 1) + "…"


@given(st.text(max_size=300), st.text(max_size=60), st.integers(40, 90))
def test_wrapped_lines_keep_to_the_width(body, prefix, width):
    page = Page(Style(width=width))
    page.add(prefix, body)
    assert all(cell_len(line.plain) <= width for line in page.lines)


def test_a_command_is_whole_on_one_line() -> None:
    page = Page(Style(width=66))
    page.entry("fix", "reset all of its GPUs together (`nvidia-smi --gpu-reset -i 0,1,2`), then look again")
    page.add_do("look at what the kernel said of it: `dmesg | grep -iE 'xid|sxid'`")
    assert [line.plain for line in page.lines] == [
        "  fix        reset all of its GPUs together",
        "             (`nvidia-smi --gpu-reset -i 0,1,2`), then look again",
        "  do         look at what the kernel said of it:",
        "             `dmesg | grep -iE 'xid|sxid'`",
    ]


@pytest.mark.parametrize("lines_before", range(14, 20))
def test_a_command_at_the_end_of_the_screen_is_whole_or_counted(lines_before: int) -> None:
    page, rest = Page(Style(width=40)), Page(Style(width=40))
    for _ in range(lines_before):
        rest.add("seen")
    rest.entry("next", "set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV")
    for _ in range(9):
        rest.add("more")
    page.add_rest(rest)
    shown = "\n".join(line.plain for line in page.lines)
    assert ("NCCL_DEBUG=INFO" in shown) == ("SUBSYS=INIT,ENV" in shown)
    assert "more lines (-v)" in shown


def test_a_command_for_which_no_line_is_left_is_counted() -> None:
    page, rest = Page(Style(width=40)), Page(Style(width=40))
    for _ in range(19):
        page.add("seen")
    rest.entry("next", "set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV")
    page.add_rest(rest)
    assert [line.plain for line in page.lines][-2:] == ["seen", "  … 2 more lines (-v)"]


@examples("rows", "end")
def test_rows_of_a_table_are_all_there_or_counted_below_the_last(rows: int, end: list[str]) -> None:
    page, rest = Page(Style(width=60)), Page(Style(width=60))
    rest.add("node  ranks")
    for line in (*(f"node {at}" for at in range(rows)), "assumed 1", "assumed 2"):
        rest.add(line)
    page.add_rest(rest, rows=rows, of="node")
    assert [line.plain for line in page.lines][-2:] == end
