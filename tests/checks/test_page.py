"""Every check is registered and documented: a docstring becomes its page."""

import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.checks import registry
from topodiag.checks.page import COMMANDS, SECTIONS, Command, Prose, Section, page_of, parse


@pytest.mark.parametrize("check_id", registry.ids())
def test_every_page_has_all_sections_in_order_and_a_command_to_confirm(check_id: str) -> None:
    check = registry.check_class(check_id)
    assert check is not None
    page = page_of(check)
    assert page.title.startswith(f"{check_id}: ")
    assert [section.name for section in page.sections] == list(SECTIONS)
    assert all(section.blocks for section in page.sections)
    confirm = next(section for section in page.sections if section.name == COMMANDS)
    assert any(isinstance(part, Command) for block in confirm.blocks for part in block)


def test_an_id_is_a_family_and_a_number_and_no_other_has_a_check() -> None:
    assert [name for name in registry.ids() if not re.fullmatch(r"[A-Z0-9]{3}[0-9]{3}", name)] == []
    assert registry.check_class("NVL999") is None


# --- a docstring becomes the page of a check


PAGE = inspect.cleandoc("""
    XYZ001: title

    What it finds
        One sentence
        over two lines.

        - an item that
          goes on
        - another

    How to confirm
        nvidia-smi nvlink -s      every link
        grep -r word /var/log
                                  the line with the reason
        Run these in each container,
        and compare:
        hostname
        NCCL_DEBUG=INFO all_reduce_perf
    """)


def test_prose_is_joined_and_items_keep_their_mark() -> None:
    blocks = parse(PAGE).sections[0].blocks
    assert blocks == (
        (Prose("One sentence over two lines."),),
        (Prose("an item that goes on", "-"), Prose("another", "-")),
    )


def test_a_command_has_its_remark_beside_it_or_far_in_on_the_next_line() -> None:
    (block,) = parse(PAGE).sections[1].blocks
    assert block[0] == Command("nvidia-smi nvlink -s", ("every link",))
    assert block[1] == Command("grep -r word /var/log", ("the line with the reason",))


def test_a_sentence_between_commands_ends_with_its_colon() -> None:
    (block,) = parse(PAGE).sections[1].blocks
    assert block[2:] == (
        Prose("Run these in each container, and compare:"),
        Command("hostname"),
        Command("NCCL_DEBUG=INFO all_reduce_perf"),
    )


def test_a_docstring_that_is_not_there_has_no_sections() -> None:
    assert parse("").sections == ()


@given(st.lists(st.sampled_from([*SECTIONS, "    text", "", "    - item", "    cmd   remark", " " * 24 + "far"])))
def test_any_order_of_lines_is_a_page_that_keeps_every_word(lines: list[str]) -> None:
    sections = parse("\n".join(["XYZ001: title", *lines])).sections
    first = next((at for at, line in enumerate(lines) if line in SECTIONS), len(lines))
    assert sum(len(words(section)) for section in sections) == sum(
        len(line.split()) for line in lines[first:] if line not in SECTIONS
    )


def words(section: Section) -> list[str]:
    names: list[str] = []
    for block in section.blocks:
        for part in block:
            texts = (part.mark, part.text) if isinstance(part, Prose) else (part.command, *part.remarks)
            names += " ".join(texts).split()
    return names
