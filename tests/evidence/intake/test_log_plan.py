"""From what the user named to spans and pieces: what is read, in which order, and what is told of the rest."""

import gzip
import io
import os
import pickle
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.log_plan import MAX_SPANS, Plan, make_tasks, plan_of
from topodiag.evidence.nccl_log.input import streams
from topodiag.evidence.nccl_log.input.streams import MAX_LINE_BYTES, Reading, pieces, text_of
from topodiag.fleet.work import Read, _first_line, extract_pieces
from topodiag.model.errors import InputError

RECORD = b"node1:11:12 [0] NCCL INFO Using network IB\n"
BOMB = b"\0" * (64 << 20)


def make_plan(inputs: Sequence[str]) -> Plan:
    return plan_of(gather(inputs, quick=True))


def unpacked(raw: bytes, *coding: str) -> tuple[bytes, list[str]]:
    reading = Reading()
    text = b"".join(text_of(io.BytesIO(raw), coding, reading))
    assert reading.raw <= len(raw)
    return text, reading.notes


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


# What is found


def test_files_come_in_order_of_their_path_whatever_the_order_given(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / name).write_bytes(RECORD)
    given_paths = [str(tmp_path / name) for name in ("c", "a", "b")]
    assert [source.path for source in make_plan(given_paths).sources] == sorted(given_paths)


def test_a_file_given_twice_is_read_once_and_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(RECORD)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    plan = make_plan([str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path)])
    assert [source.path for source in plan.sources] == [str(tmp_path / "a")]
    assert plan.notes == (f"{tmp_path}/b: the same file as another that was given, read once",)


def test_a_folder_is_searched_by_content_and_the_rest_is_told(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "noname").write_bytes(RECORD)
    (tmp_path / "core.17").write_bytes(b"\x7fELF\2\1\1" + bytes(100))
    (tmp_path / "weights.bin").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "trace_0").write_bytes(pickle.dumps({"entries": [], "pg_config": {}}, protocol=2))
    (tmp_path / "trace_1.json").write_text('{"version": "2.4", "pg_config": {"0": {}}, "entries": []}')
    (tmp_path / "other.pkl").write_bytes(pickle.dumps([1, 2, 3], protocol=2))
    (tmp_path / ".snapshot").mkdir()
    (tmp_path / ".snapshot" / "log").write_bytes(RECORD)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        plan = make_plan([str(tmp_path)])
    assert [source.path for source in plan.sources] == [str(tmp_path / "deep" / "noname")]
    assert tuple(source.path for source in plan.flight) == (str(tmp_path / "trace_0"), str(tmp_path / "trace_1.json"))
    text = "\n".join((*plan.notes, *plan.broken))
    for name in ("core.17", "weights.bin", "other.pkl", ".snapshot", "lost", "pipe", "/s"):
        assert name in text


def test_a_pattern_that_the_shell_left_is_expanded(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "rank0.log").write_bytes(RECORD)
    assert len(make_plan([str(tmp_path / "**" / "*.log")]).sources) == 1
    with pytest.raises(InputError, match="matches no file"):
        make_plan([str(tmp_path / "*.txt")])


@pytest.mark.parametrize("path", ["", "nowhere.log", "a\0b"])
def test_what_is_no_file_is_one_clear_error(path: str) -> None:
    with pytest.raises(InputError):
        make_plan([path])


def test_one_wrong_file_among_good_ones_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(RECORD)
    (tmp_path / "b.log").write_bytes(b"")
    plan = make_plan([str(tmp_path / "a.log"), str(tmp_path / "b.log")])
    assert len(plan.sources) == 1
    assert plan.notes == (f"{tmp_path}/b.log: is no NCCL log: it is empty",)


def test_a_bundle_is_sent_to_the_scan(tmp_path: Path) -> None:
    path = tmp_path / "node.tar.gz"
    path.write_bytes(gzip.compress(b"./manifest.json".ljust(257, b"\0") + b"ustar" + bytes(250)))
    with pytest.raises(InputError, match=r"a bundle of a node .*topodiag scan "):
        make_plan([str(path)])


# Packed texts


