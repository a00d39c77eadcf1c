"""The two ways in which a finder of fixed bytes searches, and one finder in several threads."""

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.signatures import literals
from topodiag.evidence.signatures.literals import NEVER, Finder

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
