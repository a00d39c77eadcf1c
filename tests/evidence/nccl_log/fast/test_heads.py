"""What one shard learned of the fronts of lines helps the next one, and changes nothing that it says."""

from __future__ import annotations

import threading

import pytest

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import plain_rows
from topodiag.evidence.nccl_log.fast import heads as scan_heads
from topodiag.evidence.nccl_log.fast.scan import extract


def log(host: str, ranks: range) -> bytes:
    return "".join(
        f"{host}:{100 + rank}:{200 + rank} [{rank % 8}] NCCL INFO Channel {channel:02d}/0 : {rank}[0] -> 1[1] via P2P\n"
        for channel in range(8)
        for rank in ranks
    ).encode()


def same(data: bytes) -> None:
    assert plain_rows(extract(data, 0, 0)) == plain_rows(extract_plain(data, 0, 0))


def test_shards_of_the_same_and_of_other_threads_follow_each_other() -> None:
    scan_heads._fronts.clear()
    for data in (log("a", range(8)), log("a", range(4, 20)), log("b", range(3)), log("a", range(2))):
        same(data)
    assert len(scan_heads._fronts.heads) == 8 + 12 + 3


def test_a_front_is_read_once_for_all_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    scan_heads._fronts.clear()
    same(log("a", range(8)))
    monkeypatch.setattr(scan_heads.Heads, "_learn", lambda *_: pytest.fail("all of them are known"))
    same(log("a", range(8)))


def test_fronts_are_let_go_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_heads, "_MOST_FRONTS", 10)
    scan_heads._fronts.clear()
    for host in "abcd":
        same(log(host, range(6)))
        assert len(scan_heads._fronts.heads) <= 16


def test_threads_of_one_process_do_not_meet() -> None:
    done: list[int] = []

    def work(host: str) -> None:
        for first in range(0, 40, 4):
            same(log(host, range(first, first + 4)))
        done.append(len(scan_heads._fronts.heads))

    several = [threading.Thread(target=work, args=(host,)) for host in "abc"]
    for each in several:
        each.start()
    for each in several:
        each.join()
    assert done == [40, 40, 40]
