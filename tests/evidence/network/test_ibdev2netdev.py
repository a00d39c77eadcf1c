"""`ibdev2netdev`: which interface belongs to which RDMA port."""

import pytest

from topodiag.evidence.interface import Blob
from topodiag.evidence.network.rdma_tools import Ibdev2netdev


@pytest.mark.parametrize("piece", [" port 1", "(", "mlx5_0 ", " ", "=="])
def test_a_line_of_one_piece_repeated_is_left(piece: str) -> None:
    text = (piece * 4000)[:4000] + "\n"
    assert Ibdev2netdev().parse(Blob("x", (text * 20).encode())).records == []
