"""The first moments of the program: Ctrl-C while it loads, and standard streams that are closed."""

import builtins
import sys
from typing import Any

import pytest

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
