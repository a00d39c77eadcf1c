"""Of a log that tells of more events than any job has, the first of each shape are kept."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.rebuild.events import few
from topodiag.evidence.nccl_log.tables.resolve import merge_facts
from topodiag.evidence.nccl_log.tables.resolve_rows import first_of_each, shapes_of


class Lines:
    """Rows of events, each with a text."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def word(self, name: str, row: int) -> str:
        return "APP" if name == "level" else self.texts[row]


LINES = Lines(*(f"rank {rank} died" for rank in range(10)), "port down", *(f"retry {at}" for at in range(5)))


@examples("most", "kept")
def test_a_line_that_stands_once_is_kept_beside_those_that_repeat(most: int, kept: list[int]) -> None:
    assert few(LINES, range(16), most) == kept  # type: ignore[arg-type]


@given(st.lists(st.lists(st.sampled_from("abcdef")), max_size=4), st.integers(1, 12))
def test_what_shards_leave_out_changes_nothing_in_the_whole(shards: list[list[str]], most: int) -> None:
    whole = [[("WARN", f"{letter} {at}{number}") for at, letter in enumerate(own)] for number, own in enumerate(shards)]
    pairs = [pair for own in whole for pair in own]

    def kept(events: list[tuple[str, str]], more: int = 0) -> list[tuple[str, str]]:
        return [events[at] for at in first_of_each(shapes_of(events), most, more)] if len(events) > most else events

    left = [pair for own in whole for pair in kept(own, 1)]

    assert kept(left) == kept(pairs)


@pytest.mark.parametrize("cuts", [[], [40], [7, 40, 41, 90]])
def test_where_shards_join_what_is_left_out_is_the_same(cuts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts of most rows are let go before the words of all shards are joined."""
    monkeypatch.setattr("topodiag.evidence.nccl_log.tables.resolve_rows.MOST_EVENTS", 10)
    whole = [f"h:1:1 [0] a.cc:1 NCCL WARN {'port down' if at == 50 else f'retry {at}'}\n".encode() for at in range(100)]
    facts, base = [], 0
    for low, high in pairwise([0, *cuts, len(whole)]):
        data = b"".join(whole[low:high])
        facts.append(extract(data, 0, base))
        base += len(data)
    event = merge_facts([merge_facts(facts[:2]), *facts[2:]])["event"]
    texts = event.values("text")
    assert texts == [*(f"retry {at}" for at in range(10)), "port down"]
    assert len(event.words["text"]) == len(texts)
