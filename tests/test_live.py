"""Each job of a real GPU is judged right, but for those that fixtures/live/misses.toml lists with what is missed."""

import tomllib

import pytest

from benchmarks.live import FOLDER, names, score
from topodiag.checks.registry import ids

TRUTHS = tomllib.loads((FOLDER / "truths.toml").read_text())
MISSES = tomllib.loads((FOLDER / "misses.toml").read_text())["misses"]


@pytest.mark.parametrize("name", names())
def test_a_real_job_is_judged_right(name: str) -> None:
    made = score(name)
    if name in MISSES:
        assert not made.right, f"{name} is right now: take it off fixtures/live/misses.toml"
        return
    assert made.right, f"said {' '.join(made.ids) or made.refused or '-'}: {made.headline}"


def test_each_folder_has_a_truth_and_each_truth_a_folder() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == set(TRUTHS)


def test_truths_name_checks_of_the_catalogue_and_misses_say_why() -> None:
    assert {each for truth in TRUTHS.values() for each in truth["first"]} <= set(ids())
    assert set(MISSES) <= set(TRUTHS)
    assert all(why.strip() for why in MISSES.values())
