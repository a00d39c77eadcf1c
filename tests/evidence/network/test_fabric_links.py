"""iblinkinfo: links of the fabric below what both their ends can do, from either end, with and without its head."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of, recognises
from topodiag.checks.nic.rate import NicPortSlow
from topodiag.model.finding import Status

ROW = '0x0c42a103002f1b2c  41  1[  ] ==( {} Gbps Active/  LinkUp)==>  12  17[  ] "leaf-03" ( {})\n'
BACK = '12  17[  ] ==( {} Gbps Active/  LinkUp)==>  0x0c42a103002f1b2c  41  1[  ] "n07 mlx5_2" ( {})\n'
DOWN = '12  18[  ] ==(                Down/ Polling)==>             [  ] "" ( )\n'
HALF, WHOLE = ("2X 106.25", "Could be 4X"), ("4X 106.25", "")


def told(text: str) -> list[str]:
    return [finding.message for finding in NicPortSlow().judge(node_of(text)).findings]


def test_a_link_below_both_of_its_ends_is_found_once_though_both_show_it() -> None:
    text = "CA: n07 mlx5_2:\n      " + ROW.format(*HALF) + "Switch: 0x248a0703009c0f10 leaf-03:\n" + BACK.format(*HALF)
    assert recognises("ib-links", text)
    assert told(text) == ["n07 mlx5_2 port 1 to leaf-03 port 17: runs at 2X 106.25 Gbps, both ends can do 4X"]


def test_a_row_that_grep_left_alone_is_named_by_its_lid() -> None:
    assert told(ROW.format("4X 25.78125", "Could be 53.125 Gbps")) == [
        "LID 41 port 1 to leaf-03 port 17: runs at 4X 25.78125 Gbps, both ends can do 53.125 Gbps"
    ]


@pytest.mark.parametrize("text", [ROW.format(*WHOLE), ROW.format(*WHOLE) + DOWN])
def test_links_at_what_they_can_do_are_clean_and_ports_without_a_cable_are_none(text: str) -> None:
    assert NicPortSlow().judge(node_of(text)).status is Status.CLEAN


def test_links_that_run_alike_are_one_finding() -> None:
    rows = "".join(ROW.format(*HALF).replace(" 41 ", f" {41 + at} ").replace(" 17[", f" {at + 1}[") for at in range(12))
    (message,) = told(rows)
    assert message.endswith("and 4 more: run at 2X 106.25 Gbps, both ends can do 4X")
