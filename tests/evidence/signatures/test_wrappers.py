"""Sentences behind wrappers, literals in any blocks, hostile texts in little memory and time."""

import sys
import threading
import tracemalloc
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.hostile_text import SENTENCE, TEXTS
from tests.tables import examples
from topodiag.evidence.signatures import literals, wrappers
from topodiag.evidence.signatures.engine import MOST_LOOKED_AT, MOST_OF_ONE, read
from topodiag.evidence.signatures.literals import NEVER, Finder
from topodiag.evidence.signatures.wrappers import unwrap

S = "Bootstrap : no socket interface found"


@examples("line", "text", "host", "rank", "pid")
def test_what_is_left_is_the_sentence(line: str, text: str, host: str, rank: int, pid: int) -> None:
    bare = wrappers.unwrap(line)
    assert (bare.text, bare.host, bare.rank, bare.pid) == (text, host, rank, pid)


@examples("line", "seconds")
def test_the_time_before_a_line_is_read(line: str, seconds: float | None) -> None:
    read = wrappers.unwrap(line).time_s
    assert isnan(read) if seconds is None else read == seconds


def test_an_event_inside_an_object_is_a_sentence_with_its_host_and_device() -> None:
    inner = f'{{"message": "{S}", "entities": [{{"type": "PCI", "value": "0000:c3:00"}}], "nodeName": "n7"}}'
    [member] = wrappers.members(f'{{"msg": "x", "event": {inner}}}')
    assert (member.text, member.host, member.bus_id) == (S, "n7", "0000:c3:00")
    assert wrappers.members(S) == []


@examples("name", "lines")
def test_a_label_that_all_lines_share_is_known_and_taken_off(name: str, lines: list[str]) -> None:
    assert wrappers.shared_label(lines) == name
    assert [line.strip() for line in map(wrappers.without_label(name), lines)] in (["a", "b"], ["a", ""])


@examples("lines")
def test_what_not_all_lines_share_is_no_label(lines: list[str]) -> None:
    assert wrappers.shared_label(lines) == ""


def test_a_label_of_another_container_stays() -> None:
    bare = wrappers.without_label("compose")
    assert [bare(line) for line in ("trainer-1 | a", "web-1 | b", "c", "trainer-1 | d")] == ["a", "web-1 | b", "c", "d"]


@examples("line", "bare")
def test_labels_of_launchers_go_and_clocks_and_hosts_stay(line: str, bare: str) -> None:
    assert wrappers.without_launcher(line) == bare


@examples("text", "label")
def test_what_belongs_to_the_next_line_is_parted_from_one_whose_break_was_lost(text: str, label: str) -> None:
    assert wrappers.parted_at_end(text) == (text.removesuffix(label), label)


@examples("before", "is_one")
def test_nothing_but_labels_stands_before_a_sentence(before: str, is_one: bool) -> None:
    assert wrappers.is_label(before) is is_one


def test_torchs_head_has_the_place_in_the_source_and_the_rank_of_the_job() -> None:
    head = "[rank3]:[E302 11:02:04.1 ProcessGroupNCCL.cpp:1784] "
    shown = wrappers.parted_at_place(f"{head}[PG ID 0 Rank 5] {S}")
    assert shown == ("[rank3]:", "ProcessGroupNCCL.cpp:1784", f"[PG ID 0 Rank 5] {S}")
    assert wrappers.parted_at_place(S) == ("", "", S)
    assert (wrappers.rank_of_torch("[PG ID 0 Rank 05] x"), wrappers.rank_of_torch("[PG ID 7 Rank 5] x")) == ("5", "")


@examples("lines", "bare")
def test_the_last_lines_of_one_process_lose_what_stands_around_all_of_them(lines: list[str], bare: list[str]) -> None:
    assert wrappers.of_one_process(lines) == bare


# --- the two ways in which a finder of fixed bytes searches, and one finder in several threads


pytest.importorskip("hyperscan")

LITERALS = (b"NCCL WARN", b"WARN Call", b"NVRM: Xid", b"aa", b"aaa")
PIECES = st.sampled_from([*LITERALS, b"x", b"\n", b"\0", b"a"])
TEXT = b"[0] NCCL WARN Call to ibv_reg_mr failed aaaa\nNVRM: Xid\n"


