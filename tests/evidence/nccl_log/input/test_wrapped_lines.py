"""A watchdog's sentence that a terminal, a mail or a forum broke is put together again; all else stays as it is."""

import pytest

from tests.tables import examples
from topodiag.evidence.nccl_log.input.wrapped_lines import looks_broken, whole_lines

HEAD = b"n0:310:351 [0] NCCL INFO "
PIECES = (
    HEAD, b"n0:310:351 [0]", b"[0] NCCL INFO ", b"NCCL WARN ", b"3: " + HEAD, b"[1,3]<stdout>:", b"\x1b[0m", b"\0",
    b" ", b"a" * 250, b"Channel 00/0 : 0[0] -> 9[1] [send] via", b" NET/IB/0", b"NET/IB : Using [0]mlx5_0:1/IB",
    b"; OOB eth0", b"[Rank 3] Watchdog caught collective operation", b"timeout: WorkNCCL(SeqNum=7)",
    b"before timing out.", b"\xff", b"",
)  # fmt: skip


def whole(text: bytes) -> list[bytes]:
    return b"".join(whole_lines(iter([text]))).split(b"\n")


@examples("broken", "mended")
def test_a_broken_watchdog_is_whole_again_and_keeps_the_numbers_of_the_lines_behind_it(
    broken: bytes, mended: bytes
) -> None:
    lines = whole(broken + b"\nlast line\n")
    assert lines[0] == mended
    assert len(lines) == len((broken + b"\nlast line\n").split(b"\n"))
    assert lines[-2] == b"last line"
    assert looks_broken(broken + b"\n")


@examples("text")
def test_what_is_whole_or_not_understood_anyhow_stays_as_it_is(text: bytes) -> None:
    assert not looks_broken(text)
    assert b"".join(whole_lines(iter([text]))) == text


@pytest.mark.parametrize("label", [b"", b"3: ", b"[1,3]<stdout>:"])
@pytest.mark.parametrize("first", [HEAD + b"NET/IB : Using [0]mlx5_0:1/IB", b"n0:310:351 [0]", b"n0:310:351", b"words"])
def test_a_line_in_front_of_a_record_with_its_head_is_whole(first: bytes, label: bytes) -> None:
    assert not looks_broken(first + b"\n" + label + HEAD + b"Using network IB")


WORK = b"(SeqNum=7, OpType=ALLGATHER, NumelIn=8, NumelOut=64, Timeout(ms)=600000)"


@pytest.mark.parametrize("end", [b"", b" ran for 600100 milliseconds before timing out."])
def test_a_watchdogs_sentence_of_two_lines_is_whole_with_its_work(end: bytes) -> None:
    text = b"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL\n" + WORK + end + b"\n[Rank 3] Some words."
    assert whole(text)[0] == b"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL" + WORK + end
