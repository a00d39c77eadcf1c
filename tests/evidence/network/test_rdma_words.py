"""The vocabularies of RDMA tools, brought to one."""

from typing import Any

import pytest

from tests.tables import examples
from topodiag.evidence.network import rdma_words as words


@examples("text", "state")
def test_port_states(text: str, state: str | None) -> None:
    assert words.port_state(text) == state


@examples("text", "state")
def test_physical_states(text: str, state: str | None) -> None:
    assert words.phys_state(text) == state


@examples("reader", "text", "value")
def test_what_a_word_means(reader: str, text: str, value: Any) -> None:
    read = getattr(words, reader)(text)
    assert (list(read) if isinstance(read, tuple) else read) == value


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("400 Gb/sec (4X NDR)", (400.0, 4)),
        ("2.5 Gb/sec (1X SDR)", (2.5, 1)),
        ("10 Gb/sec (4X)", (10.0, 4)),
        ("100 Gb/sec (2X HDR)", (100.0, 2)),
        ("0 Gb/sec (4X)", (None, None)),
        ("fast", (None, None)),
    ],
)
def test_sysfs_rates(text: str, rate: tuple[float | None, int | None]) -> None:
    assert words.rate(text) == rate


def test_ibstat_says_no_lanes() -> None:
    assert words.rate(" 40 (FDR10)") == (40.0, None)
    assert words.rate(" 400") == (400.0, None)
    assert words.rate(" 0") == (None, None)


def test_guids_have_one_spelling_and_zeros_are_none() -> None:
    assert words.guid("0xa088c20300551234") == words.guid("A088:C203:0055:1234") == "a088:c203:0055:1234"
    assert words.guid("0x0000000000000000") is None
    assert words.guid("0000:0000:0000:0000") is None


def test_gids_are_equal_whoever_printed_them() -> None:
    from_sysfs = words.gid(3, "0000:0000:0000:0000:0000:ffff:c633:6406", "RoCE v2")
    assert from_sysfs == words.gid(3, "::ffff:198.51.100.6", " RoCE v2") == "3 ::ffff:198.51.100.6 RoCE v2"
    assert words.gid(0, "fe80::1", "IB/RoCE v1") == "0 fe80::1 RoCE v1"
    assert words.gid(1, "::", "") is None
