"""`--html FILE` on each command that reports: a page beside the usual output, whole or not at all, over no input."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.command_tree import ALL
from tests.report.html.pages import by_id, data_of, read
from topodiag.cli import cli
from topodiag.cli.errors import Outcome, run

NODE = "fixture:dgx-h100-gpu3-12of18-nvlink"
PLACED = ("--nodes", "4", "--leaf", "2", "--tp", "8", "--rule", "cyclic")
COMMANDS = {
    "diagnose": ("diagnose", NODE),
    "scan": ("scan", NODE),
    "logs": ("logs", "fixture:socket-fallback"),
    "bench": ("bench", "show", "fixture:all-reduce-healthy"),
    "topo check": ("topo", "check", NODE),
    "topo predict": ("topo", "predict", NODE),
    "topo what-if": ("topo", "what-if", NODE, "--off", "gdr"),
    "topo diff": ("topo", "diff", NODE, "fixture:dgx-h100-healthy"),
    "place audit": ("place", "audit", *PLACED),
    "place solve": ("place", "solve", *PLACED),
    "fleet compare": ("fleet", "compare", "--workers", "1", NODE, "fixture:dgx-h100-healthy"),
}


def invoke(*args: str) -> Result:
    return CliRunner().invoke(cli, args, obj=Outcome())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_is_written_beside_what_the_command_prints(name: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    words = COMMANDS[name]
    done = invoke(*words, "--html", str(page), "--color", "never")
    assert done.stdout.strip()
    elements = read(page.read_text(encoding="utf-8"))
    assert by_id(elements, "verdict").text.split()
    held = data_of(elements)
    assert held["schema_version"] == "1.0"
    assert held["tool"]["name"] == "topodiag"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_the_placement_is_drawn_before_and_after(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    invoke(*COMMANDS["place audit"], "--html", str(page))
    elements = read(page.read_text(encoding="utf-8"))
    shown = by_id(elements, "placement")
    assert "ms packed" in shown.text
    alts = " ".join(each.attributes.get("alt", "") for each in elements) + shown.text
    assert "groups split" in alts
    assert "packed, no group is split" in alts


def test_every_command_that_prints_json_of_evidence_or_placement_has_a_page() -> None:
    with_page = {words for words, command in ALL.items() if any("--html" in param.opts for param in command.params)}
    named = {words[: len(each)] for words in COMMANDS.values() for each in with_page if words[: len(each)] == each}
    assert with_page <= named


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("-", "--html writes a file"),
        ("/nowhere/report.html", "its folder does not exist"),
        ("{input}", "would be written over"),
        ("{output}", "--html and --output name the same file"),
    ],
)
def test_a_place_that_cannot_be_meant_is_refused_before_any_work(
    path: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, output = tmp_path / "dump.xml", tmp_path / "out.txt"
    given.write_text("<system/>")
    code = run(cli, ["scan", str(given), "--html", path.format(input=given, output=output), "--output", str(output)])
    assert code == 2
    assert said in capsys.readouterr().err
    assert given.read_text() == "<system/>"
