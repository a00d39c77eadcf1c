"""The fast extractor gives what the plain one gives."""

import time
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.depth import some_of
from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import plain_rows
from tests.tables import examples, parts, texts, with_texts
from topodiag.evidence.nccl_log.fast import rows as scan_rows
from topodiag.evidence.nccl_log.fast import scan
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.grammar.spoken import SPEAKS
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, TAIL, Facts
from topodiag.evidence.nccl_log.tables.resolve import resolve

LOGS = Path(__file__).parents[5] / "shared" / "corpus" / "logs"
_TEXTS = texts(__file__)
_MESSAGES, _HEADS = _TEXTS["messages"], _TEXTS["heads"]
_LABELS, _APPLICATION = _TEXTS["labels"], _TEXTS["application"]

_records = st.builds("".join, st.tuples(*(st.sampled_from(x) for x in (_LABELS, _HEADS, _MESSAGES))))
_torn = st.builds(lambda line, cut: line[cut:], _records, st.integers(0, 60))
_line = st.one_of(
    _records, _records, _records, st.sampled_from(_APPLICATION), _torn,
    st.builds("".join, st.tuples(_records, _records)), st.builds("".join, st.tuples(_torn, st.just("\r"))),
    st.text(alphabet="Nn[]: 0aÿ\tL", max_size=12),
)  # fmt: skip


def _same(data: bytes) -> None:
    facts = scan.extract(data, 3, 4096)
    assert plain_rows(facts) == plain_rows(extract_plain(data, 3, 4096))
    (shard,) = facts["shards"].rows()
    unread = sum(row["count"] for row in facts["unread"].rows())
    assert (shard["size"], shard["records"] - shard["understood"]) == (len(data), unread)


@given(st.binary(max_size=300))
def test_any_bytes_give_the_plain_result(data: bytes) -> None:
    _same(data)


def _same_apart(texts: list[str]) -> None:
    """Each text is a file of its own; they are read together."""
    given = [(text.encode(), 7 - number, 100 * number) for number, text in enumerate(texts)]
    records = [plain_rows(extract_plain(*row)) for row in given]
    assert plain_rows(resolve(scan.extract_several(given))) == {
        name: sorted((row for rows in records for row in rows[name]), key=repr) for name in SCHEMAS
    }


@given(st.lists(_line, max_size=40), st.sampled_from(["", "\n"]))
def test_any_mixture_of_lines_gives_the_plain_result(lines: list[str], end: str) -> None:
    _same(("\n".join(lines) + end).encode())


@pytest.mark.parametrize("second", ["h:1:2 [0] INFO ", "h:1:2 [0] INFO Using network IB", "h:1:2 [0] x.cc:7 WARN "])
@examples("first")
def test_a_second_record_on_a_line_may_be_of_a_new_thread_and_empty(first: str, second: str) -> None:
    _same(f"node01:311:352 [0] NCCL INFO {first}{second}\nh:1:2 [0] NCCL INFO Using network IB\n".encode())


@given(st.lists(st.lists(_line, max_size=15), max_size=5), st.sampled_from(["", "\n"]))
def test_files_that_are_read_together_give_what_each_gives_alone(files: list[list[str]], end: str) -> None:
    _same_apart(["\n".join(lines) + end for lines in files])


@pytest.mark.parametrize("text", ["", "epoch 1\n", "epoch 1\nepoch 2", "\n\n", "NCCL\n", "epoch 1\rfailed"])
def test_files_of_another_kind_give_the_plain_result(text: str) -> None:
    _same(text.encode())


@pytest.mark.parametrize("label", _LABELS)
def test_every_message_behind_every_head_gives_the_plain_result(label: str) -> None:
    for head in some_of(_HEADS, label):
        _same("\n".join(label + head + message for message in _MESSAGES * 2).encode())


def test_each_head_stands_behind_some_label() -> None:
    assert {head for label in _LABELS for head in some_of(_HEADS, label)} == set(_HEADS)


def test_the_size_of_blocks_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    data = "\n".join(_HEADS[n % 2] + _MESSAGES[(7 * n) % len(_MESSAGES)] for n in range(300)).encode()
    whole = plain_rows(scan.extract(data, 0, 0))
    monkeypatch.setattr(scan, "BLOCK", 700)
    assert plain_rows(scan.extract(data, 0, 0)) == whole == plain_rows(extract_plain(data, 0, 0))


_NUMBERS = st.sampled_from(["0", "7", "-1", "00000012", "123456789", "99999999999999999999", "1f", "(nil)", "", "a b"])
_DIGITS = st.integers(0, 1 << 66).map(str) | _NUMBERS
_HEX = st.integers(0, 1 << 66).map(lambda value: f"0x{value:x}") | _NUMBERS


