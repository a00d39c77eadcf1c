"""The same evidence in another dress gets the same verdict; cut, one that is no more certain."""

from __future__ import annotations

import pytest

from benchmarks.transforms import FOLDER, TRANSFORMS, Answer, is_right, misses

INCIDENT = FOLDER / "a-flap-five-days-ago"
"""A small one. All of them take half an hour: `python benchmarks/transforms.py`."""


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_a_transform_changes_no_verdict(name: str) -> None:
    assert misses(INCIDENT, [name]) == []


SURE = ("failed", "NIC003", "established")


@pytest.mark.parametrize(
    ("name", "before", "after", "right"),
    [
        ("as zip", SURE, SURE, True),
        ("as zip", SURE, ("failed", "NET008", "likely"), False),
        ("as zip", SURE, ("unknown", "", ""), False),
        ("cut at 90 %", SURE, ("unknown", "", ""), True),
        ("cut at 90 %", SURE, ("failed", "NET008", "likely"), True),
        ("cut at 90 %", SURE, ("failed", "GPU002", "established"), True),
        ("cut at 90 %", SURE, ("failed", "NET008", "established"), False),
        ("cut at 90 %", SURE, ("healthy", "", ""), False),
        ("cut at 90 %", ("hung", "JOB003", "hypothesis"), ("hung", "ENV001", "established"), False),
        ("cut at 90 %", SURE, ("failed", "JOB005", "established"), True),
        ("cut at 90 %", ("failed", "NIC003", "hypothesis"), ("failed", "JOB005", "likely"), False),
    ],
)
def test_a_cut_text_may_only_be_less_certain(name: str, before: Answer, after: Answer, right: bool) -> None:
    """GPU002 is another cause of the whole text, and JOB005 follows from the first."""
    assert is_right(name, before, after, ("NIC003", "GPU002"), ("JOB005",)) is right
