"""Words: joined lists, texts that are cut, hosts, data of sentences, dialects, colours, places not filled in."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shown import ROOT
from tests.tables import examples
from topodiag.words import own_data as module
from topodiag.words.colours import without_colours
from topodiag.words.dialect import AMD, NVIDIA
from topodiag.words.hosts import address_in_name, address_of, names_one_machine, short_name, short_names
from topodiag.words.joined import Sets
from topodiag.words.own_data import own_data
from topodiag.words.text import cell, shell_word, without_steering
from topodiag.words.unfilled import is_unfilled, without_unfilled


def test_a_thing_that_was_joined_to_none_is_its_own_root() -> None:
    assert Sets[str]().root("a") == "a"


def test_the_root_of_two_sets_that_are_joined_is_that_of_the_other() -> None:
    sets = Sets[str]()
    sets.join("a", "b")
    sets.join("c", "a")
    assert sets.roots() == {"a": "b", "b": "b", "c": "b"}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
def test_what_a_chain_of_pairs_joins_has_one_root(pairs: list[tuple[int, int]]) -> None:
    sets = Sets[int]()
    reached = {number: {number} for number in range(10)}
    for one, other in pairs:
        sets.join(one, other)
        both = reached[one] | reached[other]
        for number in both:
            reached[number] = both
    for one in range(10):
        assert {other for other in range(10) if sets.root(other) == sets.root(one)} == reached[one]


# --- foreign text made harmless: on a terminal, in a spreadsheet, on a command line


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


# --- names of hosts: short, with a domain, or an address


@examples("host", "short")
def test_the_short_name_is_without_domain_and_number_and_an_address_stays_whole(host: str, short: str) -> None:
    assert short_name(host) == short


@pytest.mark.parametrize(
    ("text", "address"),
    [("10.1.2.3", "10.1.2.3"), ("::ffff:10.1.2.3", "10.1.2.3"), ("[fe80::1%eth0]", "fe80::1"), ("n1", ""), ("", ""),
     ("300.1.2.3", ""), ("1" * 5000, "")],
)  # fmt: skip
def test_an_address_has_one_form(text: str, address: str) -> None:
    assert address_of(text) == address


def test_ec2_writes_the_address_into_the_name() -> None:
    assert address_in_name("ip-10-24-6-50.us-east-1.compute.internal") == "10.24.6.50"
    assert address_in_name("ip-10-24-6-500") == address_in_name("gpu-10-24-6-50") == ""


def test_the_bridge_of_a_container_engine_names_no_machine() -> None:
    assert not names_one_machine("172.17.0.1")
    assert not names_one_machine("x")
    assert names_one_machine("172.16.0.1")
    assert names_one_machine("2001:db8::1")


def test_names_lose_their_domain_where_they_stay_different() -> None:
    assert short_names(["n1.a.example", "n2.a.example"]) == ["n1", "n2"]
    assert short_names(["n1.a.example", "n1.b.example"]) == ["n1.a.example", "n1.b.example"]
    assert short_names(["10.0.0.1", "10.0.0.2"]) == ["10.0.0.1", "10.0.0.2"]


# --- the data files of the package: the built copy is that of the TOML files, and never wins over a changed one


def test_the_built_copy_is_that_of_the_files() -> None:
    tool = ROOT / "tools" / "build_own_data.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_file_that_was_changed_or_is_new_is_read_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_PACKAGE", tmp_path)
    (tmp_path / "verdict").mkdir()
    for name in ("verdict/rules", "verdict/none_of_the_package"):
        (tmp_path / f"{name}.toml").write_text('words = "new"\n', encoding="utf-8")
        assert own_data.__wrapped__(name) == {"words": "new"}


@examples("text", "said")
def test_amd_has_words_of_its_own(text: str, said: str) -> None:
    assert AMD.say(text) == said
    assert NVIDIA.say(text) == text


def test_a_phrase_is_not_spoken_twice() -> None:
    assert AMD.say("nvidia-smi") == "amd-smi"
    assert AMD.say(AMD.say("nvidia-smi nvlink -s")) == "amd-smi xgmi"


def test_steps_without_a_counterpart_are_left_out() -> None:
    steps = ("systemctl status nvidia-fabricmanager", "nvidia-smi nvlink -s -i N", "nvidia-smi nvlink -s", "reboot")
    assert AMD.steps(steps) == ("amd-smi xgmi", "reboot")
    assert NVIDIA.steps(steps) == steps


# --- format strings have happened to nobody


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


# --- sequences of terminals and NULs are taken out of text and bytes alike


@examples("text", "plain")
def test_what_steers_a_terminal_goes_and_the_rest_stays(text: str, plain: str) -> None:
    assert without_colours(text) == plain
