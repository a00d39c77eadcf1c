"""Whole fronts of lines and heads alone find the same threads, however often and in which files they come."""

import pytest

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import plain_rows
from topodiag.evidence.nccl_log.fast import heads as scan_heads
from topodiag.evidence.nccl_log.fast import scan
from topodiag.evidence.nccl_log.fast.scan import extract


def log(host: str, ranks: range) -> bytes:
    return "".join(
        f"{host}:{100 + rank}:{200 + rank} [{rank % 8}] NCCL INFO Channel {channel:02d}/0 : {rank}[0] -> 1[1] via P2P\n"
        for channel in range(8)
        for rank in ranks
    ).encode()


@pytest.mark.parametrize("some", [1, 5, 2048])
def test_fronts_that_come_again_and_others_are_read_alike(some: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_heads, "_SOME", some)
    monkeypatch.setattr(scan, "BLOCK", 1000)
    data = b"".join([log("a", range(8)), log("a", range(4, 20)), log("b", range(3)), log("a", range(2))])
    assert plain_rows(extract(data, 0, 0)) == plain_rows(extract_plain(data, 0, 0))


def test_a_front_is_read_once_for_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "BLOCK", 1000)
    asked: list[bytes] = []
    who = scan_heads.who
    monkeypatch.setattr("topodiag.evidence.nccl_log.fast.shard.who", lambda head: asked.append(head) or who(head))
    extract(log("a", range(8)), 0, 0)
    assert len(asked) == len(set(asked)) == 8
