"""`topodiag emit nccl-conf` as users run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import program
from tests.tables import examples
from topodiag.cli.emit.nccl_conf import nccl_conf


@pytest.fixture
def topodiag():
    def run(*args, **kwargs):
        return program.run("emit", "nccl-conf", *args, env={"COLUMNS": "120"}, **kwargs)

    return run


@examples("args", "message")
def test_each_bad_input_is_told_in_one_line(topodiag, tmp_path, args, message) -> None:
    run = topodiag(*args, cwd=tmp_path)
    assert run.returncode == 2
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    assert message in run.stderr.splitlines()[0]
    assert len([line for line in run.stderr.splitlines() if not line.startswith("  hint: ")]) == 1


def test_every_option_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "emit.md").read_text()
    options = [param.opts for param in nccl_conf.params if param.opts[0].startswith("-")]
    texts = [names for names in options if any(f"{name}{end}" in guide for name in names for end in " `")]
    assert texts == options
