"""Bus errors that are those of shared memory without room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import chain, said

NCCL_FRAMES = """==== backtrace (tid:   3095) ====
 0 0x0000000000043090 killpg()  ???:0
 1 0x000000000007587d ncclGroupEnd()  ???:0
 2 0x0000000000059e97 ncclGetUniqueId()  ???:0
"""


@pytest.mark.parametrize(
    "text",
    [
        "[n1:3039 :0:3095] Caught signal 7 (Bus error: nonexistent physical address)\n" + NCCL_FRAMES,
        "[n1:3039] Signal: Bus error (7)\n" + NCCL_FRAMES,
        "*** SIGBUS (@0x7f4e00000000) received by PID 3039 (TID 0x7f4e) from PID 0; stack trace: ***\n"
        "    @     0x7f4e12345678 (unknown) ncclCommInitRank\n",
        "[n1:3039 :0:3095] Caught signal 7 (Bus error: nonexistent physical address)\n",
    ],
)
def test_a_bus_error_of_nccl_or_without_a_page_is_shared_memory_without_room(tmp_path: Path, text: str) -> None:
    assert chain(said(tmp_path, text))[:2] == [("HST001", ""), ("JOB009", "HST001")]


@pytest.mark.parametrize(
    "text",
    [
        "[n1:3039 :0:3095] Caught signal 7 (Bus error: invalid address alignment)\n",
        "[n1:3039 :0:3095] Caught signal 7 (Bus error: object-specific hardware error)\n" + NCCL_FRAMES,
        "[n1:3039 :0:3095] Caught signal 11 (Segmentation fault: address not mapped to object)\n" + NCCL_FRAMES,
        "[n1:3039] Signal: Bus error (7)\n 0 0x0000000000043090 H5Dread()  ???:0\n",  # a data file that is shorter now
        "[n1:3039] Signal: Bus error (7)\n" + "step 10 loss 2.1\n" * 40 + NCCL_FRAMES,  # the stack of something else
    ],
)
def test_another_bus_error_or_signal_says_nothing_of_shared_memory(tmp_path: Path, text: str) -> None:
    assert "HST001" not in [check for check, _ in chain(said(tmp_path, text))]
