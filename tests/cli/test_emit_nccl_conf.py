"""`topodiag emit nccl-conf` as users run it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import program
from tests.tables import examples
from topodiag.cli.emit.nccl_conf import nccl_conf

NODES = Path(__file__).parents[2] / "fixtures" / "nodes"
JOBS = Path(__file__).parents[2] / "fixtures" / "jobs"
HOST = "fixture:dgx-h100-healthy"


@pytest.fixture
def topodiag():
    def run(*args, **kwargs):
        return program.run("emit", "nccl-conf", *args, env={"COLUMNS": "120"}, **kwargs)

    return run


def node_with(place: Path, *lines: str) -> str:
    """A captured node with these lines in its settings: `environ` or `etc/nccl.conf`, a tab, and the line."""
    shutil.copytree(NODES / "dgx-h100-healthy", place)
    with (place / "trees" / "settings.tree").open("a") as tree:
        tree.writelines(f"= {line}\n" for line in lines)
    return str(place)


def test_the_file_goes_to_standard_output_and_the_reasons_to_standard_error(topodiag) -> None:
    run = topodiag(HOST)
    assert run.returncode == 0
    assert "\nNCCL_IB_HCA==mlx5_0:1,mlx5_3:1," in run.stdout
    assert "# mlx5_1, mlx5_7 are storage" in run.stdout
    assert "mlx5_1, mlx5_7 are storage" in run.stderr


def test_each_setting_has_its_reason_and_harmful_ones_are_taken_out(topodiag, tmp_path) -> None:
    conf = ("NCCL_P2P_DISABLE=1", "NCCL_IB_TIMEOUT = 22", "NCCL_DEBUG=INFO")
    node = node_with(tmp_path / "node", *(f"etc/nccl.conf\t{line}" for line in conf), "environ\tNCCL_IB_DISABLE=1")
    out = tmp_path / "nccl.conf"
    run = topodiag(node, "-o", str(out))
    assert run.returncode == 0, run.stderr
    assert run.stdout == ""
    lines = out.read_text().splitlines()
    assert "#NCCL_P2P_DISABLE=1" in lines
    assert "NCCL_IB_TIMEOUT=22" in lines
    assert lines[lines.index("NCCL_IB_TIMEOUT=22") - 1].startswith("# ENV002: ")
    assert any(line.startswith("# unset NCCL_IB_DISABLE where it is given (environment)") for line in lines)
    assert "unset NCCL_IB_DISABLE" in run.stderr


def test_where_nothing_follows_nothing_is_written(topodiag, tmp_path) -> None:
    out = tmp_path / "nccl.conf"
    run = topodiag("fixture:vm-flat-pci", "-o", str(out))
    assert run.returncode == 0
    assert "nothing follows for nccl.conf" in run.stderr
    assert run.stdout == ""
    assert not out.exists()


def test_a_job_s_logs_will_do(topodiag, tmp_path) -> None:
    healthy = topodiag("--log", str(JOBS / "healthy" / "logs"))
    assert healthy.returncode == 0, healthy.stderr
    assert healthy.stdout == ""
    sick = topodiag("--log", str(JOBS / "socket-fallback" / "logs"))
    assert sick.returncode == 0, sick.stderr
    assert "\n# ENV001: NCCL_IB_DISABLE=1: " in sick.stdout
    assert "\n#NCCL_IB_DISABLE=1\n" in sick.stdout
    assert "unset NCCL_IB_DISABLE in the environment too" in sick.stderr


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
