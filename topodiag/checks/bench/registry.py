"""The checks of measured runs, one line each: module and class."""

from __future__ import annotations

CHECKS = {
    "BEN001": "low:BandwidthLow",
    "BEN002": "latency:LatencyFloorHigh",
    "BEN003": "dip:SweepDips",
    "BEN004": "wrong:WrongResults",
    "BEN005": "placement:PlacementsApart",
    "BEN006": "failed:RunFailed",
    "BEN007": "jitter:IterationsJitter",
}

COMPANIONS = {
    "ENV001": "settings:CostlySettingOfRun",
}
"""By what a run shows of checks whose page another subject carries."""
