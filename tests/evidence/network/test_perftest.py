"""perftest: the device and the link layer that a test used, and nothing that it measured."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, values
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.perftest import Perftest

TEXT = """\
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx4_0
 Link type       : Ethernet
 65536      415500           0.00               36.31              0.069247
"""


def test_the_device_has_the_link_layer_that_the_test_names() -> None:
    assert Perftest().recognises(TEXT)
    nic = draft_by(Perftest(), Blob("bw.txt", TEXT.encode())).nic(rdma="mlx4_0")
    assert values(nic.child("port", 1)) == {"link_layer": "Ethernet"}


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    Perftest().parse(Blob("any.txt", TEXT.encode() + data))
