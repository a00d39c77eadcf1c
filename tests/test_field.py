"""Each text of the field is right, but for those that fixtures/field/misses.toml lists with what is missed."""

import tomllib

import pytest

from benchmarks.field import FOLDER, Case, cases, score

MISSES = tomllib.loads((FOLDER / "misses.toml").read_text())["misses"]
CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_text_of_the_field_is_judged_right(case: Case) -> None:
    made = score(case)
    text = f"said {' '.join(made.ids) or '-'}; false: {made.false}; not read: {made.unread}; refused: {made.refused}"
    if case.name in MISSES:
        assert not made.right, f"{case.name} is right now: take it off fixtures/field/misses.toml"
        return
    assert made.right, text


def test_the_list_of_misses_names_texts_that_are_there_and_says_why() -> None:
    names = {case.name for case in CASES}
    assert set(MISSES) <= names
    assert all(why.strip() for why in MISSES.values())
