"""The first moments of the program: Ctrl-C while it loads, and standard streams that are closed."""

import builtins
import shlex
import sys
from typing import Any

import pytest

from tests.tables import examples
from topodiag import __main__ as start
from topodiag.cli import cli
from topodiag.cli.errors import run


def test_ctrl_c_during_the_first_imports_is_130_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def interrupted(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "topodiag.cli":
            raise KeyboardInterrupt
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as ended:
        start.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "topodiag: interrupted\n"


@pytest.mark.parametrize("closed", ["stderr", "stdout"])
def test_a_closed_stream_changes_no_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], closed: str
) -> None:
    monkeypatch.setattr(sys, closed, None)
    code = run(cli, ["logs", "fixture:version-mismatch"])
    getattr(sys, closed).close()
    monkeypatch.undo()
    assert code == 1
    assert ("errors" in capsys.readouterr().out) is (closed == "stderr")


def test_an_error_without_standard_error_keeps_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert run(cli, ["logs", "/nowhere/at/all"]) == 2
    sys.stderr.close()


# --- what a command prints without -v fits a terminal of 80 by 24, says the verdict first and last, and its exit code

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
