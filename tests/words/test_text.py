"""Foreign text made harmless: on a terminal, in a spreadsheet, on a command line."""

import shlex
import subprocess

import pytest

from topodiag.words.text import cell, shell_word, without_steering


@pytest.mark.parametrize("text", ["=cmd()", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", " =1", "\t=1", "-x", "+"])
def test_a_cell_that_a_spreadsheet_would_run_has_an_apostrophe_before_it(text: str) -> None:
    assert cell(text).startswith("'")
    assert not cell(cell(text)).startswith("''")


@pytest.mark.parametrize("text", ["", "gpu-a01", "-1", "+0.5", "-1.5e-3", "a=b", "1-2", "'"])
def test_other_cells_are_as_they_are(text: str) -> None:
    assert cell(text) == text


def test_a_cell_is_one_line_without_control_characters_however_long() -> None:
    assert cell("a\nb\x1b[0m") == "a b\\x1b[0m"
    assert len(cell("x" * 5000)) == 5000


def test_only_what_steers_a_terminal_is_escaped() -> None:
    assert without_steering("é\u00a0ü 日本") == "é\u00a0ü 日本"
    assert without_steering("a\x1b\x9b\u202e\u2028\n") == "a\\x1b\\x9b\\u202e\\u2028\\x0a"


@pytest.mark.parametrize("word", ["plain", "two words", "it's", "$HOME", "é"])
def test_a_shown_word_is_quoted_for_the_shell(word: str) -> None:
    assert shlex.split(shell_word(word)) == [word]


def test_a_shown_word_with_control_characters_is_the_same_word_in_bash() -> None:
    word = "a\x1b[2J'b\\n\x07"
    assert shell_word(word).isprintable()
    run = subprocess.run(["bash", "-c", f"printf %s {shell_word(word)}"], capture_output=True, check=True)
    assert run.stdout.decode() == word
