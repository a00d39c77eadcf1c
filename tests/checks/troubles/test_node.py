"""What the evidence of a node says that is wrong, and no check judges."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of
from topodiag.checks.troubles.node import troubles

GIDS = "DEV     PORT    INDEX   GID                                     IPv4            VER     DEV\n"


@pytest.mark.parametrize(
    ("gid", "told"),
    [
        ("fe80:0000:0000:0000:ba59:9fff:fe11:2233                 v2      ens1np0", True),
        ("0000:0000:0000:0000:0000:ffff:0a00:0003 10.0.0.3        v2      ens1np0", False),
    ],
)
def test_a_roce_port_with_link_local_gids_alone_is_told(gid: str, told: bool) -> None:
    node = node_of(f"{GIDS}mlx5_0  1       0       {gid}\n")
    assert [each.what for each in troubles([node], ())] == (["RoCE port without an address"] if told else [])
