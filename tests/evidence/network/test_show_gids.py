"""`show_gids`: the GID tables of RoCE ports."""

from __future__ import annotations

from tests.evidence.filled import draft_by, values
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.mlnx_ofed import ShowGids

TEXT = """\
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
mlx5_0\t1\t4\tfe80:0000:0000:0000:c025:a1ff:fe31:2e81\t\t\tv1\tnet1
mlx5_0\t1\t7\t0000:0000:0000:0000:0000:ffff:0a9c:8184\t10.156.129.132  \tv2\tnet1
n_gids_found=2
"""


def test_each_port_has_its_table_layer_and_interface() -> None:
    assert ShowGids().recognises(TEXT)
    nic = draft_by(ShowGids(), Blob("gids.txt", TEXT.encode())).nic(rdma="mlx5_0")
    assert values(nic.child("port", 1)) == {
        "link_layer": "Ethernet",
        "netdev": "net1",
        "gids": ("4 fe80::c025:a1ff:fe31:2e81 RoCE v1", "7 ::ffff:10.156.129.132 RoCE v2"),
    }
