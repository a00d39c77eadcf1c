"""Sequences of terminals and NULs are taken out of text and bytes alike."""

from tests.tables import examples
from topodiag.words.colours import without_colours


@examples("text", "plain")
def test_what_steers_a_terminal_goes_and_the_rest_stays(text: str, plain: str) -> None:
    assert without_colours(text) == plain
