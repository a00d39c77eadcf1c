"""The checks of layouts, one line each: module and class."""

from __future__ import annotations

CHECKS = {
    "PLC003": "order:StagesApart",
    "PLC005": "groups:Fragmented",
}

COMPANIONS = {
    "PLC001": "groups:TensorGroupSplitInLayout",
    "PLC002": "groups:ExpertGroupSplitInLayout",
    "PLC004": "order:PeersOnOtherRailsInLayout",
    "PLC006": "rank_order:RankOrderInLayout",
    "PLC007": "order:RingReturnsInLayout",
}
"""Checks whose page stands with jobs: a layout shows the same fault before the job runs."""
