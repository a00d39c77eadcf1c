"""Every check is registered and documented. That it has its cases: tests/test_cases_replay.py."""

import re

import pytest

from topodiag.checks import registry
from topodiag.checks.page import COMMANDS, SECTIONS, Command, page_of


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
