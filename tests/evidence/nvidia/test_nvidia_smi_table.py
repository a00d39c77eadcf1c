"""`nvidia-smi` alone, and `nvidia-smi -L`: what is read of the table and the list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, text_of, value
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity

TITLE = "| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |"
TABLE = text_of("nvidia-smi", "TABLE")

LIST = text_of("nvidia-smi", "LIST")


def count(entity: Entity, name: str) -> list[Any]:
    return [offer.value for offer in entity.counters.get(name, [])]


@pytest.mark.parametrize("text", [TABLE, LIST])
def test_the_table_and_the_list_are_told_from_their_lines(text: str) -> None:
    assert registry.recognise(text) == ("nvidia-smi",)


def test_a_table_in_the_middle_of_other_words_is_not_claimed() -> None:
    assert registry.recognise(f"gpu-001: {TITLE}\n") == ()


@pytest.mark.parametrize(
    "title",
    [TITLE, "| NVIDIA-SMI 610.11                 KMD Version: 570.86.15     CUDA UMD Version: 12.8     |"],
)
def test_the_drivers_versions_are_read_in_both_spellings(title: str) -> None:
    draft, _ = read("nvidia-smi", TABLE.replace(TITLE, title))
    os = draft.single("os")
    assert (value(os, "driver_version"), value(os, "cuda_version")) == ("570.86.15", "12.8")


def test_of_a_table_printed_twice_the_first_is_read() -> None:
    draft, _ = read("nvidia-smi", TABLE + TABLE.replace("     45%", "     99%").replace("  3 |", "  9 |"))
    gpu = draft.gpu(index=0)
    assert (value(gpu, "utilization"), count(gpu, "ecc_volatile_uncorrected")) == (45, [3])


@pytest.mark.parametrize(
    ("line", "index", "words"),
    [
        ("Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost.  Reboot ...", None, "GPU is lost"),
        ("Unable to determine the device handle for GPU2: 0000:41:00.0: Unknown Error", 2, "Unknown Error"),
        ("Unable to determine the device handle for GPU0000:41:00.0: Unknown Error", None, "Unknown Error"),
    ],
)
def test_a_gpu_that_does_not_answer_is_lost_in_the_tools_words(line: str, index: int | None, words: str) -> None:
    draft, _ = read("nvidia-smi", line + "\n")
    (gpu,) = draft.entities("gpu")
    assert (gpu.keys.get("index"), gpu.keys["bus_id"], value(gpu, "lost")) == (index, "0000:41:00.0", words)


def test_the_table_that_follows_a_lost_gpu_leaves_its_number_out() -> None:
    lost = "Unable to determine the device handle for GPU1: 0000:2F:00.0: Unknown Error\n"
    draft, _ = read("nvidia-smi", lost + TABLE.replace("|   1  NVIDIA", "|   2  NVIDIA"))
    assert sorted((entity.keys["index"], entity.keys["bus_id"]) for entity in draft.entities("gpu")) == [
        (0, "0000:1b:00.0"),
        (1, "0000:2f:00.0"),
        (2, "0000:43:00.0"),
    ]


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="|"), max_size=20)
)
def test_a_bad_value_costs_that_value_alone(word: str) -> None:
    draft, _ = read("nvidia-smi", TABLE.replace("                    3 |", f"   x{word} |"))
    assert count(draft.gpu(index=0), "ecc_volatile_uncorrected") == []
    assert value(draft.gpu(index=0), "pstate") == 2


@pytest.mark.parametrize("uuid", ["GPU-1", "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "GPU-****"])
def test_a_masked_uuid_hides_no_gpu(uuid: str) -> None:
    draft, _ = read("nvidia-smi", f"GPU 3: NVIDIA H100 80GB HBM3 (UUID: {uuid})\n")
    (gpu,) = draft.entities("gpu")
    assert (gpu.keys["index"], value(gpu, "name")) == (3, "NVIDIA H100 80GB HBM3")
    assert "uuid" not in gpu.keys


def test_a_row_of_windows_is_known_without_the_title() -> None:
    row = "|   0  NVIDIA GeForce RTX 3090      WDDM  | 00000000:01:00.0  On |                  N/A |\n"
    assert registry.recognise(row) == ("nvidia-smi",)
    draft, _ = read("nvidia-smi", row)
    assert [value(gpu, "name") for gpu in draft.entities("gpu")] == ["NVIDIA GeForce RTX 3090"]
