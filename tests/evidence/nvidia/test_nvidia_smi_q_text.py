"""What `nvidia-smi -q` says as text: whole, a section of it, quoted, annotated, or cut."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from tests.tables import examples, texts
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.nvidia_smi_q_text import NvidiaSmiQText

TEXTS = texts(__file__)
HEAD = text_of("nvidia-smi-q", "HEAD")

GPU = TEXTS["gpu"]

REPORT = text_of("nvidia-smi-q", "REPORT")


def filled(text: str) -> NodeDraft:
    return draft_by(NvidiaSmiQText(), Blob("q.txt", text.encode()))


def best(entity: Entity, name: str) -> Any:
    return [offer.value for offer in entity.offers.get(name, [])]


def count(entity: Entity, name: str) -> list[Any]:
    return [offer.value for offer in entity.counters.get(name, [])]


@pytest.mark.parametrize("text", ["GPU 0: NVIDIA H100\n", "Attached GPUs in this rack: 8\n", "see nvidia-smi -q\n"])
def test_other_text_about_gpus_is_not_claimed(text: str) -> None:
    assert registry.recognise(text) == ()


@pytest.mark.parametrize("word", ["Event", "Throttle"])
def test_reasons_below_a_reason_are_read_in_both_spellings_of_their_heading(word: str) -> None:
    draft = filled(REPORT.replace("Clocks Event Reasons\n", f"Clocks {word} Reasons\n"))
    assert best(draft.gpu(index=0), "throttle") == [("hw_slowdown", "hw_thermal_slowdown")]


def test_a_fact_points_at_its_line_as_it_is_written() -> None:
    (offer,) = filled(REPORT).pci("0000:1b:00.0").offers["gen"]
    assert offer.origin.text == "Current                   : 1"
    assert REPORT.split("\n")[(offer.origin.line or 0) - 1].strip() == offer.origin.text


@pytest.mark.parametrize("margin", ["> ", "    ", "| ", "\t"])
def test_a_quoted_report_is_the_same_report(margin: str) -> None:
    quoted = "".join(f"{margin}{line}\n" for line in REPORT.split("\n"))
    assert NvidiaSmiQText().recognises(quoted)
    assert best(filled(quoted).pci("0000:43:00.0"), "width") == [8]


def test_some_gpus_of_several_are_known_by_bus_id_alone() -> None:
    draft = filled(HEAD.format(count=8) + GPU.format(bus="52"))
    assert [entity.keys.get("index") for entity in draft.entities("gpu")] == [None]


def test_a_fragment_that_does_not_say_how_many_gpus_there_are_numbers_none() -> None:
    draft = filled("nvidia-smi -q:\n" + GPU.format(bus="52"))
    assert [entity.keys.get("index") for entity in draft.entities("gpu")] == [None]


def test_a_version_that_is_announced_to_go_away_is_read_without_the_announcement() -> None:
    text = "KMD Version  : 610.11\nDriver Version  : 610.11 [Deprecated; use another]\n" + REPORT.partition("CUDA")[2]
    assert best(filled(text).single("os"), "driver_version") == ["610.11", "610.11"]


def test_a_masked_uuid_names_no_gpu() -> None:
    text = HEAD.format(count=1) + GPU.format(bus="1B").replace(
        "GPU-11111111-2222-3333-4444-55555555551B", "GPU-00000000-0000-0000-0000-000000000000"
    )
    assert "uuid" not in filled(text).gpu(index=0).keys


@examples("mode", "word")
def test_a_gpu_that_is_passed_through_tells_a_guest_and_no_other_mode_tells_bare_metal(
    mode: str, word: str | None
) -> None:
    text = HEAD.format(count=1) + GPU.format(bus="1B").replace("Pass-Through", mode)
    assert best(filled(text).single("os"), "virtualization") == ([word] if word else [])


@given(st.integers(0, len(REPORT)))
def test_a_report_cut_anywhere_keeps_the_gpus_before_the_cut(cut: int) -> None:
    whole = REPORT[:cut].count("Processes   ")
    assert len(list(filled(REPORT[:cut]).entities("gpu"))) >= whole


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30))
def test_a_bad_value_costs_that_value_alone(value: str) -> None:
    text = REPORT.replace("Performance State                     : P2", f"Performance State        : {value}")
    draft = filled(text)
    assert best(draft.pci("0000:1b:00.0"), "width") == [8]
    assert best(draft.gpu(index=0), "name") == ["NVIDIA H100 80GB HBM3"]


LINK = TEXTS["link"]


@pytest.mark.parametrize("head", ["GPU 00000000:1B:00.0\n    Product Name                          : Tesla P40\n", ""])
def test_the_link_is_read_without_the_section_of_the_device_around_it(head: str) -> None:
    draft = filled(head + LINK)
    (function,) = draft.entities("pci")
    assert [best(function, name)[0] for name in ("gen", "width")] == [3, 8]


def test_a_line_that_names_its_section_is_read_without_its_head_and_each_is_of_one_gpu() -> None:
    line = "        Remapping Failure Occurred        : {}\n"
    draft = filled(line.format("No") + line.format("Yes") + line.format("No"))
    assert [count(gpu, "remapped_failure") for gpu in draft.entities("gpu")] == [[0], [1], [0]]


def test_links_without_heads_are_of_one_gpu_each() -> None:
    draft = filled(LINK + LINK.replace(": 8x", ": 16x"))
    assert sorted(best(entity, "width")[0] for entity in draft.entities("pci")) == [8, 16]
