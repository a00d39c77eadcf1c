"""`topodiag env` prints settings that each launcher takes as they stand."""

import subprocess

import pytest
from click.testing import CliRunner

from topodiag.cli.env import FORMATS, env
from topodiag.model.debug_settings import LEVELS, debug_settings
from topodiag.report.debug_settings import WRITERS


def printed(*args):
    done = CliRunner().invoke(env, args)
    assert done.exit_code == 0
    return done.output


def test_a_shell_takes_what_is_printed():
    script = printed("--to", "/a b/it's") + 'printf "%s\\n" "$NCCL_DEBUG_SUBSYS" "$NCCL_DEBUG_FILE"'
    done = subprocess.run(["/bin/sh", "-eu", "-c", script], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.splitlines() == ["INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING,P2P,SHM,NVLS", "/a b/it's/nccl.%h.%p.log"]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("level", LEVELS)
def test_every_format_has_every_setting(format_, level):
    out = printed("--format", format_, *([] if level == "recommended" else [f"--{level}"]))
    assert all(setting.name in out and setting.value in out for setting in debug_settings(level))


def test_the_options_name_every_writer():
    assert tuple(WRITERS) == FORMATS


def test_what_nccl_tells_of_itself_is_named_with_what_it_costs():
    table = {setting.name: " ".join(setting.why) for setting in debug_settings("full")}
    assert "one thread" in table["NCCL_RAS_ENABLE"]
    assert "10 ms at each init" in table["NCCL_RUN_RAS_DIAGNOSTICS"]
    assert "bytes of disk" in table["NCCL_PROFILER_PLUGIN"]
    assert "in memory" in table["TORCH_NCCL_TRACE_BUFFER_SIZE"]
    assert "NCCL_PROFILER_PLUGIN" not in printed()
