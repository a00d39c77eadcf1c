"""A pattern of many words finds a text if and only if one of them stands in it."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.grammar.numbers import any_of

WORD = st.binary(min_size=1, max_size=4).map(lambda word: bytes(b"ab|("[byte % 4] for byte in word))


@given(st.lists(WORD, min_size=1, max_size=12), st.binary(max_size=20).map(lambda t: bytes(b"ab|("[b % 4] for b in t)))
def test_it_is_found_where_any_word_is(words: list[bytes], text: bytes) -> None:
    found = re.search(any_of(words), text)
    assert (found is not None) == any(word in text for word in words)
    starts = [text.index(word) for word in words if word in text]
    assert found is None or found.start() == min(starts)
