"""Lines that name a fault and report none."""

from __future__ import annotations

import pytest

from topodiag.evidence.signatures.denial import counts_none, denies

FAULT = "link down"


@pytest.mark.parametrize(
    ("line", "denied"),
    [
        ("mlx5_0: link down", False),
        ("port 3 link down at 12:00", False),
        ("all checked. link down on port 3", False),
        ("no link down was seen", True),
        ("never saw a link down", True),
        ("if the link down message appears, reseat the cable", True),
        ("check for link down", True),
        ("grep -c 'link down' messages", True),
        ("link down: 0", True),
        ("link down events: 0", True),
        ("link down was cleared", True),
        ("link down: 3", False),
        ("# link down", True),
        ("no cable. link down", False),
    ],
)
def test_words_around_a_match_deny_it(line: str, denied: bool) -> None:
    start = line.index(FAULT)
    assert denies(line, start, start + len(FAULT)) is denied


@pytest.mark.parametrize(
    ("fields", "none"), [({"count": 0}, True), ({"count": 3}, False), ({"count": 0, "expected": 8}, False), ({}, False)]
)
def test_a_count_of_zero_reports_nothing(fields: dict[str, int], none: bool) -> None:
    assert counts_none(fields) is none