@given(
    st.sampled_from(["AllReduce", "Send", "a_b", "NCCL", "AllGatherOfMoreLettersThanAWordCanHold", "4"]),
    st.tuples(*[_DIGITS] * 6, *[_HEX] * 3),
)
def test_operations_of_any_numbers_give_the_plain_result(func: str, said: tuple[str, ...]) -> None:
    count, elements, dtype, redop, root, nranks, send, receive, comm = said
    _same(
        f"n:1:1 [0] NCCL INFO {func}: opCount {count} sendbuff {send} recvbuff {receive} count {elements} "
        f"datatype {dtype} op {redop} root {root} comm {comm} [nranks={nranks}] stream 0x1".encode()
    )


@given(st.sampled_from(["START", "COMPLETE"]), st.booleans(), st.tuples(*[_DIGITS] * 6, *[_HEX] * 2))
def test_inits_of_any_numbers_give_the_plain_result(end: str, member: bool, said: tuple[str, ...]) -> None:
    rank, nranks, cuda, nvml, bus, more, comm, job = said
    start = (
        f"comm {comm} rank {rank} nRanks {nranks} nNodes {cuda} localRanks {nvml} localRank {bus} MNNVL {more}"
        if member
        else f"ncclCommInitRank comm {comm} rank {rank} nranks {nranks} cudaDev {cuda} nvmlDev {nvml} busId {bus} "
        f"commId {job} - Init {end}"
    )
    _same(f"2025-08-14 09:31:07 n:1:1 [0] NCCL INFO {start}\nn:1:1 [0] NCCL INFO cudaDriverVersion 13000".encode())


@given(st.lists(st.tuples(*[_DIGITS] * 4, st.sampled_from(["/", "/1", "/IB/", "/3(", ")", "[send] via NET/IB/"]))))
@example([("0", "0", "0", "0", "/")] * 5 + [("10", "0", "0", "(nil)", "/1")])
def test_channels_of_any_numbers_give_the_plain_result(said: list[tuple[str, ...]]) -> None:
    forms = (
        "Channel {0}/{1} : {2}[{3}] -> {1}[{0}] [send] via NET/IB/{2}({3})/GDRDMA{4}",
        "Channel 01/1 : 2[3] -> 1[7] [receive] via NET/IB/{0}/GDRDMA(PCI)/Shared{4}",
        "Channel 01/1 : {2}[3] -> {1}[7] via P2P/{4}",
        "Ring {0} : {1} -> {2} -> {3}",
        "Ring 01 : {1} -> {2} -> {3}{4}",
    )
    lines = [f"n:1:1 [0] NCCL INFO {form.format(*texts)}" for texts in said for form in forms]
    _same("\n".join(lines).encode())


