"""The same evidence in another dress gets the same verdict; cut, one that is no more certain."""

from __future__ import annotations

import pytest

from benchmarks.transforms import FOLDER, TRANSFORMS, Answer, is_right, misses

INCIDENT = FOLDER / "a-flap-five-days-ago"
"""A small one. All of them take half an hour: `python benchmarks/transforms.py`."""


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_a_transform_changes_no_verdict(name: str) -> None:
    assert misses(INCIDENT, [name]) == []


SURE, GUESS = ("failed", "NIC003", "established"), ("hung", "NIC003", "hypothesis")
KNOWN = {"GPU002": "likely", "JOB005": "hypothesis"}
"""GPU002 is another cause of the whole text, and JOB005 follows from the first."""


@pytest.mark.parametrize(
    ("name", "before", "after", "right"),
    [
        ("as zip", SURE, SURE, True),
        ("as zip", SURE, ("failed", "NET008", "likely"), False),
        ("as zip", SURE, ("unknown", "", ""), False),
        ("cut at 90 %", SURE, SURE, True),
        ("cut at 90 %", SURE, ("unknown", "", ""), True),
        ("cut at 90 %", SURE, ("slow", "NIC003", "likely"), True),
        ("cut at 90 %", SURE, ("failed", "NET008", "likely"), True),
        ("cut at 90 %", SURE, ("failed", "NET008", "established"), False),
        ("cut at 90 %", SURE, ("failed", "GPU002", "likely"), True),
        ("cut at 90 %", SURE, ("failed", "GPU002", "established"), False),
        ("cut at 90 %", SURE, ("failed", "JOB005", "hypothesis"), True),
        ("cut at 90 %", SURE, ("failed", "JOB005", "likely"), False),
        ("cut at 90 %", SURE, ("healthy", "", ""), False),
        ("cut at 90 %", ("healthy", "", ""), ("healthy", "", ""), True),
        ("cut at 90 %", ("healthy", "", ""), ("at_risk", "HST001", "hypothesis"), False),
        ("cut at 90 %", GUESS, ("hung", "NIC003", "likely"), False),
        ("cut at 90 %", GUESS, ("hung", "ENV001", "hypothesis"), False),
        ("cut at 90 %", GUESS, ("failed", "JOB005", "hypothesis"), False),
        ("cut at 90 %", GUESS, ("refused", "", ""), False),
        ("cut at 90 %", ("unknown", "", ""), GUESS, False),
    ],
)
def test_a_cut_text_may_only_be_less_certain(name: str, before: Answer, after: Answer, right: bool) -> None:
    assert is_right(name, before, after, {**KNOWN, before[1]: before[2]}) is right
