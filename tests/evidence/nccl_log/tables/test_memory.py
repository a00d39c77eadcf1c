"""Memory that is free inside the process goes back to the system, where the C library can."""

import ctypes

import pytest

from topodiag.evidence.nccl_log.tables.saved import give_back


def test_the_c_library_is_asked_to_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Library:
        def malloc_trim(self, kept: int) -> None:
            asked.append(kept)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library())
    give_back()
    assert asked == [0]


@pytest.mark.parametrize("error", [OSError, TypeError, AttributeError])
def test_where_it_cannot_nothing_happens(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def library(_: object) -> None:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", library)
    give_back()
