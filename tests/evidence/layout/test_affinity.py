"""A CSV matrix of what was measured between GPUs and NICs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.layout.affinity import parse_pairs, read_affinity, read_pairs_file
from topodiag.model.errors import InputError
from topodiag.model.links import Affinity

GOOD = "GB/s,mlx5_0,mlx5_1\nGPU0,48.1,19\nGPU1,19.5,47.9\n"


def test_the_first_line_names_the_nics_and_the_unit() -> None:
    assert read_affinity(GOOD.encode(), "m.csv") == Affinity(
        ("GPU0", "GPU1"), ("mlx5_0", "mlx5_1"), ((48.1, 19.0), (19.5, 47.9)), "GB/s"
    )


@examples("head", "unit")
def test_without_a_unit_it_is_gb_per_second(head: str, unit: str) -> None:
    assert read_affinity(GOOD.replace("GB/s", head).encode(), "m.csv").unit == unit


@examples("text")
def test_what_spreadsheets_write_is_read(text: str) -> None:
    assert read_affinity(text.encode(), "m.csv").values == ((48.1, 19.0), (19.5, 47.9))


@examples("text", "message")
def test_what_is_wrong_is_told_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_affinity(text.encode(), "m.csv")


def test_the_example_of_the_guide_is_read() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "emit.md").read_text()
    block = guide.partition("```text\n")[2].partition("```")[0]
    affinity = read_affinity("\n".join(line.strip() for line in block.splitlines()).encode(), "guide")
    assert (len(affinity.gpus), len(affinity.nics), affinity.unit) == (4, 4, "GB/s")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_matrix_or_refused(data: bytes) -> None:
    try:
        affinity = read_affinity(data, "m.csv")
    except InputError:
        return
    assert all(len(row) == len(affinity.nics) for row in affinity.values)
    assert all(value > 0 for row in affinity.values for value in row)


# --- which device of a guest is which of its host, as users write it ------------------------------------------

PAIRS = {"0000:05:00.0": "0000:1b:00.0", "mlx5_0": "mlx5_3"}


def test_pairs_on_the_command_line() -> None:
    assert parse_pairs("0000:05:00.0=0000:1b:00.0, mlx5_0=mlx5_3,") == PAIRS


@examples("text")
def test_a_file_of_pairs_is_csv(text: str) -> None:
    assert read_pairs_file(text.encode(), "map") == PAIRS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no pair"),
        ("GPU0", "'GPU0' is no pair"),
        ("a,b,c", "'a=b=c' is no pair"),
        ("GPU0,", "'GPU0=' is no pair"),
        ("GPU0,a\nGPU0,b", "GPU0 has two pairs"),
        ('{"a": "b"}', "is no pair"),
    ],
)
def test_what_is_no_pair_is_told(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pairs_file(text.encode(), "map")


def test_a_file_that_is_too_large_is_not_read() -> None:
    with pytest.raises(InputError, match="larger than any map"):
        read_pairs_file(b"a,b\n" * 300_000, "map")


@given(st.binary(max_size=200))
def test_any_bytes_are_pairs_or_refused(data: bytes) -> None:
    try:
        table = read_pairs_file(data, "map")
    except InputError:
        return
    assert all(guest and host for guest, host in table.items())
