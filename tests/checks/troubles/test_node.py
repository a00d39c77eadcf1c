"""What the evidence of a node says that is wrong, and no check judges."""

from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.checks.troubles.node import troubles

GIDS = "DEV     PORT    INDEX   GID                                     IPv4            VER     DEV\n"


@examples("gid", "told")
def test_a_roce_port_with_link_local_gids_alone_is_told(gid: str, told: bool) -> None:
    node = node_of(f"{GIDS}mlx5_0  1       0       {gid}\n")
    assert [each.what for each in troubles([node], ())] == (["RoCE port without an address"] if told else [])
