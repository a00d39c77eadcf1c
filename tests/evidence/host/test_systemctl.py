"""systemd's word on services."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import place, read, recognises, value

SHOW = """\
Result=exit-code
Id=nvidia-fabricmanager.service
LoadState=loaded
ActiveState=failed
SubState=failed

Result=success
Id=opensm.service
LoadState=not-found
ActiveState=inactive
SubState=dead

Result=success
Id=nvidia-persistenced.service
LoadState=loaded
ActiveState=active
SubState=running
"""


def test_each_unit_is_offered_by_name_with_its_state() -> None:
    draft, parsed = read("systemctl", SHOW)
    services = draft.single("services")
    assert {name: value(services, name) for name in services.offers} == {
        "nvidia-fabricmanager": "failed",
        "opensm": "not-found",
        "nvidia-persistenced": "active",
    }
    assert parsed.unread == []


def test_blocks_without_blank_lines_between_them_are_told_apart() -> None:
    draft, _ = read("systemctl", SHOW.replace("\n\n", "\n"))
    assert value(draft.single("services"), "nvidia-fabricmanager") == "failed"
    assert value(draft.single("services"), "nvidia-persistenced") == "active"


def test_a_pasted_status_is_read() -> None:
    text = (
        "● nvidia-fabricmanager.service - NVIDIA fabric manager service\n"
        "     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)\n"
        "     Active: inactive (dead) since Tue 2026-01-06 03:04:05 UTC; 1h ago\n"
        "   Main PID: 4711 (code=exited, status=0/SUCCESS)\n"
    )
    draft, _ = read("systemctl", text)
    assert value(draft.single("services"), "nvidia-fabricmanager") == "inactive"
    assert place(draft.single("services"), "nvidia-fabricmanager")[0] == 3
    assert recognises("systemctl", text)


def test_a_unit_that_could_not_be_found_is_not_found() -> None:
    text = "Unit nvidia-fabricmanager.service could not be found.\n"
    draft, _ = read("systemctl", text)
    assert value(draft.single("services"), "nvidia-fabricmanager") == "not-found"
    assert recognises("systemctl", text)


def test_an_answer_to_is_active_belongs_to_the_unit_that_was_asked() -> None:
    text = "root@gpu-1:~# systemctl is-active nvidia-fabricmanager\nfailed\n"
    draft, _ = read("systemctl", text)
    assert value(draft.single("services"), "nvidia-fabricmanager") == "failed"
    assert recognises("systemctl", text)


def test_a_line_of_list_units_is_read() -> None:
    text = "  openibd.service     loaded active exited  openibd - configure Mellanox devices\n"
    draft, _ = read("systemctl", text)
    assert value(draft.single("services"), "openibd") == "active"
    assert recognises("systemctl", text)


def test_a_state_without_a_unit_is_left() -> None:
    draft, parsed = read("systemctl", "ActiveState=active\nSubState=running\n")
    assert draft.single("services").offers == {}
    assert len(parsed.unread) == 1


def test_a_bad_state_costs_its_unit_only() -> None:
    draft, parsed = read("systemctl", SHOW.replace("ActiveState=failed", "ActiveState=?!"))
    assert value(draft.single("services"), "nvidia-fabricmanager") is None
    assert value(draft.single("services"), "nvidia-persistenced") == "active"
    assert len(parsed.unread) == 1


@pytest.mark.parametrize("text", ["NCCL_DEBUG=INFO\nId=7\n", "active\n", "State: Active\nPhysical state: LinkUp\n"])
def test_other_texts_are_not_taken_for_systemd(text: str) -> None:
    assert not recognises("systemctl", text)


@given(st.text(max_size=100), st.integers(0, len(SHOW)))
def test_any_text_in_the_middle_is_survived(noise: str, at: int) -> None:
    read("systemctl", (SHOW[:at] + noise + SHOW[at:]).encode("utf-8", "replace"))


@given(st.permutations(SHOW.splitlines()))
def test_lines_in_any_order_are_survived_and_name_no_other_units(lines: list[str]) -> None:
    draft, _ = read("systemctl", "\n".join(lines))
    assert set(draft.single("services").offers) <= {"nvidia-fabricmanager", "opensm", "nvidia-persistenced"}
