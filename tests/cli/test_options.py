"""The same word means the same in every command, and a long help groups its options."""

import re
from collections import defaultdict

import click
import pytest

from tests.cli.command_tree import ALL
from tests.shown import ROOT
from topodiag.cli.emit.nccl_conf import nccl_conf
from topodiag.cli.emit.nccl_topo import nccl_topo
from topodiag.cli.options import FEW_OPTIONS, Command

SPELT = defaultdict(dict)
for words, command in ALL.items():
    for option in command.params:
        if isinstance(option, click.Option):
            for spelling in (*option.opts, *option.secondary_opts):
                SPELT[spelling][words] = option


@pytest.mark.parametrize("spelling", sorted(SPELT))
def test_a_word_takes_the_same_kind_of_value_in_every_command(spelling):
    def kind(option):
        choice = isinstance(option.type, click.Choice)
        metavar = option.metavar if not choice else ""  # the choices of an output or an algorithm differ
        return type(option.type).__name__, metavar, option.is_flag, option.count

    assert len({kind(option) for option in SPELT[spelling].values()}) == 1


@pytest.mark.parametrize("spelling", sorted(SPELT))
def test_a_word_has_the_same_short_form_in_every_command(spelling):
    assert len({tuple(sorted(option.opts)) for option in SPELT[spelling].values()}) == 1


def test_what_prints_to_a_file_takes_the_short_form_too():
    assert {tuple(option.opts) for option in SPELT["--output"].values()} == {("--output", "-o")}


LONG = [words for words, command in ALL.items() if isinstance(command, Command)
        and sum(isinstance(param, click.Option) for param in command.params) >= FEW_OPTIONS]  # fmt: skip


@pytest.mark.parametrize("words", LONG, ids=" ".join)
def test_a_long_help_has_sections_with_each_option_once(words):
    command = ALL[words]
    shown = command.get_help(click.Context(command)).partition("\nOptions:\n")[2]
    assert "\nOutput:\n" in shown
    for option in command.params:
        if isinstance(option, click.Option):
            spelt = ", ".join(sorted(option.opts, key=len))
            assert len(re.findall(rf"^  {re.escape(spelt)}(?=\s|$)", shown, re.M)) == 1


def test_an_option_is_not_said_to_be_repeated_by_the_reader():
    texts = [param.help or "" for each in ALL.values() for param in each.params if isinstance(param, click.Option)]
    assert [text for text in texts if "repeat it" in text] == []
    assert sum("may be given several times" in text for text in texts) > 10


def test_o_is_a_file_and_to_a_folder():
    assert {option.metavar for option in SPELT["-o"].values()} == {"FILE"}
    assert {option.metavar for option in SPELT["--to"].values()} == {"DIR"}
    assert {
        words
        for words, command in ALL.items()
        for param in command.params
        if getattr(param, "metavar", "") == "DIR" and isinstance(param, click.Option) and param.opts[0] != "--to"
    } == {("bench", "run")}  # fmt: skip - --bin-dir, where programs are


NO_NUMBERS = (
    "nan",
    "-nan",
    "inf",
    "-inf",
    "infinity",
    "1e999",
    "9" * 5000,
    "-" + "9" * 5000,
    "0x10",
    "",
    " ",
    "1e5000",
)


@pytest.mark.parametrize("words", [words for words, command in ALL.items() if not isinstance(command, click.Group)])
def test_no_option_takes_nan_infinity_or_thousands_of_digits_for_a_number(words: tuple[str, ...]) -> None:
    command = ALL[words]
    for param in command.params:
        if (
            not isinstance(param, click.Option)
            or param.is_flag
            or isinstance(param.type, click.Path | click.types.StringParamType)
        ):
            continue
        for text in NO_NUMBERS:
            with pytest.raises(click.ClickException):
                param.type.convert(text, param, click.Context(command))


@pytest.mark.parametrize("command", [nccl_conf, nccl_topo], ids=["nccl-conf", "nccl-topo"])
def test_every_option_of_a_file_for_nccl_is_in_its_guide(command: click.Command) -> None:
    guide = (ROOT / "docs" / "emit.md").read_text()
    options = [param.opts for param in command.params if param.opts[0].startswith("-")]
    texts = [names for names in options if any(f"{name}{end}" in guide for name in names for end in " `")]
    assert texts == options