@pytest.mark.parametrize("label", ["", "{rank}: ", "2025-08-14 09:{minute:02d}:{second:02d}.{line:06d} "])
def test_lines_of_many_threads_give_the_plain_result(label: str) -> None:
    lines = []
    for line in range(6000):
        rank = (line // 3 * 7919) % 700
        front = label.format(rank=rank, minute=line // 60 % 60, second=line % 60, line=line)
        message = _MESSAGES[line % 5]
        lines.append(f"{front}node{rank // 8}:{1000 + rank}:{2000 + rank} [{rank % 8}] NCCL INFO {message}")
    _same("\n".join(lines).encode())


@pytest.mark.parametrize("odd", ["\r", "\0", "\t", "\x1b[0m", "\x0b"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_control_character_in_a_line_gives_the_plain_result(odd: str, end: str) -> None:
    for at in some_of((lambda _: 0, lambda _: 3, lambda message: len(message) // 2, len), odd + end, 2):
        _same_apart([_HEADS[0] + text[: at(text)] + odd + text[at(text) :] + end for text in _MESSAGES])


def test_many_different_operations_are_rounded_as_the_plain_result() -> None:
    lines = (
        f"n:1:1 [0] NCCL INFO AllReduce: opCount {n:x} sendbuff 0x1 recvbuff 0x1 count {n * 37} datatype 7 op 0 root 0 "
        "comm 0x55 [nranks=4] stream 0x1"
        for n in range(200)
    )
    _same("\n".join(lines).encode())


def test_a_view_of_bytes_is_read_as_bytes() -> None:
    data = (_HEADS[0] + _MESSAGES[4] + "\n").encode()
    assert plain_rows(scan.extract(memoryview(data), 0, 0)) == plain_rows(scan.extract(data, 0, 0))
    assert len(scan.extract(b"", 0, 0)["conn"]) == 0


# --- what is gathered of lines: equal rows are one, contexts follow what threads name, operations are counted ---

_PLACES = {"gen", "offset", "last_offset"}


@examples("lines", "table", "rows")
def test_what_lines_make(lines: list[str], table: str, rows: list[dict[str, Any]]) -> None:
    """Rows of a table, with the numbers of lines, from 1, in the place of their offsets; threads by their order."""
    made = [with_texts(line, __file__) + "\n" for line in lines]
    number = dict(zip(accumulate(map(len, made), initial=1000), range(1, len(made) + 2), strict=True))
    facts = resolve(extract("".join(made).encode(), 5, 1000))
    shown = [
        {name: number[value] if name in _PLACES and value >= 0 else value for name, value in row.items()}
        for row in facts[table].rows()
    ]
    assert parts(shown, rows) == rows
    assert lines or all(len(facts[name]) == 0 for name in SCHEMAS if name != "shards")


def test_places_count_bytes_of_the_file_and_lines_of_the_shard() -> None:
    torn = b"[0] a:1:2 [0] NCCL INFO zz 12 0x7f\n"
    data = b"noise \xff\xfe\r\na:1:2 [0] NCCL INFO Using network IB\n" + torn + b"NCCL version 2.3.7"
    facts = extract(data, 5, 1000)
    (shard,) = facts["shards"].rows()
    assert shard == {"file": 5, "base": 1000, "size": len(data), "lines": 4, "records": 2, "understood": 1}
    places = {row["kind"]: (row["offset"], row["line"]) for row in facts["text"].rows()}
    assert places == {"network": (1010, 2), "version": (1082, 4)}


def _operations(counts: Iterable[int], elements: int | None = None) -> Facts:
    """Calls with these numbers, of so many elements or as many as their number."""
    form = _TEXTS["one"] + _TEXTS["op"].replace("opCount 0", "opCount {:x}").replace("count 8", "count {}")
    lines = (form.format(count, count if elements is None else elements) for count in counts)
    return extract("\n".join(lines).encode(), 0, 0)


def test_of_operations_the_last_and_their_number_are_kept() -> None:
    rows = [_operations(order, 8)["op"].rows() for order in ((3, 1, 2), (2, 1, 3))]
    assert [[(row["last"], row["count"]) for row in own] for own in rows] == [[(2, 3)], [(3, 3)]]


def test_more_sizes_than_can_be_kept_are_rounded_all_of_them_and_marked() -> None:
    rows = _operations(range(65))["op"].rows()
    assert sorted((row["elements"], row["count"]) for row in rows) == [
        (-64, 1), (-32, 32), (-16, 16), (-8, 8), (-4, 4), (-2, 2), (-1, 1), (0, 1),
    ]  # fmt: skip
    assert {row["last"] for row in rows} == {0, 1, 3, 7, 15, 31, 63, 64}


def test_the_last_operations_are_kept() -> None:
    tail = _operations(range(TAIL + 4), 8)["tail"].rows()
    assert [row["op_count"] for row in tail] == [*range(4, TAIL + 4)]
    assert {row["count"] for row in tail} == {1}


def test_shapes_forget_numbers_and_are_bounded() -> None:
    assert scan_rows.shape("dev 12 at 0x7fAB speed 1a2b 3.5") == "dev # at x speed x #.#"
    assert len(scan_rows.shape("ab " * 1000)) == 200


@pytest.mark.skipif(not LOGS.is_dir(), reason="the corpus is not here")
def test_almost_all_records_of_logs_in_the_wild_are_understood() -> None:
    shards = [extract(path.read_bytes(), 0, 0)["shards"].rows()[0] for path in sorted(LOGS.glob("*.txt"))[::4]]
    records = sum(shard["records"] for shard in shards)
    assert records > 1000
    assert sum(shard["understood"] for shard in shards) / records > 0.995


# --- holes of zeros, which rotation with copytruncate leaves in a log, cost no more than other bytes ----------

LOG = (Path(__file__).parents[4] / "fixtures/jobs/init-hang/logs/nccl.gpu-a01.41000.log").read_bytes()
HOLE = b"\0" * (4 << 20)


def seconds(data: bytes) -> float:
    """CPU seconds, the least of three readings: what the machine adds to one of them is no cost of a byte."""
    readings = []
    for _ in range(3):
        began = time.process_time()
        extract(data, 0, 0)
        readings.append(time.process_time() - began)
    return min(readings)


def test_a_byte_of_a_hole_costs_no_more_than_one_of_a_record() -> None:
    plain = LOG * 400
    extract(plain, 0, 0)
    assert seconds(HOLE + LOG) / len(HOLE) < max(2 * seconds(plain) / len(plain), 1e-7)


def test_records_around_a_hole_are_read_by_both_extractors() -> None:
    first, last = LOG[:1000].rpartition(b"\n")[0] + b"\n", LOG[1000:]
    torn = first + b"\0" * 5000 + last
    assert plain_rows(extract(torn, 0, 0)) == plain_rows(extract_plain(torn, 0, 0))
    assert len(extract(torn, 0, 0)["threads"]) == 1


# --- lines without a record: what applications print beside is searched for, and read where it says something

SAID = tuple(_TEXTS["said"])
TALK = (
    " iteration 17/ 500000 | consumed samples: 17408 | lm loss: 2.1E+00 | grad norm: 0.311 |",
    "2026-11-20 12:00:00,123 INFO trainer.py:88 step 3 loss 2.5",
    "[2026-11-20 12:00:00] [INFO] saving checkpoint",
    "Epoch 3:  40%|####      | 4/10 [00:02<00:03, 3.52it/s]\rEpoch 3:  50%|#####     | 5/10",
    "step 3 loss 2.5 tokens/s 81321",
    "\x1b[32mstep 4\x1b[0m loss 2.5",
    "",
    "\x00\x00\x00",
    "naïve café – ünïcode".encode().decode("latin-1"),
)
RECORD = "node-a:41:52 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"


def rows(data: bytes) -> object:
    return plain_rows(extract(data, 0, 0))


@pytest.mark.parametrize("said", SAID)
def test_what_is_said_is_found_in_the_middle_of_talk(said: str) -> None:
    facts = extract_plain(said.encode() + b"\n", 0, 0)
    assert sum(len(facts[name]) for name in facts.tables if name != "shards") > 0
    data = "\n".join([*TALK, RECORD, *TALK, said, *TALK, RECORD, ""]).encode()
    assert rows(data) == plain_rows(extract_plain(data, 0, 0))
    data = said.encode()
    assert rows(data) == plain_rows(extract_plain(data, 0, 0))


@pytest.mark.parametrize("torn", ["\x1b[1m", "\x00", "\x1b[0m\x00"])
@pytest.mark.parametrize("said", SAID)
def test_colours_and_zeros_hide_nothing(said: str, torn: str) -> None:
    middle = len(said) // 2
    data = "\n".join(
        part[:at] + torn + part[at:] for part in (said, RECORD, *TALK) for at in (1, middle, len(part) - 1)
    ).encode()
    assert rows(data) == plain_rows(extract_plain(data, 0, 0))


def test_few_lines_and_many_are_searched_for_the_same_words() -> None:
    lines = [b"x", *(b"\xff " + word + b" y" for word in SPEAKS), *(word[:-1] for word in SPEAKS)]
    edges = np.cumsum([0, *map(len, lines)], dtype=np.int32)
    together = scan._speaking(b"".join(lines), edges)
    alone = [bool(scan._speaking(line, np.array([0, len(line)], np.int32))[0]) for line in lines]
    assert together.tolist() == alone
    assert alone[:2] == [False, True]


@given(st.lists(st.sampled_from((*SAID, *TALK, RECORD)), max_size=30))
def test_any_mixture_gives_what_reading_line_by_line_gives(lines: list[str]) -> None:
    data = "".join(line + "\n" for line in lines).encode()
    assert rows(data) == plain_rows(extract_plain(data, 0, 0))


@given(
    st.lists(
        st.sampled_from(
            (RECORD, SAID[0], TALK[3], "\n", "\r\n", "\r\r\n", "\r", "\x1b[0m", "\x1b[31;1m", "\x1b", "\x00")
        ),
        max_size=14,
    )
)
def test_colours_zeros_and_carriage_returns_anywhere_change_nothing(parts: list[str]) -> None:
    data = "".join(parts).encode()
    assert rows(data) == plain_rows(extract_plain(data, 0, 0))


def test_coloured_records_and_those_of_windows_are_not_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    label = "\x1b[36m(RayTrainWorker pid=3)\x1b[0m "
    data = "".join(label + RECORD.replace("00/0", f"{channel:02d}/0") + "\r\n" for channel in range(40)).encode()
    expected = plain_rows(extract_plain(data, 0, 0))
    monkeypatch.setattr(scan_rows, "rows_of_line", None)
    assert rows(data) == expected


def test_talk_is_not_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(scan_rows, "rows_of_line", lambda text: read.append(text) or ())
    extract("\n".join([*TALK, RECORD] * 20).encode(), 0, 0)
    assert read == []


BAR = "\r".join(f"Epoch 0: {at:3}%|#| {at}/100 [00:10<01:13,  1.19it/s]" for at in range(100))


@pytest.mark.parametrize("said", [text for text in SAID if "\r" not in text and "\n" not in text])
def test_the_redraws_of_a_bar_hide_nothing_that_is_printed_beside_it(said: str) -> None:
    [*alone], [*beside] = (
        scan_rows.rows_of_line(said.encode()),
        scan_rows.rows_of_line(f"{BAR}\r{said}\r{BAR}".encode()),
    )
    assert [rows for _, rows, _ in alone] == [rows for _, rows, _ in beside]


def test_the_redraws_of_a_bar_say_nothing() -> None:
    assert [*scan_rows.rows_of_line(BAR.encode())] == []
