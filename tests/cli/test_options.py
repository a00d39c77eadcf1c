"""The same word means the same in every command; former spellings are accepted with a note."""

from collections import defaultdict

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import program
from tests.cli.command_tree import ALL
from topodiag.cli.former import Command, Former, modern

SPELT = defaultdict(dict)
for words, command in ALL.items():
    for option in command.params:
        if isinstance(option, click.Option):
            for spelling in (*option.opts, *option.secondary_opts):
                SPELT[spelling][words] = option
FORMER = [
    (" ".join(words), each) for words, command in ALL.items() if isinstance(command, Command) for each in command.former
]


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


@pytest.mark.parametrize(("command", "former"), FORMER, ids=lambda value: getattr(value, "spelling", value))
def test_a_former_spelling_leads_to_an_option_that_exists(command, former):
    known = {spelling for option in ALL[tuple(command.split())].params for spelling in option.opts}
    assert not former.now or former.now.partition("=")[0] in known
    assert former.fits is not None or former.spelling not in known


def test_a_former_spelling_is_in_no_help():
    for words, command in ALL.items():
        if isinstance(command, Command):
            told = {option for param in command.params for option in param.opts}
            for each in command.former:
                assert each.fits is not None or each.spelling not in told, (words, each.spelling)


def test_a_former_spelling_works_and_is_noted_once():
    old = program.run("bench", "plan", "--nodes", "a", "--nodes=b", "--gpus", "2", "-q")
    new = program.run("bench", "plan", "--nodelist", "a", "--nodelist=b", "--gpus-per-node", "2", "-q")
    assert old.stdout == new.stdout
    assert (old.returncode, new.returncode, new.stderr) == (0, 0, "")
    assert old.stderr.splitlines() == [
        "topodiag: note: --nodes is now written --nodelist",
        "topodiag: note: --gpus is now written --gpus-per-node",
    ]


def test_an_option_that_changed_its_meaning_is_told_by_its_value():
    healthy = "fixtures/topo/dgx-h100-healthy/topo.xml"
    old = program.run("topo", "what-if", healthy, "--width", "GPU5=4", "--columns", "100")
    new = program.run("topo", "what-if", healthy, "--lanes", "GPU5=4", "--width", "100")
    assert old.returncode == 0, old.stderr
    assert old.stdout == new.stdout
    assert old.stderr.splitlines() == [
        "topodiag: note: --width GPU5=4 is now written --lanes GPU5=4",
        "topodiag: note: --columns is now written --width",
    ]


def test_a_system_that_is_a_path_is_a_machine():
    old = program.run("model", "link", "--system", "fixture:dgx-h100-healthy", "-q")
    new = program.run("model", "link", "--machine", "fixture:dgx-h100-healthy", "-q")
    assert old.stdout == new.stdout != ""
    assert old.stderr == (
        "topodiag: note: --system fixture:dgx-h100-healthy is now written --machine fixture:dgx-h100-healthy\n"
    )


PARAMS = [click.Option(["--new"]), click.Option(["--other", "-o"]), click.Option(["--on"], is_flag=True)]
OLD = (Former("--old", "--new"), Former("--from", ""), Former("--on", "--new=all", lambda word: word != "x", flag=True))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["--old", "1", "a"], ["--new", "1", "a"]),
        (["--old=1"], ["--new", "1"]),
        (["--old"], ["--new"]),
        (["--other", "--old", "--old", "2"], ["--other", "--old", "--new", "2"]),
        (["-o", "--old"], ["-o", "--old"]),
        (["--", "--old", "1"], ["--", "--old", "1"]),
        (["--from", "a", "--from=b", "c"], ["a", "b", "c"]),
        (["--on", "file"], ["--new=all", "file"]),
        (["--on", "x"], ["--on", "x"]),
    ],
)
def test_only_options_are_rewritten_never_their_values(given, wanted):
    assert modern(given, OLD, PARAMS)[0] == wanted


@given(st.lists(st.text(max_size=8)))
def test_arguments_without_former_spellings_stay_as_they_are(words):
    kept = [word for word in words if word.partition("=")[0] not in {"--old", "--from", "--on"}]
    assert modern(kept, OLD, PARAMS) == (kept, [])


_TEXTS = (click.Path, click.types.StringParamType)
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
