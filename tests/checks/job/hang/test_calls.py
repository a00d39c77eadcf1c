"""JOB006 by lines of operations alone, as a `grep opCount` over the ranks' logs leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import said

CALL = (
    "n1:{pid}:{pid} [{dev}] NCCL INFO {op}: opCount {number:x} sendbuff 0x7f{pid}0 recvbuff 0x7f{pid}0 count {count}"
    " datatype {dtype} op 0 root 0 comm 0x55{pid}0 [nranks={size}] stream 0x56{pid}0\n"
)


def calls(*counts: int, op: str = "Broadcast", number: int = 0, dtype: int = 4, size: int = 4, dev: int = -1) -> str:
    return "".join(
        CALL.format(pid=100 + at, dev=at if dev < 0 else dev, op=op, number=number, count=count, dtype=dtype, size=size)
        for at, count in enumerate(counts)
    )


def found(folder: Path, text: str) -> list[str]:
    return [each["message"] for each in said(folder, text)["findings"] if each["id"] == "JOB006"]


@pytest.mark.parametrize(
    "text",
    [
        calls(25503912, 53, 53, 53),
        calls(9, 9, 9, 9) + calls(512, 53, 53, 53, number=1),
        calls(25503912, 53, 53, size=8),
    ],
)
def test_the_first_call_that_differs_is_told_with_its_rank(tmp_path: Path, text: str) -> None:
    (message,) = found(tmp_path, text)
    assert message.startswith("rank 0 of communicator 0 called another operation than the others")


def test_heads_of_grep_before_the_lines_change_nothing(tmp_path: Path) -> None:
    lines = calls(25503912, 53, 53, 53).splitlines(keepends=True)
    text = "$ grep 'opCount 0 ' LOG.*.txt\n" + "".join(f"LOG.{at}.txt:{line}" for at, line in enumerate(lines))
    made = said(tmp_path, text)
    assert [each["id"] for each in made["findings"]] == ["JOB006"]
    assert made["facts"]["jobs"][0]["communicators"][0]["nranks"] == 4


@pytest.mark.parametrize(
    "text",
    [
        calls(53, 53, 53, 53),
        calls(53, 53, 53, 53) + calls(9, 9, 9, number=1),
        calls(25503912, 53, 53, 53, number=7),
        calls(53, 9, 9, 9) + calls(9, 9, 9, 9, number=0),
        calls(25503912, 53, op="Send"),
        calls(25503912, 53, 53, 53, dev=0),
        calls(25503912, 53, size=4).replace("n1:101", "n2:101"),
        calls(25503912, 53, 53, 53) + calls(8, 8, size=2),
    ],
)
def test_what_is_no_piece_of_one_communicator_from_its_start_is_not_compared(tmp_path: Path, text: str) -> None:
    assert not found(tmp_path, text)
