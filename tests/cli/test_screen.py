"""What a command prints without -v fits a terminal of 80 by 24, says the verdict first and last, and its exit code."""

from __future__ import annotations

import shlex

import pytest

from topodiag.cli import cli
from topodiag.cli.errors import run

SCREEN = 23
"""Lines that a terminal of 24 shows above its prompt."""

LAST_ACTION = 3
"""Lines of the last action: one, or as many as its first command needs."""
OUTPUTS = {
    "diagnose fixture:locked-memory-limited": (SCREEN, 1),
    "diagnose fixture:dgx-h100-nic-down-and-half-rate fixture:nic-missing": (SCREEN, 1),
    "diagnose fixture:as-fast-as-its-wires": (10, 0),
    "diagnose fixture:no-gpu": (10, 0),
    "scan fixture:dgx-h100-gpu3-12of18-nvlink": (SCREEN, 1),
    "scan fixture:dgx-h100-nic-down-and-half-rate": (SCREEN, 1),
    "scan fixture:nvidia-smi-hangs": (25, 1),
    "scan fixture:dgx-h100-healthy": (10, 0),
    "logs fixture:gdr-off": (SCREEN, 1),
    "logs fixture:init-hang": (SCREEN, 1),
    "logs fixture:port-error-cascade": (SCREEN, 1),
    "logs fixture:split-tensor-groups": (SCREEN, 1),
    "logs fixture:version-mismatch": (SCREEN, 1),
    "logs fixture:healthy": (SCREEN, 0),
    "bench fixture:all-reduce-gdr-off --system dgx-h100": (SCREEN, 1),
    "place audit fixture:split-tensor-groups --tp 4": (SCREEN, 1),
    "place solve --nodes 64 --leaf 8 --tp 8 --rule cyclic": (SCREEN, 0),
    "model hierarchy": (SCREEN, 0),
    "model link": (SCREEN, 0),
    "explain": (SCREEN, 0),
}
"""Lines at most, and the exit code."""


@pytest.mark.parametrize("command", OUTPUTS)
def test_an_output_fits_a_screen_and_ends_as_it_begins(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    most, code = OUTPUTS[command]
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
