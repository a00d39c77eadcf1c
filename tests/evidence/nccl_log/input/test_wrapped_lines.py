"""Lines that a terminal, a mail or a forum broke are put together again; whole ones stay as they are."""

from __future__ import annotations

import pytest

from topodiag.evidence.nccl_log.input.wrapped_lines import looks_broken, whole_lines

HEAD = b"n0:310:351 [0] NCCL INFO "


def whole(text: bytes) -> list[bytes]:
    return b"".join(whole_lines(iter([text]))).split(b"\n")


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        (
            HEAD + b"Channel 00/0 : 0[0] -> 9[1] [send] via\n    NET/IB/0/GDRDMA",
            HEAD + b"Channel 00/0 : 0[0] -> 9[1] [send] via NET/IB/0/GDRDMA",
        ),
        (
            HEAD + b"Channel 00/0 : 0[0] -> 9[1] [send] via NE\nT/IB/0",
            HEAD + b"Channel 00/0 : 0[0] -> 9[1] [send] via NET/IB/0",
        ),
        (
            b"n0:310:351 [0]\nNCCL INFO Using network IB",
            b"n0:310:351 [0] NCCL INFO Using network IB",
        ),
        (
            HEAD + b"NET/IB : Using [0]mlx5_0:1/IB\n [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>",
            HEAD + b"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>",
        ),
        (
            b"[Rank 3] Watchdog caught collective operation\n timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE,\n"
            b"Timeout(ms)=600000) ran for\n 600029 milliseconds before timing out.",
            b"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE,"
            b" Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
        ),
    ],
    ids=["at a blank", "inside a word", "behind the head", "a list", "a watchdog"],
)
def test_a_broken_record_is_whole_again_and_keeps_the_numbers_of_the_lines_behind_it(
    broken: bytes, mended: bytes
) -> None:
    lines = whole(broken + b"\nlast line\n")
    assert lines[0] == mended
    assert len(lines) == len((broken + b"\nlast line\n").split(b"\n"))
    assert lines[-2] == b"last line"
    assert looks_broken(broken + b"\n")


@pytest.mark.parametrize(
    "text",
    [
        HEAD + b"Using network IB\nstep 1 loss 2.0\n",
        HEAD + b"something that nobody knows\nstep 1 loss 2.0\n",
        HEAD + b"something that nobody knows\n" + HEAD + b"Using network IB\n",
        b"n0:310:351 [0] misc/socket.cc:1 NCCL WARN Net : strange\n  indented output\n",
        b"",
        b"\n\n",
    ],
)
def test_what_is_whole_or_not_understood_anyhow_stays_as_it_is(text: bytes) -> None:
    assert not looks_broken(text)
    assert b"".join(whole_lines(iter([text]))) == text
