"""Which device of a guest is which of its host, as users write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.layout.affinity import parse_pairs, read_pairs_file
from topodiag.model.errors import InputError

PAIRS = {"0000:05:00.0": "0000:1b:00.0", "mlx5_0": "mlx5_3"}


def test_pairs_on_the_command_line() -> None:
    assert parse_pairs("0000:05:00.0=0000:1b:00.0, mlx5_0=mlx5_3,") == PAIRS


@examples("text")
def test_a_file_of_pairs_is_csv_or_json(text: str) -> None:
    assert read_pairs_file(text.encode(), "map") == PAIRS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no pair"),
        ("{}", "holds no pair"),
        ("GPU0", "'GPU0' is no pair"),
        ("a,b,c", "'a=b=c' is no pair"),
        ("GPU0,", "'GPU0=' is no pair"),
        ("GPU0,a\nGPU0,b", "GPU0 has two pairs"),
        ("{", "is no JSON"),
        ("[" * 5000, "is no JSON"),
        ("[1]", "'1' is no pair"),
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
