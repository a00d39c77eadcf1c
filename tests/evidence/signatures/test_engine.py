"""The engine: one pass, the same events however the bytes are cut, and bounds that hold."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from tools.build_signatures import index_of
from topodiag.evidence.signatures import engine, entry
from topodiag.evidence.signatures.entry import Near, Over, Signature
from topodiag.evidence.signatures.literals import BLOCK, windows
from topodiag.model.events import Trust

PROGRAM = "some program.c"
ON = r"(?: on (?P<bus_id>[0-9a-f:.]+))?"


def signature(name: str, literal: str, match: str = "", **parts: object) -> Signature:
    """An entry of an invented family `t`."""
    return Signature(
        id=f"t.{name}", says=f"t.{name}", source=PROGRAM, literal=literal, match=match or literal, shows=(literal,),
        silent=("x",), **parts,  # type: ignore[arg-type]
    )  # fmt: skip


ENTRIES = (
    signature("lost", "GPU lost", rf"GPU lost{ON}", over=Over("GPU back", rf"GPU back{ON}")),
    signature("wide", "GPU lost for good"),
    signature("wrapped", "Watchdog caught", r"Watchdog caught collective (?P<collective>\w+)", wraps=2),
    signature("near", "failed here", near=Near(match="^cause:", before=2)),
    signature("has", "needs it", text_has="the other"),
    signature("lacks", "needs none", text_lacks="the other"),
    signature("step", "iteration ", r"iteration (?P<sequence>\d+)", counts=True),
    signature("aside", "spare", also=True),
    signature("except", "trouble", unless="harmless"),
    signature("count", "errors seen", r"(?P<count>\d+) errors seen"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The invented entries stand in the place of the catalogue."""
    index = {literal: tuple(map(tuple, places)) for literal, places in index_of({"t": ENTRIES}).items()}
    monkeypatch.setattr(entry, "literals", lambda: index)
    monkeypatch.setattr(entry, "family", lambda _name: ENTRIES)
    engine.finder_of.cache_clear()
    entry.places_of.cache_clear()
    engine._candidates.cache_clear()
    yield
    engine.finder_of.cache_clear()
    entry.places_of.cache_clear()
    engine._candidates.cache_clear()


def kinds(text: str, cut: int = 1 << 20) -> list[tuple[str, int | None]]:
    """Kinds and lines of the events of a text that comes in blocks of `cut` bytes."""
    data = text.encode()
    blocks = [data[at : at + cut] for at in range(0, len(data), cut)]
    return [(event.kind.removeprefix("t."), event.origin.line) for event in engine.read(blocks, "f").events]


@examples("text", "events")
def test_a_text_has_these_events(text: str, events: list[tuple[str, int]]) -> None:
    assert kinds(text) == events


def test_the_place_before_the_sentence_is_kept() -> None:
    (event,) = engine.read([b"[1,3]<stdout>:gpu-001: GPU lost on 0000:1b:00.0"], "f").events
    assert (event.rank, event.host, event.fields, event.trust) == (
        3,
        "gpu-001",
        {"bus_id": "0000:1b:00.0"},
        Trust.PROGRAM,
    )


def test_the_same_sentence_is_one_event_with_a_count() -> None:
    (event,) = engine.read([b"GPU lost\n" * 500], "f").events
    assert (event.count, event.origin.line) == (500, 1)


def test_of_many_different_sentences_of_an_entry_the_first_are_kept() -> None:
    lines = "".join(f"{number} errors seen\n" for number in range(1, 1001))
    sentences = engine.read([lines.encode()], "f")
    assert len(sentences.events) == engine.MOST_OF_ONE
    assert sentences.events[-1].origin.line == engine.MOST_OF_ONE


def test_progress_is_counted_with_its_first_last_and_longest_gap() -> None:
    text = "2026-03-02 07:00:00 iteration 1\n2026-03-02 07:00:10 iteration 2\n2026-03-02 07:00:12 iteration 3\n"
    (progress,) = engine.read([text.encode()], "f").progress
    assert (progress.kind, progress.number, progress.first.line, progress.last.line) == ("t.step", 3, 1, 3)
    assert (progress.longest_gap_s, progress.last_s - progress.first_s) == (10.0, 12.0)


LINES = st.lists(
    st.sampled_from(
        ["GPU lost", "x" * 40, "cause: a", "failed here", "Watchdog caught", "collective SUM", "\x1b[1mGPU lost"]
    ),
    max_size=60,
).map("\n".join)


@given(LINES, st.integers(min_value=1, max_value=200))
def test_events_do_not_depend_on_where_the_bytes_are_cut(text: str, cut: int) -> None:
    assert kinds(text, cut) == kinds(text)


def test_a_long_text_has_the_lines_of_a_short_one() -> None:
    filler = "step done, nothing to see here\n" * 100_000
    assert kinds(f"GPU lost\n{filler}cause: x\nfailed here\n{filler}") == [("lost", 1), ("near", 100_003)]


@pytest.mark.parametrize("data", [b"x" * (5 * BLOCK), b"GPU lost " * (BLOCK // 2), b"\x1b" * BLOCK, b"\x00" * BLOCK])
def test_a_text_of_one_endless_line_is_read(data: bytes) -> None:
    engine.read([data], "f")


@given(st.binary(max_size=300), st.integers(min_value=1, max_value=50))
def test_windows_own_each_byte_once(data: bytes, cut: int) -> None:
    data = data.replace(b"\x1b", b"").replace(b"\x00", b"")
    parts = windows([data[at : at + cut] for at in range(0, len(data), cut)])
    assert b"".join(window.data[window.start : window.stop] for window in parts) == data
