"""What the evidence of a node says that is wrong, and no check judges: "no faults found" never stands beside it."""

from pathlib import Path

from tests.evidence.filled import node_of
from tests.printed import drawn
from tests.tables import examples, texts
from topodiag.app.scan import scan
from topodiag.checks.troubles.node import troubles
from topodiag.model.result import Result
from topodiag.report.table import draw_result

GIDS = "DEV     PORT    INDEX   GID                                     IPv4            VER     DEV\n"


@examples("gid", "told")
def test_a_roce_port_with_link_local_gids_alone_is_told(gid: str, told: bool) -> None:
    node = node_of(f"{GIDS}mlx5_0  1       0       {gid}\n")
    assert [each.what for each in troubles([node], ())] == (["RoCE port without an address"] if told else [])


def judged(text: str, folder: Path) -> Result:
    (folder / "dmesg.txt").write_text(text)
    return scan([str(folder / "dmesg.txt")])


TEXTS = texts(__file__)
P2P = TEXTS["p2p"]


def test_a_peer_to_peer_table_alone_is_judged_and_drawn(tmp_path: Path) -> None:
    result = judged(P2P, tmp_path)
    (trouble,) = result.troubles()
    assert "2 of 3 pairs" in trouble.text
    assert "CNS" in trouble.text
    page = drawn(draw_result, result, width=100)
    assert "refused by the chipset" in " ".join(page.split())
    assert "no faults found" not in page
