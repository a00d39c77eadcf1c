"""The two finders of fixed bytes, and one finder in several threads."""

from __future__ import annotations

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.signatures.literals import Finder, OneByOne, OnePass

pytest.importorskip("hyperscan")

LITERALS = (b"NCCL WARN", b"WARN Call", b"NVRM: Xid", b"aa", b"aaa")
TEXT = b"[0] NCCL WARN Call to ibv_reg_mr failed aaaa\nNVRM: Xid\n"


@given(
    st.lists(st.text("ab =", min_size=1, max_size=4).map(str.encode), min_size=1, max_size=8, unique=True),
    st.text("ab =\n", max_size=200).map(str.encode),
)
def test_one_pass_finds_what_one_search_after_the_other_finds(literals: list[bytes], block: bytes) -> None:
    one_pass, one_by_one = OnePass(literals), OneByOne(literals)
    assert one_pass.hits(block) == one_by_one.hits(block)
    assert one_pass.any(block) == one_by_one.any(block)


@pytest.mark.parametrize("kind", [OnePass, OneByOne])
def test_no_literal_and_no_text_have_no_hit(kind: type[Finder]) -> None:
    assert kind(()).hits(TEXT) == kind(LITERALS).hits(b"") == []
    assert not kind(()).any(TEXT)
    assert not kind(LITERALS).any(b"")


def test_threads_share_a_finder() -> None:
    finder = OnePass(LITERALS)
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
