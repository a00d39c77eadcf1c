"""All commands: their help, options, groups and errors."""

import io
import json
import re
import sys
from collections import defaultdict

import click
import pytest
from click.testing import CliRunner

from tests import program
from tests.cli.command_tree import ALL
from tests.shown import ROOT
from tests.tables import examples
from topodiag.checks import registry
from topodiag.checks.page import parse
from topodiag.cli import _COMMANDS, cli
from topodiag.cli.bench.judge import judge
from topodiag.cli.emit.nccl_conf import nccl_conf
from topodiag.cli.emit.nccl_topo import nccl_topo
from topodiag.cli.errors import print_note, run
from topodiag.cli.explain import draw_sections, explain
from topodiag.cli.options import FEW_OPTIONS, HELP, Command
from topodiag.model.node import Node
from topodiag.model.result import Result
from topodiag.report.interface import Style
from topodiag.report.text import Page


def drawn(doc, width=80):
    page = Page(Style(width=width))
    draw_sections(page, parse(doc))
    return [line.plain for line in page.lines]


def test_the_help_fits_30_lines_with_a_line_for_each_command(topodiag):
    lines = topodiag("--help").stdout.splitlines()
    assert len(lines) <= 30
    assert [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in _COMMANDS] == [*_COMMANDS]
    assert next(iter(_COMMANDS)) == "diagnose"
    assert sum(line.startswith(" " * 8) for line in lines) == 0, "a description runs into a second line"


def test_explain_without_a_name_lists_the_families_on_a_screen(topodiag):
    lines = topodiag("explain").stdout.splitlines()
    assert [line[:3] for line in lines[:-1]] == list(registry.FAMILIES)
    assert sum(int(line[3:7]) for line in lines[:-1]) == len(registry.ids())
    assert len(lines) <= 23


def test_explain_verbose_lists_every_id_with_its_title(topodiag):
    lines = topodiag("explain", "-v").stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1] if not line.startswith(" ")] == list(registry.ids())


def test_the_list_as_json(topodiag):
    document = json.loads(topodiag("explain", "--format", "json").stdout)
    assert [entry["id"] for entry in document] == list(registry.ids())
    assert all(entry["title"] for entry in document)


@pytest.mark.parametrize("spelling", ["NVL001", "nvl001", " NVL001 "])
def test_explain_prints_the_page_of_a_check(topodiag, spelling):
    out = topodiag("explain", spelling).stdout
    assert out.startswith("NVL001  ")
    for heading in ("What it finds", "Why it matters", "When it stays silent", "How to fix", "References"):
        assert f"\n{heading}\n" in out
    assert max(map(len, out.splitlines())) <= 80


def test_explain_lists_a_family(topodiag):
    *lines, last = topodiag("explain", "gdr").stdout.splitlines()
    listed = [check_id for check_id in registry.ids() if check_id.startswith("GDR")]
    assert [line[:6] for line in lines if line[0] != " "] == listed
    assert last == "topodiag explain GDR001 for one"


def test_the_demo_ends_in_a_verdict_and_exits_clean(topodiag):
    done = topodiag("demo")
    assert done.returncode == 0
    assert "topodiag fixture:a-gpu-link-stuck-at-gen2" in done.stdout
    assert "SLOW" in "".join(done.stdout.splitlines()[-2:])


def test_a_docstring_is_filled_and_its_commands_stand_on_lines_of_their_own():
    lines = drawn("""
        XYZ001: title

        What it finds
            One sentence
            over two lines.

            - an item
            - another

        How to confirm
            nvidia-smi nvlink -s      every link
            dmesg | grep -iE 'xid'
            Run it again
            an hour later:
            topodiag scan
        """)
    assert lines == [
        "What it finds",
        "  One sentence over two lines.",
        "",
        "  - an item",
        "  - another",
        "",
        "How to confirm",
        "  nvidia-smi nvlink -s                  every link",
        "  dmesg | grep -iE 'xid'",
        "  Run it again an hour later:",
        "  topodiag scan",
    ]


def test_fixtures_lists_what_ships_by_kind_with_its_command(topodiag):
    out = topodiag("fixtures").stdout
    heads = [line.partition(":")[0] for line in out.splitlines() if line[:1].strip()]
    assert heads == ["incidents", "machines", "jobs", "tables of nccl-tests"]
    assert all(
        f"\n  {name} " in out
        for name in ("a-gpu-link-stuck-at-gen2", "dgx-h100-healthy", "gdr-off", "all-reduce-gdr-off")
    )


@examples("words", "offered")
def test_completion_knows_commands_check_ids_choices_and_files(topodiag, words, offered):
    at = str(len(words.split()))
    env = {"_TOPODIAG_COMPLETE": "bash_complete", "COMP_WORDS": f"topodiag {words}", "COMP_CWORD": at}
    assert topodiag(env=env).stdout.splitlines()[0] == offered


# --- `topodiag explain EVENT` and `explain --line`: what the catalogue of sentences knows


@examples("arguments", "words")
def test_entries_and_lines_are_explained(arguments: list[str], words: list[str]) -> None:
    done = CliRunner().invoke(explain, arguments)
    assert done.exit_code == 0
    assert [word for word in words if word not in done.output] == []


@pytest.mark.parametrize("arguments", [["GDR001", "--line", "x"], ["--line", "x", "--format", "json"]])
def test_a_line_stands_alone(arguments: list[str]) -> None:
    done = CliRunner().invoke(explain, arguments)
    assert done.exit_code == 2
    assert "--line goes with no name" in done.output


# --- groups of commands: without a command they print their help, and exit 2; asked for it they exit 0


GROUPS = [words for words, command in ALL.items() if words and isinstance(command, click.Group)]


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_group_without_a_command_prints_its_help_as_an_error(words):
    done, asked = program.run(*words), program.run(*words, "--help")
    assert (done.returncode, done.stdout) == (2, "")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert done.stderr == asked.stdout
    assert "error:" not in done.stderr


def test_bench_help_has_the_options_of_bench_path():
    shown = program.run("bench", "--help").stdout
    for option in judge.params:
        if isinstance(option, click.Option):
            assert f" {option.opts[-1]}" in shown or f", {option.opts[0]}" in shown


@pytest.mark.parametrize(("gpu", "shown"), [(False, "Usage: topodiag"), (True, "this machine")])
def test_alone_it_scans_a_gpu_node_and_helps_elsewhere(gpu, shown, monkeypatch, capsys):
    monkeypatch.setattr("topodiag.cli.is_gpu_node", lambda: gpu)
    monkeypatch.setattr("topodiag.app.scan.live", lambda **_: Result(nodes=(Node("this machine"),)))
    assert run(cli, []) == 0
    assert shown in capsys.readouterr().out


# --- the same word means the same in every command, and a long help groups its options


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
    shown = command.get_help(click.Context(command, help_option_names=HELP)).partition("\nOptions:\n")[2]
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
    "nan", "-nan", "inf", "-inf", "infinity", "1e999", "9" * 5000, "-" + "9" * 5000, "0x10", "", " ", "1e5000",
)  # fmt: skip


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


# --- what goes wrong is one line with its remedy, and code 2


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_breaks_an_error_between_words_and_a_file_has_it_whole(monkeypatch, terminal: bool) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "40")
    words = "topodiag: error: No such option '--redacted'. (Did you mean one of: '--recompute', '--redact'?)"
    print_note(words)
    lines = stream.getvalue().splitlines()
    assert " ".join(line.strip() for line in lines) == words
    assert (max(map(len, lines)) <= 40) == terminal
