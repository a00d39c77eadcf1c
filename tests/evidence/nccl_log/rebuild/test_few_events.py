"""Of a log that tells of more events than any job has, the first of each shape are kept."""

from __future__ import annotations

import pytest

from topodiag.evidence.nccl_log.rebuild.events_order import few


class Lines:
    """Rows of events, each with a text."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def word(self, name: str, row: int) -> str:
        return "APP" if name == "level" else self.texts[row]


LINES = Lines(*(f"rank {rank} died" for rank in range(10)), "port down", *(f"retry {at}" for at in range(5)))


@pytest.mark.parametrize(
    ("most", "kept"),
    [
        (16, list(range(16))),
        (15, [*range(9), *range(10, 16)]),
        (7, [0, 1, 2, 10, 11, 12, 13]),
        (3, [0, 10, 11]),
        (2, [0, 10]),
    ],
)
def test_a_line_that_stands_once_is_kept_beside_those_that_repeat(most: int, kept: list[int]) -> None:
    assert few(LINES, range(16), most) == kept  # type: ignore[arg-type]
