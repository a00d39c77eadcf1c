"""NET002 by interfaces that NCCL takes for data though they lead to no other node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud

USING = (
    "gpu-a:3104:3104 [0] NCCL INFO Bootstrap : Using [0]eno1:172.24.133.238<0>{0}\n"
    "gpu-a:3104:3104 [0] NCCL INFO NET/IB : No device found.\n"
    "gpu-a:3104:3104 [0] NCCL INFO NET/Socket : Using [0]eno1:172.24.133.238<0>{0}\n"
    "gpu-a:3104:3104 [0] NCCL INFO Using network Socket\n"
)
BMC = " [1]enxb03af2b6059f:169.254.3.1<0>"
VETH = " [1]veth1f05ad1:fe80::50ab:12ff:fe34:5678%veth1f05ad1<0>"
SECOND = " [1]eno2:172.25.133.238<0>"
FAILED = (
    "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:957, unhandled system error\n"
    "ncclSystemError: System call (socket, malloc, munmap, etc) failed.\n"
)
SHM = "gpu-a:3104:3190 [0] misc/shmutils.cc:50 NCCL WARN Call to posix_fallocate failed : No space left on device\n"


@pytest.mark.parametrize("other", [BMC, VETH, BMC + VETH.replace("[1]", "[2]")])
def test_they_are_told_where_a_call_of_the_system_fails(tmp_path: Path, other: str) -> None:
    assert loud(tmp_path, USING.format(other) + FAILED)[0] == "NET002"


@pytest.mark.parametrize(
    "text",
    [
        USING.format(BMC + VETH),
        USING.format("") + FAILED,
        USING.format(SECOND) + FAILED,
        USING.format(BMC) + SHM + FAILED,
        USING.format(BMC).replace("Using network Socket", "Using network IB") + FAILED,
        USING.format(BMC) + "RuntimeError: CUDA error: an illegal memory access was encountered\n",
    ],
)
def test_they_say_nothing_without_it_or_where_a_line_says_why(tmp_path: Path, text: str) -> None:
    assert "NET002" not in loud(tmp_path, text)
