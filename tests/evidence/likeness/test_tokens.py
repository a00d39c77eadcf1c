"""The words of a text, as the table of words knows them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.likeness.tokens import PAIR, tokens


def singles(text: str) -> list[str]:
    return [word for word in tokens(text) if PAIR not in word]


def test_what_differs_from_machine_to_machine_is_one_word() -> None:
    assert singles("0x7f3a at 10.2.0.9:4711, 0000:9a:00.0 since 11:02:41, 123456 bytes") == [
        "hex", "at", "ip", "bus", "since", "bus", "big", "bytes",
    ]  # fmt: skip


def test_numbers_that_mean_something_stay() -> None:
    assert singles("Xid 79, mlx5_0: error 12") == ["xid", "79", "mlx", "5", "0", "error", "12"]


def test_neighbours_of_a_line_are_a_pair_and_those_of_two_lines_are_not() -> None:
    assert list(tokens("No route\nto host")) == ["no", "route", "no route", "to", "host", "to host"]


@given(st.text())
def test_any_text_has_words_of_small_letters_and_digits_and_their_pairs(text: str) -> None:
    for word in tokens(text):
        parts = word.split(PAIR)
        assert len(parts) in (1, 2)
        assert all(part.isascii() and part.isalnum() and part == part.lower() for part in parts)
