"""`ibstatus`: what is read of each port, and what its failures cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, recognises, value, why
from topodiag.evidence import registry

TEXT = """\
Infiniband device 'mlx5_0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0a0a:0a0a:0a0a:0a0a
\tbase lid:\t 0x1a2
\tsm lid:\t\t 0x1
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 400 Gb/sec (4X NDR)
\tlink_layer:\t InfiniBand

Infiniband device 'mlx5_1' port 2 status:
\tdefault gid:\t 0000:0000:0000:0000:0000:0000:0000:0000
\tbase lid:\t 0x0
\tsm lid:\t\t 0x0
\tstate:\t\t 1: DOWN
\tphys state:\t 3: Disabled
\trate:\t\t 25 Gb/sec (1X EDR)
\tlink_layer:\t Ethernet
"""


def test_the_text_is_told_from_its_header() -> None:
    assert registry.recognise(TEXT) == ("ibstatus",)
    assert not recognises("ibstatus", "CA 'mlx5_0'\n\tCA type: MT4129\n")


def test_a_port_has_its_state_rate_and_addresses() -> None:
    draft, parsed = read("ibstatus", TEXT)
    port = draft.nic(rdma="mlx5_0").child("port", 1)
    expected = {
        "state": "ACTIVE", "phys_state": "LinkUp", "rate_gbps": 400.0, "lanes": 4, "speed_name": "NDR",
        "link_layer": "InfiniBand", "lid": 418, "sm_lid": 1,
    }  # fmt: skip
    assert {name: value(port, name) for name in expected} == expected
    assert parsed.unread == []


def test_each_block_speaks_of_its_own_port() -> None:
    draft, _ = read("ibstatus", TEXT)
    port = draft.nic(rdma="mlx5_1").child("port", 2)
    assert (value(port, "state"), value(port, "phys_state"), value(port, "lanes")) == ("DOWN", "Disabled", 1)


@pytest.mark.parametrize("margin", ["> ", "    ", "| "])
def test_a_quoted_paste_reads_the_same(margin: str) -> None:
    draft, _ = read("ibstatus", "".join(f"{margin}{line}\n" for line in TEXT.split("\n")))
    assert value(draft.nic(rdma="mlx5_0").child("port", 1), "rate_gbps") == 400.0


def test_lines_before_any_port_and_of_an_impossible_port_belong_to_none() -> None:
    draft, parsed = read(
        "ibstatus", "\tstate: 4: ACTIVE\nInfiniband device 'mlx5_0' port 999 status:\n\tstate: 4: ACTIVE\n"
    )
    assert list(draft.entities("nic")) == []
    assert [line.line for line in parsed.unread] == [1, 2, 3]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30))
def test_a_bad_value_costs_that_value_alone(word: str) -> None:
    draft, _ = read("ibstatus", TEXT.replace("400 Gb/sec (4X NDR)", f"fast {word}"))
    port = draft.nic(rdma="mlx5_0").child("port", 1)
    assert (value(port, "rate_gbps"), value(port, "state")) == (None, "ACTIVE")
    assert why(port, "rate_gbps")


@given(st.binary(max_size=300), st.integers(0, len(TEXT)))
def test_any_bytes_are_survived(noise: bytes, cut: int) -> None:
    read("ibstatus", TEXT[:cut].encode() + noise)


@given(st.lists(st.sampled_from(TEXT.split("\n")), max_size=40))
def test_lines_in_any_order_are_survived(lines: list[str]) -> None:
    read("ibstatus", "\n".join(lines))
