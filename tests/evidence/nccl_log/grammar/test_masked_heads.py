"""Heads of any kind: masked, without a host, behind any label; and prose that only speaks of NCCL's levels."""

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.tables import examples
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.grammar.prefix import records

MESSAGE = "Using network Socket"


@examples("front", "who")
def test_a_head_that_was_masked_or_taken_off_still_is_a_record(front: str, who: tuple[str, int, int, int]) -> None:
    found = list(records(f"{front}NCCL INFO {MESSAGE}"))
    assert [(record.host, record.pid, record.tid, record.dev, record.message) for record in found] == [(*who, MESSAGE)]


def test_the_place_of_a_warning_is_read_behind_a_masked_head() -> None:
    (record,) = records("[Node-A]:[PID]:[Thread] [0] misc/socket.cc:483 NCCL WARN Net : Connect failed")
    assert (record.level, record.place, record.message) == ("WARN", "misc/socket.cc:483", "Net : Connect failed")


@examples("prose")
def test_prose_and_torn_heads_are_no_records(prose: str) -> None:
    assert not list(records(prose))


@examples("front")
def test_both_readers_agree_on_masked_heads(front: str) -> None:
    lines = "".join(
        f"{front}NCCL INFO {message}\n"
        for message in (MESSAGE, "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", "Channel 00/02 : 0 1", "strange words")
    )
    data = (lines * 3).encode()
    plain, fast = extract_plain(data, 0, 0), extract(data, 0, 0)
    for name in plain.tables:
        if name not in ("contexts",):
            assert _rows(fast[name]) == _rows(plain[name]), name


def _rows(table: object) -> list[str]:
    return sorted(map(str, table.rows()))  # type: ignore[attr-defined]
