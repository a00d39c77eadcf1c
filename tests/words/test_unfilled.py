"""Format strings have happened to nobody."""

from tests.tables import examples
from topodiag.words.unfilled import is_unfilled, without_unfilled


@examples("line")
def test_a_place_that_nobody_filled_is_seen(line: str) -> None:
    assert is_unfilled(line)
    assert without_unfilled(f"a\n{line}\nb") == "a\n\nb"


@examples("line")
def test_percent_signs_of_messages_are_no_places(line: str) -> None:
    assert not is_unfilled(line)


@examples("line")
def test_data_formats_keep_their_lines(line: str) -> None:
    assert without_unfilled(line) == line
