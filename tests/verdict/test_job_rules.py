"""Which of the errors in one log stands below which, and which of them a job lived through."""

from __future__ import annotations

from pathlib import Path

import pytest

from topodiag.api import diagnose
from topodiag.model.verdict import State

TAKEN = """\
[W socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29511 (errno: 98 - Address already in use).
[E socket.cpp:500] [c10d] The server socket has failed to listen on any local network address.
"""
REFUSED = """\
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL 2.20.5
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
Last error:
socketStartConnect: Connect to 10.1.2.3<41317> failed : Software caused connection abort
"""
REFUSES = """\
n0:100:110 [0] misc/nvmlwrap.cc:100 NCCL WARN nvmlInit_v2() failed: Driver/library version mismatch
n0:100:110 [0] NCCL INFO misc/nvmlwrap.cc:181 -> 2
n0:100:110 [0] graph/xml.cc:634 NCCL WARN No NVML device handle. Skipping nvlink detection.
"""
BEGUN = "n0:100:110 [0] NCCL INFO comm 0x8b017a0 rank 0 nranks 1 cudaDev 0 busId ca000 commId 0x287f - Init START\n"
MET = BEGUN.replace("START", "COMPLETE")
ENDS = "n0:100:110 [0] NCCL INFO init.cc:1358 -> 2\nncclSystemError: System call or external library call failed\n"


@pytest.mark.parametrize(
    ("text", "state", "causes"),
    [
        pytest.param(TAKEN + REFUSED, State.FAILED, ["JOB009"], id="connects lead nowhere: the port is another's"),
        pytest.param(REFUSED, State.FAILED, ["NET002"], id="connects lead nowhere, and no port was taken"),
        pytest.param(BEGUN + REFUSES + MET, State.AT_RISK, ["HST004"], id="init completed without NVML"),
        pytest.param(BEGUN + REFUSES + ENDS, State.FAILED, ["HST004"], id="init ended with NVML"),
    ],
)
def test_what_an_error_follows_from_and_what_init_lives_through(
    tmp_path: Path, text: str, state: State, causes: list[str]
) -> None:
    (tmp_path / "job.log").write_text(text)
    verdict = diagnose(str(tmp_path)).verdict
    assert verdict is not None
    assert (verdict.state, [cause.finding.id for cause in verdict.causes]) == (state, causes)


RAY = "(raylet) A worker died or was killed while executing a task. Worker exit detail: {0}\n"
FATAL = "(EngineCore_DP0 pid=42) ERROR 07-31 16:03:52 [core.py:710] EngineCore encountered a fatal error.\n"
WHY = (
    "(EngineCore_DP0 pid=42) ERROR 07-31 16:03:52 [core.py:710] torch._inductor.exc.InductorError: PassManager failed\n"
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(
            RAY.format("Some common causes include: (1) the process was killed by the OOM killer, (2) ray stop."),
            "a process died",
            id="a list of common causes names none",
        ),
        pytest.param(
            RAY.format("the process was killed by the OOM killer."),
            "a process was killed for using more host memory than allowed",
            id="one cause is named",
        ),
        pytest.param(
            WHY + FATAL,
            "a process ended with an exception that nobody caught (InductorError)",
            id="an exception with which an engine died",
        ),
        pytest.param(WHY, "", id="an exception that may have been caught"),
    ],
)
def test_a_process_that_died_is_told_by_the_line_that_says_why(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "job.log").write_text("{'loss': 2.5, 'epoch': 0.1}\n" * 3 + text + "the log goes on\n")
    verdict = diagnose(str(tmp_path)).verdict
    assert verdict is not None
    assert [cause.finding.message for cause in verdict.causes] == ([says] if says else [])
