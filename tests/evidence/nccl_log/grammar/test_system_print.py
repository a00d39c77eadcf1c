"""NCCL's print of a node reads the same from every version; cut and torn rows cost themselves only."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, parts, texts, with_texts
from topodiag.evidence.nccl_log.grammar.system_print import read_print, vertex_name
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import SystemLink
from topodiag.model.provenance import Origin

TEXTS = texts(__file__)
OLD = TEXTS["old"]

MIXED = TEXTS["mixed"]

NEW = (
    MIXED.replace("- CPU/0", "- CPU/0-0")
    .replace("- CPU/1", "- CPU/0-1")
    .replace("NVS/0", "NVS/0-0")
    .replace("NET/A (946DAE", "NET/0-a (0/946dae")
    .replace("NET/A", "NET/0-a")
    .replace("CPU/0 (2", "CPU/0-0 (2")
    .replace("GPU/1B000 :", "GPU/0-1b000 :")
)


@pytest.mark.parametrize("text", [OLD.replace("NET/10", "NET/A"), MIXED, NEW], ids=["to 2.20", "2.21", "2.24 on"])
def test_all_versions_read_the_same(text: str) -> None:
    system = read_print(text, Origin("log", 7)).system
    assert (system.max_gbs, system.total_gbs) == (12.0, 264.0)
    assert [device.name for device in system.of_kind("GPU")] == ["GPU/0-1b000", "GPU/0-43000"]
    first, second = system.of_kind("GPU")
    assert (first.rank, first.parent, second.rank, second.parent) == (0, "PCI/0-17000", 1, "CPU/0-1")
    (net,) = system.of_kind("NET")
    assert (net.id, net.parent, net.speed_gbs, net.port, net.guid) == (
        "0-a", "NIC/0-18000", 12.5, 1, "946dae0300a00000",
    )  # fmt: skip
    assert [cpu.numbers for cpu in system.of_kind("CPU")] == [(1, 1, 2)] * 2
    assert system.devices["CPU/0-1"].parent == ""
    assert SystemLink("GPU/0-1b000", "NVS/0-0", "NVL", 264.0) in system.links
    assert SystemLink("CPU/0-0", "CPU/0-1", "SYS", 10.0) in system.links
    assert system.origin == Origin("log", 7)
    assert dict(system.paths) == {
        ("GPU/0-1b000", "GPU/0-1b000"): PathType.LOC,
        ("GPU/0-1b000", "GPU/0-43000"): PathType.NVL,
        ("GPU/0-1b000", "CPU/0-0"): PathType.PHB,
        ("GPU/0-1b000", "NET/0-a"): PathType.PIX,
        ("NET/0-a", "GPU/0-1b000"): PathType.PIX,
    }


@examples("text", "shown", "entries")
def test_a_print_says_what_its_row_says(text: str, shown: dict[str, Any], entries: int | None) -> None:
    made = read_print(with_texts(text, __file__))
    assert parts(made, shown) == shown
    assert entries is None or len(made.tuning) == entries


@examples("row", "expected")
def test_a_path_printed_dis_up_to_2_20_goes_over_the_network(row: str, expected: PathType) -> None:
    """Their table of names lacks NET, so that its place is taken by DIS: the two GPUs are not disconnected."""
    system = read_print(row).system
    assert system.paths["GPU/0-6000", "GPU/0-7000"] is expected


def test_ids_of_any_spelling_are_one() -> None:
    assert vertex_name("GPU", "1B000") == vertex_name("GPU", "0-1b000") == "GPU/0-1b000"
    assert vertex_name("GPU", "10000000001B000") == vertex_name("GPU", "1-1b000")
    assert vertex_name("CPU", "FFFFFFFFFFFFFFFF") == vertex_name("CPU", "0-ffffffffffffffff")


_PIECES = st.sampled_from(
    ["GPU/", "NET/0-0 ", "1B000", "(0/", "5000.0/LOC)", " :", "+ PCI[", "24.0] - ", "Pattern 4,", "|", "AllReduce |",
     "=== System : maxBw ", "===", "9" * 400, "\n", " " * 14, "٣", "-", "CPU/0 (1/1/2)", "\x00"]
)  # fmt: skip


@given(st.lists(_PIECES | st.text(max_size=5), max_size=30).map("".join))
def test_any_text_is_read(text: str) -> None:
    read_print(text)


@given(st.sampled_from([OLD, MIXED, NEW]), st.integers(0, 900), st.integers(0, 60), st.text(max_size=8))
def test_a_torn_print_is_read(text: str, at: int, size: int, noise: str) -> None:
    read_print(text[:at] + noise + text[at + size :])
