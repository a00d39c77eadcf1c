"""The same evidence in another dress gets the same verdict; cut, one that is no more certain."""

from __future__ import annotations

import pytest

from benchmarks.transforms import FOLDER, TRANSFORMS, misses

INCIDENT = FOLDER / "a-flap-five-days-ago"
"""A small one. All of them take half an hour: `python benchmarks/transforms.py`."""


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_a_transform_changes_no_verdict(name: str) -> None:
    assert misses(INCIDENT, [name]) == []
