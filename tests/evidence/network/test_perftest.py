"""perftest: the device and the link layer that a test used are rows of a table of readings."""

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, text_of


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    read("rdma-perftest", text_of("rdma-perftest", "TEXT").encode() + data)


def test_a_cell_that_a_control_character_broke_is_read_without_an_exception() -> None:
    text = text_of("rdma-perftest", "TEXT")
    assert "65536" in text
    read("rdma-perftest", text.replace("65536", "6\x015536").encode())
