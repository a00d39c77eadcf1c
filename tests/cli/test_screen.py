"""What a command prints without -v fits a terminal of 80 by 24, says the verdict first and last, and its exit code."""

import shlex

import pytest

from tests.tables import examples
from topodiag.cli import cli
from topodiag.cli.errors import run

LAST_ACTION = 3
"""Lines of the last action: one, or as many as its first command needs."""


@examples("command", "most", "code")
def test_an_output_fits_a_screen_and_ends_as_it_begins(
    command: str, most: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(cli, shlex.split(command)) == code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= most
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.endswith("exit 1")] == lines[-1:] * code
    if code:
        actions = [at for at, line in enumerate(lines) if line.startswith("  do  ")]
        assert actions[0] < 4
        assert actions[-1] >= len(lines) - LAST_ACTION
        assert lines[actions[-1] - 1][0] == lines[0][0]
