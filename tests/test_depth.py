"""What the suite leaves to a deep run: the same in every run, and nothing that is never asked."""

import pytest

from tests import depth
from tests.depth import some_of


@pytest.fixture(autouse=True)
def _not_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "DEEP", False)


def test_every_case_is_asked_something_and_every_value_is_asked_of_some_case() -> None:
    names = [f"gen{number:03}" for number in range(48)]
    asked = [some_of((27, 28, 30), name) for name in names]
    assert {len(numbers) for numbers in asked} == {1}
    assert {value for numbers in asked for value in numbers} == {27, 28, 30}
    assert asked == [some_of((27, 28, 30), name) for name in names]


def test_a_few_values_lose_none_and_no_values_are_none() -> None:
    assert some_of(("a",), "any") == ("a",)
    assert len(some_of(("a", "b"), "any")) == 1
    assert some_of((), "any") == ()


def test_what_is_always_asked_whole_is_asked_whole_and_a_deep_run_asks_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert some_of(range(9), "any", always=True) == tuple(range(9))
    monkeypatch.setattr(depth, "DEEP", True)
    assert some_of(range(9), "any") == tuple(range(9))
