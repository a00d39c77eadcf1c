"""`nvidia-smi` alone, and `nvidia-smi -L`: what is read of the table and the list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, value
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity

TITLE = "| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |"
RULE = "+-----------------------------------------+------------------------+----------------------+"
HEADING = """\
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|"""
ROWS = """\
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    3 |
| N/A   31C    P2             91W /  700W |     100MiB /  81559MiB |     45%   E. Process |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 80GB ...          Off  |   00000000:43:00.0 Off |                   On |
| N/A   32C    P0             90W /  700W |      55MiB /  81559MiB |     N/A      Default |
|                                         |                        |              Enabled |"""
MIG = """\
| MIG devices:                                                                            |
|  0    2   0   0  |              22MiB / 40448MiB    | 16      0 |  3   0    3    0    3 |"""
PROCESSES = """\
|    0   N/A  N/A            4711      C   python                                   90MiB |"""
TABLE = "\n".join([RULE, TITLE, RULE, HEADING, ROWS, RULE, "", RULE, MIG, RULE, PROCESSES, RULE, ""])

LIST = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555550)
  MIG 3g.40gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555555555550)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555551)
"""


def count(entity: Entity, name: str) -> list[Any]:
    return [offer.value for offer in entity.counters.get(name, [])]


@pytest.mark.parametrize("text", [TABLE, LIST])
def test_the_table_and_the_list_are_told_from_their_lines(text: str) -> None:
    assert registry.recognise(text) == ("nvidia-smi",)


def test_a_table_in_the_middle_of_other_words_is_not_claimed() -> None:
    assert registry.recognise(f"gpu-001: {TITLE}\n") == ()


def test_a_list_with_links_below_its_gpus_is_nvlinks_text() -> None:
    text = "GPU 0: NVIDIA H100 (UUID: GPU-11111111-2222-3333-4444-555555555550)\n\t Link 0: 26.562 GB/s\n"
    assert registry.recognise(text) == ("nvidia-smi-nvlink",)


def test_each_gpu_of_the_table_has_its_bus_id_and_state() -> None:
    draft, _ = read("nvidia-smi", TABLE)
    gpu = draft.gpu(index=0)
    assert gpu.keys["bus_id"] == "0000:1b:00.0"
    expected = {
        "name": "NVIDIA H100 80GB HBM3", "persistence": True, "pstate": 2, "utilization": 45,
        "compute_mode": "Exclusive_Process", "mig": False,
        "power_w": 91.0, "power_limit_w": 700.0, "memory_used_mib": 100,
    }  # fmt: skip
    assert {name: value(gpu, name) for name in expected} == expected
    assert count(gpu, "ecc_volatile_uncorrected") == [3]
    assert len(list(draft.entities("gpu"))) == 2


def test_what_the_table_does_not_say_is_unknown() -> None:
    draft, _ = read("nvidia-smi", TABLE)
    gpu = draft.gpu(index=1)
    assert (value(gpu, "name"), value(gpu, "utilization"), count(gpu, "ecc_volatile_uncorrected")) == (None, None, [])
    assert (value(gpu, "persistence"), value(gpu, "mig")) == (False, True)


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


def test_the_list_names_gpus_by_uuid_and_no_mig_devices() -> None:
    draft, _ = read("nvidia-smi", LIST)
    assert [entity.keys for entity in draft.entities("gpu")] == [
        {"index": 0, "uuid": "GPU-11111111-2222-3333-4444-555555555550"},
        {"index": 1, "uuid": "GPU-11111111-2222-3333-4444-555555555551"},
    ]


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
