"""`ibdev2netdev`: which interface belongs to which RDMA port."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.mlnx_ofed import Ibdev2netdev

SHORT = "mlx5_0 port 1 ==> ens1f0np0 (Up)\nmlx5_1 port 1 ==> ens1f1np1 (Down)\n"
VERBOSE = text_of("ibdev2netdev", "VERBOSE")


def filled(text: str) -> NodeDraft:
    return draft_by(Ibdev2netdev(), Blob("i2n.txt", text.encode()))


@pytest.mark.parametrize("piece", [" port 1", "(", "mlx5_0 ", " ", "=="])
def test_a_line_of_one_piece_repeated_is_left(piece: str) -> None:
    text = (piece * 4000)[:4000] + "\n"
    assert Ibdev2netdev().parse(Blob("x", (text * 20).encode())).records == []


@given(st.lists(st.sampled_from((SHORT + VERBOSE).splitlines(keepends=True)), max_size=20), st.integers(0, 40))
def test_repeated_and_cut_lines_are_read_without_an_exception(lines: list[str], cut: int) -> None:
    text = "".join(lines)
    assert len(list(filled(text[: max(0, len(text) - cut)]).entities("nic"))) <= 3