def test_archives_of_several_members_are_read_whole() -> None:
    parts = [RECORD * 1000, b"", RECORD * 3]
    assert unpacked(b"".join(map(gzip.compress, parts)), "gzip") == (b"".join(parts), [])
    assert unpacked(b"".join(map(gzip.compress, parts)) + bytes(512), "gzip") == (b"".join(parts), [])
    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0\1\2\3\4"
    assert unpacked(skippable + b"".join(map(zstandard.compress, parts)), "zstd") == (b"".join(parts), [])


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_of_a_cut_archive_counts_what_was_readable(coding: str) -> None:
    text = b"".join(b"node1:%d:12 [0] NCCL INFO Using network IB\n" % n for n in range(40_000))
    packed = gzip.compress(text) if coding == "gzip" else zstandard.compress(text)
    got, notes = unpacked(packed[: len(packed) * 2 // 3], coding)
    assert text.startswith(got)
    assert len(got) > len(text) // 3
    assert notes == ["the archive is cut short: what was readable counts"]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_damaged_archive_gives_a_note_and_no_error(coding: str) -> None:
    text = b"".join(b"node1:%d:12 [0] NCCL INFO Using network IB\n" % n for n in range(40_000))
    packed = bytearray(gzip.compress(text) if coding == "gzip" else zstandard.compress(text))
    packed[len(packed) // 2 :] = b"\xff" * (len(packed) - len(packed) // 2)
    got, notes = unpacked(bytes(packed), coding)
    assert got[:1000] == text[:1000]
    assert len(notes) == 1
    whole = gzip.compress(RECORD) if coding == "gzip" else zstandard.compress(RECORD)
    got, notes = unpacked(whole + b"garbage after it", coding)
    assert got == RECORD
    assert "follows the archive" in notes[0]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_bomb_is_unpacked_in_bounded_blocks(coding: str) -> None:
    packed = gzip.compress(BOMB) if coding == "gzip" else zstandard.compress(BOMB)
    sizes = [len(block) for block in text_of(io.BytesIO(packed), (coding,), Reading())]
    assert sum(sizes) == len(BOMB)
    assert max(sizes) <= 1 << 20


def test_a_zstd_window_that_would_fill_the_memory_is_refused() -> None:
    # RFC 8878, 3.1.1.1.2: window descriptor 0xa0 asks for 1 GiB.
    got, notes = unpacked(b"\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00" + bytes(20), "zstd")
    assert got == b""
    assert "damaged" in notes[0]


@given(st.binary(max_size=300), st.sampled_from(["gzip", "zstd", "utf-16-le"]))
def test_any_bytes_are_survived(junk: bytes, coding: str) -> None:
    magic = {"gzip": gzip.compress(b"x")[:10], "zstd": zstandard.compress(b"x")[:6], "utf-16-le": b"\xff\xfe"}[coding]
    unpacked(junk, coding)
    unpacked(magic + junk, coding)


def test_utf16_is_read_as_text() -> None:
    assert unpacked(RECORD.decode().encode("utf-16"), "utf-16-le") == (RECORD, [])


# Pieces


@given(
    st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"\r")), max_size=30),
    st.booleans(),
    st.integers(1, 90),
    st.integers(1, 90),
)
def test_pieces_are_the_file_cut_at_line_ends(lines: list[bytes], ended: bool, size: int, block: int) -> None:
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    got = list(pieces(blocks(data, block), size))
    assert b"".join(piece.data for piece in got) == data
    assert [piece.base for piece in got] == [sum(len(piece.data) for piece in got[:n]) for n in range(len(got))]
    assert all(piece.data.endswith(b"\n") for piece in got[:-1])
    assert not any(piece.cut for piece in got)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 60))
def test_spans_share_the_lines_among_them(
    tmp_path_factory: pytest.TempPathFactory, width: int, lines: int, chunk: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "spans.log"
    data = b"".join(b"%0*d\n" % (1 + (n * 7) % width, n) for n in range(lines)) + b"unfinished"
    path.write_bytes(data)
    got = []
    for task in make_tasks(make_plan([str(path)]), chunk):
        for span in task:
            with path.open("rb") as stream:
                base = _first_line(stream, span)
                if base >= 0:
                    stream.seek(base)
                    got += [(p.base, p.data) for p in pieces(text_of(stream, (), Reading()), chunk, base, span.end)]
    assert b"".join(text for _, text in got) == data
    assert all(base == sum(len(text) for _, text in got[:n]) for n, (base, _) in enumerate(got))


@pytest.mark.parametrize("size", [1, 1 << 20, 5 << 20])
def test_a_huge_line_is_cut_at_the_same_places_for_any_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "READ_BYTES", 1 << 16)
    bar = b"\r 99%|" * (MAX_LINE_BYTES // 4)
    data = RECORD + b"x" * (2 * MAX_LINE_BYTES + 5) + b"\n" + RECORD + bar + b"\r" + RECORD + RECORD
    got = list(pieces(blocks(data, 1 << 16), size))
    assert b"".join(piece.data for piece in got) == data
    assert sum(extract_pieces([Read(0, piece)]).measures[0].lines for piece in got) == data.count(b"\n")
    assert max(len(piece.data) for piece in got) <= size + 2 * MAX_LINE_BYTES
    cuts = [piece.base + len(piece.data) for piece in got if not piece.data.endswith(b"\n")]
    first = len(RECORD)
    assert cuts[:2] == [first + MAX_LINE_BYTES, first + 2 * MAX_LINE_BYTES]
    assert all(data[cut - 1 : cut] == b"\r" for cut in cuts[2:])
    assert len(cuts) == 3


def test_small_files_share_a_task_and_large_ones_are_cut(tmp_path: Path) -> None:
    for number in range(MAX_SPANS + 1):
        (tmp_path / f"{number:03}").write_bytes(RECORD)
    (tmp_path / "zz").write_bytes(RECORD * 100)
    tasks = list(make_tasks(make_plan([str(tmp_path)]), 4000))
    assert [len(task) for task in tasks] == [MAX_SPANS, 1, 1, 1] or sum(len(task) for task in tasks) == MAX_SPANS + 3
    assert max(span.end - span.start for task in tasks for span in task) <= 4000