@given(
    st.lists(st.text("ab =", min_size=1, max_size=4).map(str.encode), min_size=1, max_size=8, unique=True),
    st.text("ab =\n", max_size=200).map(str.encode),
)
def test_one_pass_finds_what_one_search_after_the_other_finds(literals: list[bytes], block: bytes) -> None:
    for once in (False, True):
        one_pass, one_by_one = Finder(literals, once, pays=0), Finder(literals, once, pays=NEVER)
        assert one_pass.hits(block) == one_by_one.hits(block)
        assert one_pass.any(block) == one_by_one.any(block)


@pytest.mark.parametrize("pays", [0, NEVER])
def test_no_literal_and_no_text_have_no_hit(pays: int) -> None:
    assert Finder((), pays=pays).hits(TEXT) == Finder(LITERALS, pays=pays).hits(b"") == []
    assert not Finder((), pays=pays).any(TEXT)
    assert not Finder(LITERALS, pays=pays).any(b"")


def test_threads_share_a_finder() -> None:
    finder = Finder(LITERALS, pays=0)
    block = TEXT * 500
    expected = finder.hits(block)
    results: list[bool] = []

    def work() -> None:
        results.append(all(finder.hits(block) == expected and finder.any(block) for _ in range(100)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert results == [True] * 4


@given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(1, 9))
def test_lines_with_a_literal_are_those_that_a_plain_loop_finds(data: bytes, block: int) -> None:
    finder = Finder(LITERALS, pays=literals.LEAST)
    small = [literal.lower() for literal in LITERALS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(literals, "BLOCK", block)
        rows = list(literals.lines_with(finder, data))
        in_any_case = [
            [place[:3] for place in literals.lines_with(one_by_one, data)]
            for one_by_one in (Finder(small, lines=True, pays=NEVER), Finder(small, lines=True, pays=0))
        ]
    lines = data.split(b"\n")
    searched = [line[:block] if len(line) >= block else line for line in lines]
    assert [[number for number, _, _ in places] for places in in_any_case] == 2 * [
        [number for number, line in enumerate(searched, start=1) if any(word in line.lower() for word in small)]
    ]
    assert in_any_case[0] == in_any_case[1]
    held = [frozenset(at for at, literal in enumerate(finder.literals) if literal in line) for line in searched]
    assert [(number, numbers) for number, _, _, numbers in rows] == [
        (number, numbers) for number, numbers in enumerate(held, start=1) if numbers
    ]
    assert all(data[begin:end] == lines[number - 1][: end - begin] for number, begin, end, _ in rows)


def test_a_long_line_of_hits_is_searched_in_its_first_bytes() -> None:
    data = b"aa" * literals.BLOCK + b"\nNVRM: Xid\n"
    finder = Finder([b"aa", b"NVRM: Xid"], pays=0)
    assert [(number, numbers) for number, _, _, numbers in literals.lines_with(finder, data)] == [(1, {0}), (2, {1})]


# --- Hostile texts: lines without an end, and one sentence again and again. Memory does not grow with them. `benchmark
# s/hostile_text.py` reads the same at full size


SCALE = 0.01
"""1 MB without a newline."""
LINES = 0.0002
"""2,000 lines."""


def scale_of(name: str) -> float:
    return SCALE if name.startswith("no newline") else LINES


@pytest.mark.parametrize("name", TEXTS)
def test_memory_does_not_grow_with_the_text(name: str) -> None:
    read(TEXTS[name](scale_of(name) / 4), name)  # loads what is loaded once
    tracemalloc.start()
    try:
        sentences = read(TEXTS[name](scale_of(name)), name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20
    assert len(sentences.events) <= MOST_OF_ONE * 2


def test_lines_of_an_entry_with_too_many_events_are_no_longer_read_and_those_of_others_are() -> None:
    line = b"[rank%d]: can't read sgid of index 5"  # one entry alone has these words
    sentences = read(
        [b"\n".join([*(line % at for at in range(MOST_LOOKED_AT)), line % 0, SENTENCE])],
        "x",
        "",
        "collective",
        "launcher",
    )
    assert len(sentences.events) == MOST_OF_ONE + 1
    assert sentences.events[0].count == 1  # the line that says it again is not read
    assert sentences.events[-1].origin.line == MOST_LOOKED_AT + 2


@pytest.mark.parametrize("part", ["> ", "gpu-1: ", "[rank0]: ", "{", '{"msg":', "\x1b[", "0: ", "(A pid=1) "])
def test_a_megabyte_of_wrappers_is_taken_off_a_few_at_a_time(part: str) -> None:
    unwrap(part * (1_000_000 // len(part)))
