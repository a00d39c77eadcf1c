"""Vector operations on bytes, and heads of lines, give what reading one by one gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import plain_rows
from topodiag.evidence.nccl_log.fast import heads as scan_heads
from topodiag.evidence.nccl_log.fast import scan
from topodiag.evidence.nccl_log.fast.bytes import (
    PAD,
    Block,
    Dictionary,
    first_of,
    hex_numbers,
    keep_last,
    leading_digits,
    leading_hex,
    numbers,
)
from topodiag.evidence.nccl_log.fast.scan import extract

_EIGHT = st.binary(min_size=8, max_size=8) | st.text("0123456789abcdefg/ :", min_size=8, max_size=8).map(str.encode)


def _words(texts: list[bytes]) -> np.ndarray:
    return np.array([int.from_bytes(text, "little") for text in texts], dtype=np.uint64)


def _run(text: bytes, letters: bytes) -> bytes:
    return text[: len(text) - len(text.lstrip(letters))]


@given(st.lists(_EIGHT, min_size=1, max_size=20))
def test_digits_and_their_numbers_are_those_of_int(texts: list[bytes]) -> None:
    words = _words(texts)
    decimal = [_run(text, b"0123456789") for text in texts]
    assert leading_digits(words).tolist() == [len(run) for run in decimal]
    assert numbers(words, leading_digits(words)).tolist() == [int(run or b"0") for run in decimal]
    hexadecimal = [_run(text, b"0123456789abcdef") for text in texts]
    assert leading_hex(words).tolist() == [len(run) for run in hexadecimal]
    assert hex_numbers(words, leading_hex(words)).tolist() == [int(run or b"0", 16) for run in hexadecimal]
    assert first_of(words, ord(":")).tolist() == [text.find(b":") % 9 for text in texts]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 24)), min_size=1, max_size=10), st.binary(min_size=50))
def test_windows_hold_the_bytes_asked_for_and_zeros(spans: list[tuple[int, int]], data: bytes) -> None:
    block = Block(data)
    start = np.array([at + PAD for at, _ in spans])
    length = np.array([size for _, size in spans])
    taken = [column.tobytes() for column in np.ascontiguousarray(block.rows(start, 4, length).T)]
    assert [text.rstrip(b"\0") for text in taken] == [data[at : at + size].rstrip(b"\0") for at, size in spans]
    rows = block.rows(start, 3)
    keep_last(rows, length)
    last = [column.tobytes() for column in np.ascontiguousarray(rows.T)]
    assert last == [data[at + 24 - size : at + 24].rjust(24, b"\0") for at, size in spans]
    assert not block.rows(start, 3, length * 0).any()


@given(st.lists(st.text("abc", max_size=20).map(str.encode), min_size=1, max_size=60), st.integers(1, 6))
def test_codes_of_a_dictionary_stand_for_texts_however_full_it_is(texts: list[bytes], bits: int) -> None:
    known = Dictionary(3)
    known._SLOT_BITS = bits  # type: ignore[misc]
    for part in (texts[::2], texts[1::2], texts):
        rows = np.array([np.frombuffer(text.ljust(24, b"\0"), "<u8") for text in part], dtype=np.uint64).reshape(-1, 3)
        codes = known.encode(np.ascontiguousarray(rows.T))
        assert [known.texts[code] for code in codes.tolist()] == part
    assert len(set(known.texts)) == len(known.texts) == len(set(texts))


# --- whole fronts of lines and heads alone find the same threads, however often and in which files they come


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
