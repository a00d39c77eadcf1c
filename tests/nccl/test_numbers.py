"""Attribute values as C reads them: strtol, strtoull and strtof, bus ids, single precision."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.nccl.numbers import bus_id, c_float, c_hex, c_int, c_long, single, spell_bus_id, wrap32


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16", 16),
        ("0x10", 16),
        ("010", 8),
        ("08", 0),
        (" \t-3 lanes", -3),
        ("+7", 7),
        ("", 0),
        ("x16", 0),
        ("0x", 0),
        ("12.5", 12),
        ("9" * 200, (1 << 63) - 1),
        ("-" + "9" * 200, -(1 << 63)),
        ("0" * 200 + "5", 5),
    ],
)
def test_an_integer_is_read_as_strtol_with_base_0_reads_it(text: str, value: int) -> None:
    assert c_long(text) == value


def test_an_int_wraps_at_32_bits() -> None:
    assert c_int("4294967296") == 0
    assert c_int("2147483648") == -(1 << 31)
    assert wrap32(2147483647 + 1) == -(1 << 31)


@examples("text", "value")
def test_a_guid_is_read_as_hexadecimal_of_64_bits(text: str, value: int) -> None:
    assert c_hex(text) == value


@examples("text", "value")
def test_a_bus_id_is_packed_without_its_colons_and_dot(text: str, value: int) -> None:
    assert bus_id(text) == value


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), ("1e3", 1000.0), ("", 0.0), (".", 0.0), ("nan", 0.0)])
def test_a_latency_is_a_plain_number_or_nothing(text: str, value: float) -> None:
    assert c_float(text) == value


@given(st.floats(allow_nan=False, width=64))
def test_single_precision_is_what_a_c_float_keeps(value: float) -> None:
    rounded = single(value)
    assert struct.unpack("f", struct.pack("f", rounded))[0] == rounded
    assert single(rounded) == rounded


@pytest.mark.parametrize("text", ["0000:1b:00.0", "0009:01:00.3", "12ab:ff:1f.7"])
def test_a_bus_id_is_spelt_as_it_was_read(text: str) -> None:
    assert spell_bus_id(bus_id(text)) == text
