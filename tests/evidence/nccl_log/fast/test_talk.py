"""Lines without a record: what applications print beside is searched for, and read where it says something."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import plain_rows
from tests.tables import texts
from topodiag.evidence.nccl_log.fast import rows as scan_rows
from topodiag.evidence.nccl_log.fast import scan
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.grammar.spoken import SPEAKS

TEXTS = texts(__file__)
SAID = tuple(TEXTS["said"])
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
