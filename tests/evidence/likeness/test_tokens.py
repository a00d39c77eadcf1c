"""The words of a text, as the table of words knows them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.likeness.tokens import tokens


def test_what_differs_from_machine_to_machine_is_one_word() -> None:
    assert list(tokens("0x7f3a at 10.2.0.9:4711, 0000:9a:00.0 since 11:02:41, 123456 bytes")) == [
        "hex", "at", "ip", "bus", "since", "bus", "big", "bytes",
    ]  # fmt: skip


def test_numbers_that_mean_something_stay() -> None:
    assert list(tokens("Xid 79, mlx5_0: error 12")) == ["xid", "79", "mlx", "5", "0", "error", "12"]


@given(st.text())
def test_any_text_has_words_of_small_letters_and_digits(text: str) -> None:
    assert all(word.isascii() and word.isalnum() and word == word.lower() for word in tokens(text))
