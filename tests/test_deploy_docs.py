"""docs/deploy.md: its units and scripts are what systemd and sh accept. Slurm's are run in tests/fleet/collect."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "deploy.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    service, timer = blocks("ini")
    program = tmp_path / "python3"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "topodiag.service").write_text(service.replace("/usr/bin/python3", str(program)))
    (tmp_path / "topodiag.timer").write_text(timer)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "topodiag.service"), str(tmp_path / "topodiag.timer")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if "topodiag" in line]
    assert ours == []


@pytest.mark.parametrize("script", blocks("sh"))
def test_each_script_is_one_of_sh(script: str) -> None:
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
