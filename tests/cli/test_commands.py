"""The small commands: help, explain, demo, fixtures, completion; and what they do not load."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.tables import examples
from topodiag.checks import registry
from topodiag.checks.page import parse
from topodiag.cli import _COMMANDS
from topodiag.cli.explain import draw_sections, explain
from topodiag.report.interface import Style
from topodiag.report.text import Page

HEAVY = {"rich", "topodiag.app.diagnose", "topodiag.checks", "topodiag.evidence", "topodiag.report", "ClusterShell",
         "prometheus_client", "pynvml", "psutil", "json"}  # fmt: skip


def drawn(doc, width=80):
    page = Page(Style(width=width))
    draw_sections(page, parse(doc))
    return [line.plain for line in page.lines]


def test_the_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom topodiag.cli.errors import run\nfrom topodiag.cli import cli\nrun(cli, ['--help'])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stderr.split())
    assert "topodiag.cli" in loaded
    assert not loaded & (HEAVY - {"json"})


def test_the_help_names_every_command(topodiag):
    out = topodiag("--help").stdout
    for name in _COMMANDS:
        assert f"\n  {name} " in out


def test_the_help_fits_30_lines_with_a_line_for_each_command(topodiag):
    lines = topodiag("--help").stdout.splitlines()
    assert len(lines) <= 30
    assert [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in _COMMANDS] == [*_COMMANDS]
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


def test_completion_completes(topodiag):
    env = {"_TOPODIAG_COMPLETE": "bash_complete", "COMP_WORDS": "topodiag sc", "COMP_CWORD": "1"}
    assert topodiag(env=env).stdout == "plain,scan\n"


@examples("words", "offered")
def test_completion_knows_check_ids_choices_and_files(topodiag, words, offered):
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
