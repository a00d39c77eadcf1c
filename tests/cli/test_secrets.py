"""Secrets come out of no command: what each one answers goes through one function, and so do lines of errors."""

import inspect
from pathlib import Path

import click
import pytest

from tests.cli.command_tree import ALL
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.cli.params import Evidence

TOKEN = "glpat-7hUq2Lx9VbN4mT1cRz8K"
SHOW_NO_TEXT = {
    ("bench", "plan"): "names of nodes and NICs",
    ("bench", "run"): "names of runs of a plan",
    ("completion",): "words of our own",
    ("demo",): "fixtures of our own",
    ("explain",): "the catalogue, and the line that was given",
    ("fleet", "manifest"): "words of our own",
    ("model", "collective"): "figures",
    ("model", "hierarchy"): "figures",
    ("model", "link"): "figures",
    ("model", "step"): "figures",
    ("watch",): "the collector's readings, which hold no text",
}
"""Commands that read something and show none of its text."""


def reads(command: click.Command) -> bool:
    return any(isinstance(param.type, Evidence) or isinstance(param, click.Argument) for param in command.params)


def test_every_command_that_shows_what_it_reads_hides_secrets() -> None:
    bare = set()
    for words, command in ALL.items():
        if isinstance(command, click.Group) or not reads(command):
            continue
        assert command.callback is not None
        source = inspect.getsourcefile(inspect.unwrap(command.callback))
        assert source is not None
        if "printable" not in Path(source).read_text(encoding="utf-8"):
            bare.add(words)
    assert bare == set(SHOW_NO_TEXT)


def test_a_secret_in_an_error_is_hidden(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(cli, ["diagnose", str(tmp_path / TOKEN)]) == 2
    message = capsys.readouterr().err
    assert TOKEN not in message
    assert "<hidden>" in message


def test_saved_facts_hold_no_secret(tmp_path: Path) -> None:
    log, saved = tmp_path / "job.log", tmp_path / "job.facts"
    lines = (
        "n0:41:41 [0] NCCL INFO NCCL version 2.28.3 compiled with CUDA 12.9",
        f"n0:41:41 [0] NCCL WARN Call to connect failed: {TOKEN}",
        f"n0:41:41 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to https://a:{TOKEN}@b/",
    )
    log.write_text("\n".join(lines) + "\n")
    run(cli, ["logs", str(log), "--save", str(saved), "--workers", "1"])
    from topodiag.evidence.nccl_log.tables.saved import load  # noqa: PLC0415 - only here

    kept = str([table.rows() for table in load(str(saved))[0].tables.values()])
    assert TOKEN not in kept
    assert "Call to connect failed: <hidden>" in kept
