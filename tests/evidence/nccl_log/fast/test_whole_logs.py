"""Whole logs line by line: real ones with their truth, and any bytes."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from topodiag.evidence.nccl_log.fast.rows import shape
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS

JOBS = Path(__file__).parents[5] / "shared" / "corpus" / "jobs"
LOGS = JOBS.parent / "logs"
needs_corpus = pytest.mark.skipif(not JOBS.is_dir(), reason="the corpus is not here")
NAMES = (
    "b_h100_2node", "d_pcie8_nop2p", "f_h100_2node_1nic", "i_dup_gpu", "v2.18.6-1_a_h100_1node",
    "v2.21.5-1_d_pcie8_l40s", "v2.27.7-1_g_tp8_packed", "v2.30.7-1_a_h100_1node",
)  # fmt: skip
PATTERN = re.compile(
    r"Pattern (\d+), crossNic (\d+), nChannels (\d+), bw ([\d.]+)/([\d.]+), type (\w+)/(\w+), sameChannels (\d)"
)


def printed_via(row: dict[str, Any]) -> str:
    """A connection as the log has it, its device back in its place."""
    if row["net_dev"] < 0:
        return str(row["via"])
    kind, name, *rest = str(row["via"]).split("/")
    return "/".join([kind, name, str(row["net_dev"]), *rest])


@needs_corpus
@pytest.mark.parametrize("name", NAMES)
def test_what_is_extracted_adds_up_to_what_was_counted(name: str) -> None:
    counted = json.loads((JOBS / name / "truth.json").read_text(encoding="utf-8"))["counted"]
    events: Counter[str] = Counter()
    transports: Counter[str] = Counter()
    patterns: list[list[str]] = []
    for path in sorted((JOBS / name / "logs").glob("*.gz")):
        facts = extract_plain(gzip.decompress(path.read_bytes()), 0, 0)
        (shard,) = facts["shards"].rows()
        assert shard["records"] == shard["understood"] > 0
        for row in facts["init"].rows():
            events[row["event"]] += row["count"]
        for row in facts["conn"].rows():
            transports[printed_via(row)] += row["count"]
        if "rank000" in path.name:
            for row in facts["print"].rows():
                patterns += [list(match) for match in PATTERN.findall(row["text"])]
    assert (events["start"], events["complete"]) == (counted["init_start"], counted["init_complete"])
    assert transports == counted["transports"]
    assert sorted(patterns) == sorted(counted.get("patterns_rank0", []))


@needs_corpus
def test_almost_all_records_of_logs_in_the_wild_are_understood() -> None:
    records = understood = 0
    for path in sorted(LOGS.glob("*.txt"))[::4]:
        (shard,) = extract_plain(path.read_bytes(), 0, 0)["shards"].rows()
        records += shard["records"]
        understood += shard["understood"]
    assert records > 1000
    assert understood / records > 0.995


def test_places_count_bytes_of_the_file_and_lines_of_the_shard() -> None:
    data = (
        b"noise \xff\xfe\r\na:1:2 [0] NCCL INFO Using network IB\n"
        b"[0] a:1:2 [0] NCCL INFO zz 12 0x7f\nNCCL version 2.3.7"
    )
    facts = extract_plain(data, 5, 1000)
    (shard,) = facts["shards"].rows()
    assert shard == {"file": 5, "base": 1000, "size": len(data), "lines": 4, "records": 2, "understood": 1}
    network, version = facts["text"].rows()
    assert (network["kind"], network["offset"], network["line"]) == ("network", 1010, 2)
    assert (version["kind"], version["line"]) == ("version", 4)
    assert facts["threads"].rows() == [
        {"file": 5, "host": "a", "pid": 1, "tid": 2, "dev": 0},
        {"file": 5, "host": "", "pid": -1, "tid": -1, "dev": -1},
    ]
    (unread,) = facts["unread"].rows()
    assert (unread["shape"], unread["text"]) == ("zz # x", "zz 12 0x7f")


def test_a_warning_is_an_event_with_the_place_label_and_time_of_its_record() -> None:
    data = b"\n[2026-01-11 03:22:19] a:1:2 [0] init.cc:7 NCCL WARN x\n\na:1:2 [0] init.cc:7 NCCL WARN x\n"
    (row,) = extract_plain(data, 0, 0)["event"].rows()
    assert (row["level"], row["place"], row["text"], row["count"]) == ("WARN", "init.cc:7", "x", 2)
    assert row["ts"] == 1768101739.0
    assert row["last_offset"] > row["offset"] == 1


def test_nothing_gives_empty_tables() -> None:
    facts = extract_plain(b"", 0, 0)
    assert facts["shards"].rows()[0]["lines"] == 0
    assert all(len(facts[name]) == 0 for name in SCHEMAS if name != "shards")


def test_shapes_forget_numbers_and_are_bounded() -> None:
    assert shape("dev 12 at 0x7fAB speed 1a2b 3.5") == "dev # at x speed x #.#"
    assert len(shape("ab " * 1000)) == 200


PIECES = st.sampled_from(
    [
        b"a:1:2 [0] NCCL INFO ", b"\n", b"\r", b"Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", b"comm 0x5 rank 0 nranks 2 ",
        b"- Init START", b"\xff\xc3", b"\x00", b"NCCL WARN ", b"Watchdog caught collective operation timeout",
        b"99999999999999999999999", b"Trees [0] 1/-1/-1->0->-1", b" : ", b"\x1b[1m", b"[1,0]<stdout>:",
        b"NCCL version 2",
        b"AllReduce: opCount f sendbuff 0x1 recvbuff 0x2 count 9 datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x0",
    ]
)  # fmt: skip


@given(st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=25).map(b"".join)))
def test_any_bytes_become_facts(data: bytes) -> None:
    facts = extract_plain(data, 0, 0)
    (shard,) = facts["shards"].rows()
    assert shard["size"] == len(data)
    assert 0 <= shard["understood"] <= shard["records"]
    unread = sum(row["count"] for row in facts["unread"].rows())
    assert shard["records"] - shard["understood"] == unread
