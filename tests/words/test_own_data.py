"""The data files of the package: the built copy is that of the TOML files, and never wins over a changed one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.shown import ROOT
from topodiag.words import own_data as module
from topodiag.words.own_data import own_data


def test_the_built_copy_is_that_of_the_files() -> None:
    tool = ROOT / "tools" / "build_own_data.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_file_that_was_changed_or_is_new_is_read_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_PACKAGE", tmp_path)
    (tmp_path / "verdict").mkdir()
    for name in ("verdict/rules", "verdict/none_of_the_package"):
        (tmp_path / f"{name}.toml").write_text('words = "new"\n', encoding="utf-8")
        assert own_data.__wrapped__(name) == {"words": "new"}
