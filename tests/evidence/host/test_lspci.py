"""lspci -vv, whole and in fragments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import place, read, recognises, value, why
from tests.tables import examples, texts

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
TEXTS = texts(__file__)
WHOLE = TEXTS["whole"]


def test_a_functions_link_place_and_driver_are_offered() -> None:
    draft, parsed = read("lspci", WHOLE)
    gpu = draft.pci("0000:16:00.0")
    wanted = {
        "class_code": 0x030200, "vendor": 0x10DE, "description": "NVIDIA Corporation GH100 [H100 SXM5 80GB]",
        "numa": 0, "gen": 4, "width": 8, "max_gen": 5, "max_width": 16, "port_type": "endpoint", "driver": "nvidia",
        "parent": "0000:15:01.0",
    }  # fmt: skip
    assert {name: value(gpu, name) for name in wanted} == wanted
    assert place(gpu, "width")[0] == 18
    assert parsed.unread == []


def test_acs_is_what_is_switched_on_not_what_could_be() -> None:
    draft, _ = read("lspci", WHOLE)
    port = draft.pci("0000:15:01.0")
    assert value(port, "acs") == 0x1D
    assert (value(port, "port_type"), value(port, "iommu_group")) == ("root-port", 7)


def test_a_function_without_acs_among_its_capabilities_has_none() -> None:
    draft, _ = read("lspci", WHOLE)
    assert why(draft.pci("0000:16:00.0"), "acs") == "no ACS capability"


def test_a_text_that_ends_inside_a_function_does_not_say_that_it_has_no_acs() -> None:
    draft, _ = read("lspci", WHOLE[: WHOLE.index("\tKernel driver in use: nvidia")])
    assert why(draft.pci("0000:16:00.0"), "acs") not in ("", "no ACS capability")


def test_a_user_without_root_is_told_that_root_is_needed() -> None:
    text = "1b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\tCapabilities: <access denied>\n"
    draft, _ = read("lspci", text)
    gpu = draft.pci("0000:1b:00.0")
    for name in ("acs", "port_type", "width"):
        assert why(gpu, name).startswith("needs root: ")


@examples("header", "code", "vendor", "device")
def test_a_header_with_or_without_numbers_says_what_it_can(
    header: str, code: int | None, vendor: int | None, device: int | None
) -> None:
    draft, _ = read("lspci", header + "\n")
    entity = draft.pci("0000:1b:00.0")
    assert (value(entity, "class_code"), value(entity, "vendor"), value(entity, "device")) == (code, vendor, device)


def test_suffixes_of_any_pciutils_are_passed_over() -> None:
    text = "1b:00.0 3D controller: NVIDIA Corporation X\n\t\tLnkSta:\tSpeed 8GT/s (ok), Width x16 (overdriven)\n"
    draft, _ = read("lspci", text)
    assert (value(draft.pci("0000:1b:00.0"), "gen"), value(draft.pci("0000:1b:00.0"), "width")) == (3, 16)


def test_width_zero_and_unknown_speed_are_no_reading() -> None:
    text = "1b:00.0 3D controller: NVIDIA Corporation X\n\t\tLnkSta:\tSpeed unknown, Width x0\n"
    draft, _ = read("lspci", text)
    gpu = draft.pci("0000:1b:00.0")
    assert (value(gpu, "gen"), value(gpu, "width")) == (None, None)
    assert "unknown" in why(gpu, "gen")
    assert "x0" in why(gpu, "width")


def test_the_capabilities_of_the_link_partner_and_targets_are_not_taken_for_the_link() -> None:
    text = (
        "1b:00.0 3D controller: NVIDIA Corporation X\n\t\tLnkCap2: Supported Link Speeds: 2.5-32GT/s\n"
        "\t\tLnkCtl2: Target Link Speed: 8GT/s, EnterCompliance-\n\t\tLnkSta2: Current De-emphasis Level: -6dB\n"
    )
    draft, parsed = read("lspci", text)
    assert value(draft.pci("0000:1b:00.0"), "max_gen") is None
    assert parsed.unread == []


def test_a_fragment_without_its_device_gives_records_and_no_offers() -> None:
    text = "    LnkCap: Port #0, Speed 16GT/s, Width x16\n    LnkSta: Speed 2.5GT/s (downgraded), Width x16 (ok)\n"
    draft, parsed = read("lspci", text)
    assert parsed.records == [1, 2]
    assert list(draft.entities("pci")) == []
    assert recognises("lspci", text)


def test_a_bad_line_costs_that_line_only() -> None:
    draft, parsed = read("lspci", WHOLE.replace("Speed 16GT/s (downgraded), Width x8 (downgraded)", "Sp??"))
    gpu = draft.pci("0000:16:00.0")
    assert (value(gpu, "gen"), value(gpu, "max_gen"), value(gpu, "driver")) == (None, 5, "nvidia")
    assert [line.line for line in parsed.unread] == [18]


@examples("text")
def test_other_texts_with_bus_ids_are_not_taken_for_lspci(text: str) -> None:
    assert not recognises("lspci", text)


def test_fragments_from_public_threads_are_read() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    text = (CORPUS / "links" / "017.txt").read_text()
    assert recognises("lspci", text)
    assert len(read("lspci", text)[1].records) == 2
    acs = json.loads((CORPUS / "cases" / "007.json").read_text())["inputs"][0]["text"]
    flags = [fact.value for fact in read("lspci", acs)[0].acs_lines]
    assert flags.count(1) == sum("SrcValid+" in line for line in acs.splitlines())
    assert flags.count(0) == sum("SrcValid-" in line for line in acs.splitlines())


@given(st.text(max_size=120), st.integers(0, len(WHOLE)))
def test_any_text_in_the_middle_is_survived(noise: str, at: int) -> None:
    read("lspci", (WHOLE[:at] + noise + WHOLE[at:]).encode("utf-8", "replace"))


@given(st.permutations(WHOLE.splitlines()))
def test_any_order_of_lines_is_survived(lines: list[str]) -> None:
    draft, _ = read("lspci", "\n".join(lines))
    assert {entity.keys["bus_id"] for entity in draft.entities("pci")} <= {"0000:15:01.0", "0000:16:00.0"}
