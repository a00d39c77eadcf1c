"""The same evidence in another dress gets the same verdict; cut, one that is no more certain."""

from benchmarks.transforms import FOLDER, TRANSFORMS, Answer, is_right, misses
from tests.tables import examples

INCIDENT = FOLDER / "a-flap-five-days-ago"
"""A small one. All of them take half an hour: `python benchmarks/transforms.py`."""


def test_no_transform_changes_a_verdict() -> None:
    assert misses(INCIDENT, list(TRANSFORMS)) == []


KNOWN = {"GPU002": "likely", "JOB005": "hypothesis"}
"""GPU002 is another cause of the whole text, and JOB005 follows from the first."""


@examples("name", "before", "after", "right")
def test_a_cut_text_may_only_be_less_certain(name: str, before: Answer, after: Answer, right: bool) -> None:
    assert is_right(name, before, after, {**KNOWN, before[1]: before[2]}) is right
