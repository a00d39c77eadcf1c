"""Sequences of terminals and NULs are taken out of text and bytes alike."""

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.words.colours import without_colours


@examples("text", "plain")
def test_what_steers_a_terminal_goes_and_the_rest_stays(text: str, plain: str) -> None:
    assert without_colours(text) == plain


@given(st.text("\x1b[]0;1m(B\x07\\\0a\n", max_size=40))
def test_bytes_are_read_as_text_is_and_no_line_is_lost(text: str) -> None:
    plain = without_colours(text)
    assert without_colours(text.encode()) == plain.encode()
    assert plain.count("\n") == text.count("\n")
