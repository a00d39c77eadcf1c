"""`ibdev2netdev`: which interface belongs to which RDMA port."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.mlnx_ofed import Ibdev2netdev

SHORT = "mlx5_0 port 1 ==> ens1f0np0 (Up)\nmlx5_1 port 1 ==> ens1f1np1 (Down)\n"
VERBOSE = (
    "0000:18:00.0 mlx5_0 (MT4129 - MCX75310AAS-NEAT) ConnectX-7 HHHL Adapter card, 400GbE, single-port OSFP   "
    "fw 28.41.1000 port 1 (ACTIVE) ==> ens1np0 (Up)\n"
    "0000:02:00.5 mlx5_2 (MT4116 - NA)  fw 12.23.1020 port 1 (DOWN  ) ==> enp2s0f2 (Down)\n"
)


def filled(text: str) -> NodeDraft:
    return draft_by(Ibdev2netdev(), Blob("i2n.txt", text.encode()))


def test_a_port_has_its_interface_and_the_interface_its_state() -> None:
    draft = filled(SHORT)
    assert draft.nic(rdma="mlx5_0").child("port", 1).offers["netdev"][0].value == "ens1f0np0"
    assert draft.netdev("ens1f0np0").offers["operstate"][0].value == "up"
    assert draft.netdev("ens1f1np1").offers["operstate"][0].value == "down"


def test_columns_widened_by_another_tool_read_the_same() -> None:
    text = "mlx5_0   port  1  ==>  ens1f0np0    (Up)\nmlx5_10  port  1  ==>  ens1f1np1    (Down)  # spare\n"
    assert Ibdev2netdev().recognises(text)
    draft = filled(text)
    assert draft.netdev("ens1f1np1").offers["operstate"][0].value == "down"
    assert draft.nic(rdma="mlx5_10").child("port", 1).offers["netdev"][0].value == "ens1f1np1"


def test_the_short_form_says_nothing_of_the_port_state() -> None:
    assert set(filled(SHORT).nic(rdma="mlx5_1").child("port", 1).offers) == {"netdev"}


def test_the_verbose_form_adds_function_type_firmware_and_state() -> None:
    nic = filled(VERBOSE).nic(bus_id="0000:18:00.0")
    assert nic.keys == {"rdma": "mlx5_0", "bus_id": "0000:18:00.0"}
    assert {name: offers[0].value for name, offers in nic.offers.items()} == {
        "hca_type": "MT4129",
        "firmware": "28.41.1000",
    }
    assert nic.child("port", 1).offers["state"][0].value == "ACTIVE"
    assert filled(VERBOSE).netdev("ens1np0").offers["bus_id"][0].value == "0000:18:00.0"


def test_a_state_padded_with_blanks_is_read() -> None:
    assert filled(VERBOSE).nic(rdma="mlx5_2").child("port", 1).offers["state"][0].value == "DOWN"


def test_words_after_the_state_do_no_harm() -> None:
    draft = filled("mlx5_0 port 1 ==> ib0 (Up) (o2ib)\n")
    assert draft.nic(rdma="mlx5_0").child("port", 1).offers["netdev"][0].value == "ib0"


def test_a_line_of_another_shape_is_left_and_the_rest_kept() -> None:
    parsed = Ibdev2netdev().parse(Blob("x", ("cat: no such file\n" + SHORT).encode()))
    assert (len(parsed.records), [left.line for left in parsed.unread]) == (2, [1])


def test_only_its_own_form_is_recognised() -> None:
    assert Ibdev2netdev().recognises("# ibdev2netdev\n" + SHORT)
    assert Ibdev2netdev().recognises(VERBOSE)
    for other in (
        "a port 1 ==> b",
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1 \n",
        "x ==> y (Up)\n",
    ):
        assert not Ibdev2netdev().recognises(other)


@pytest.mark.parametrize("piece", [" port 1", "(", "mlx5_0 ", " ", "=="])
def test_a_line_of_one_piece_repeated_is_left(piece: str) -> None:
    text = (piece * 4000)[:4000] + "\n"
    assert Ibdev2netdev().parse(Blob("x", (text * 20).encode())).records == []


@given(st.lists(st.sampled_from((SHORT + VERBOSE).splitlines(keepends=True)), max_size=20), st.integers(0, 40))
def test_repeated_and_cut_lines_are_read_without_an_exception(lines: list[str], cut: int) -> None:
    text = "".join(lines)
    assert len(list(filled(text[: max(0, len(text) - cut)]).entities("nic"))) <= 3
