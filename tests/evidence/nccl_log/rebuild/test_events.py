"""What kind of trouble a line speaks of, and what it names."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.rebuild.events import classify, few
from topodiag.evidence.nccl_log.tables.resolve import merge_facts
from topodiag.evidence.nccl_log.tables.resolve_rows import first_of_each, shapes_of


@examples("text", "event")
def test_an_event_of_a_device_names_the_device_its_port_and_what_happened(text: str, event: str) -> None:
    kind, secondary, details = classify("WARN", text)
    assert (kind, secondary) == ("ib async", False)
    assert {"hca": "mlx5_3", "port": "1", "event": event}.items() <= dict(details).items()


@examples("text", "kind")
def test_a_warning_has_the_kind_of_its_cause_in_nccls_own_line(text: str, kind: str) -> None:
    assert classify("WARN", text)[0] == kind


def test_a_connect_that_failed_names_its_peer_in_all_spellings() -> None:
    for text in (
        "socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno 115(In progress)",
        "socketStartConnect: Connect to 10.0.0.4<56849> failed : No route to host",
    ):
        kind, secondary, details = classify("WARN", text)
        assert (kind, secondary, dict(details)["peer"]) == ("connect", False, "10.0.0.4<56849>")
    assert classify("WARN", "socketStartConnect: exceeded timeouts (5)")[0] == "connect"


# --- of a log that tells of more events than any job has, the first of each shape are kept --------------------


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
