"""Streams of evidence: plain archives, what is spooled, files that are watched."""

import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.evidence.intake.test_gather import MATRIX, RECORD, tar
from topodiag.app.bench import bench
from topodiag.app.case.build import open_case
from topodiag.app.scan import scan
from topodiag.cli.progress import reading_words
from topodiag.evidence.intake import plain_tar
from topodiag.evidence.intake.archives import copy_members
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.pieces import Piece, read_piece, spooled
from topodiag.evidence.intake.watched import FINDING, JUDGING, READING, Watch, watch, watched
from topodiag.evidence.kinds import Kind
from topodiag.model.errors import InputError, TopodiagError

FILES = {"manifest.json": b"{}", "trees/a.tree": b"x" * 1300, "empty.txt": b"", "é.txt": b"utf-8", "b" * 99: b"long"}


def plain_members(data: bytes, most_bytes: int = 1 << 20, most_members: int = 9) -> dict[str, bytes] | None:
    return plain_tar.plain_members(data, most_bytes, most_members)


def packed(change: Callable[[tarfile.TarInfo], None] = lambda member: None, form: int = tarfile.USTAR_FORMAT) -> bytes:
    bytes_io = io.BytesIO()
    with tarfile.open(fileobj=bytes_io, mode="w", format=form) as archive:
        for name, data in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            change(member)
            archive.addfile(member, io.BytesIO(data))
    return bytes_io.getvalue()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_plain_archive_is_read_to_the_byte(form: int, pack: Callable[[bytes], bytes]) -> None:
    assert plain_members(pack(packed(form=form))) == FILES


def test_folders_hold_nothing_and_prefixes_are_part_of_names() -> None:
    bytes_io = io.BytesIO()
    name = "/".join(["folder" * 5] * 6)
    with tarfile.open(fileobj=bytes_io, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        top = tarfile.TarInfo("top")
        top.type = tarfile.DIRTYPE
        archive.addfile(top)
        archive.addfile(tarfile.TarInfo(name))
    assert plain_members(bytes_io.getvalue()) == {name: b""}


def _typed(kind: bytes) -> Callable[[tarfile.TarInfo], None]:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname = kind, "/etc/passwd"
        member.size = 0 if kind != tarfile.REGTYPE else member.size

    return change


def _called(name: str) -> Callable[[tarfile.TarInfo], None]:
    def change(member: tarfile.TarInfo) -> None:
        member.name = name

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(_typed(kind) for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE)),
        *(_called(name) for name in ("/etc/passwd", "../up", "a/../../b", "c" * 140)),
    ],
)
def test_anything_else_is_left_to_the_standard_library(change: Callable[[tarfile.TarInfo], None]) -> None:
    assert plain_members(packed(change, tarfile.GNU_FORMAT)) is None


WHOLE = packed()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"text\n", gzip.compress(b"text\n"), WHOLE[:700], WHOLE[:512], gzip.compress(WHOLE)[:-4],
        gzip.compress(WHOLE)[:60], gzip.compress(WHOLE) + b"more", WHOLE[:20] + b"?" + WHOLE[21:],
        WHOLE[:124] + b"\x80" + WHOLE[125:], WHOLE[:124] + b"9" * 11 + WHOLE[135:], b"\x1f\x8b" + bytes(600),
    ],
    ids=range(12),  # not by their bytes, which hold the time of their packing
)  # fmt: skip
def test_damage_is_left_to_the_standard_library(data: bytes) -> None:
    assert plain_members(data) is None


def test_what_is_too_much_is_left_to_the_bounded_reader() -> None:
    for data in (WHOLE, gzip.compress(WHOLE)):
        assert plain_members(data, len(WHOLE)) == FILES
        assert plain_members(data, len(WHOLE) - 1) is None
        assert plain_members(data, most_members=len(FILES) - 1) is None


# --- members of archives lie as plain files for a while, under the names by which a reader knows them


def is_log(piece: Piece) -> bool:
    return piece.is_any((Kind.NCCL_LOG,))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary files lie."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_wanted_members_are_files_for_a_while_and_keep_their_names(tmp_path: Path, place: Path) -> None:
    path = tar(tmp_path / "job.tar.gz", {"logs/b": RECORD * 2, "logs/a": RECORD, "topo": MATRIX})
    intake = gather([path])
    with spooled(intake, is_log) as plain:
        assert [piece.name for piece in plain.pieces] == [piece.name for piece in intake.pieces]
        a, b = plain.of(Kind.NCCL_LOG)
        assert (a.name, b.name) == (f"{path}/logs/a", f"{path}/logs/b")
        assert (Path(a.file).read_bytes(), Path(b.file).read_bytes()) == (RECORD, RECORD * 2)
        assert {Path(piece.file).parent.parent for piece in (a, b)} == {place}
        assert read_piece(plain, b).data == RECORD * 2
        assert [piece.spooled for piece in plain.of(Kind.NODE_TEXT)] == [""]
        with spooled(plain, is_log) as again:
            assert again is plain
    assert os.listdir(place) == []


def test_without_archives_nothing_is_written(tmp_path: Path, place: Path) -> None:
    (tmp_path / "a.log").write_bytes(RECORD)
    intake = gather([str(tmp_path / "a.log")])
    with spooled(intake, is_log) as plain:
        assert plain is intake
        assert os.listdir(place) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError("x", "is damaged")])
def test_the_folder_goes_with_an_error_too(tmp_path: Path, place: Path, error: BaseException) -> None:
    intake = gather([tar(tmp_path / "job.tar.gz", {"a": RECORD})])

    def reader() -> None:
        with spooled(intake, is_log):
            assert len(os.listdir(place)) == 1
            raise error

    with pytest.raises((KeyboardInterrupt, InputError)):
        reader()
    assert os.listdir(place) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    path = tar(tmp_path / "job.tar.gz", {"a": RECORD})
    with pytest.raises(TopodiagError, match=r"what .*job.tar.gz holds does not fit: No space left") as caught:
        copy_members(path, {"a": "/dev/full"})
    assert "TMPDIR" in caught.value.hint


def test_no_place_for_the_folder_is_told_in_one_line(tmp_path: Path, place: Path) -> None:
    intake = gather([tar(tmp_path / "job.tar.gz", {"a": RECORD})])
    place.rmdir()
    with pytest.raises(TopodiagError, match="does not fit: No such file"), spooled(intake, is_log):
        pass


def test_an_archive_that_changed_meanwhile_is_refused(tmp_path: Path, place: Path) -> None:
    path = tar(tmp_path / "job.tar.gz", {"a": RECORD})
    intake = gather([path])
    tar(tmp_path / "job.tar.gz", {"b": RECORD})
    with pytest.raises(InputError, match=r"job.tar.gz/a: is no longer in the archive"), spooled(intake, is_log):
        pass
    assert os.listdir(place) == []


# --- who looks on hears of every file that is read, once, and of the bytes of all


INCIDENTS = Path(__file__).parents[3] / "fixtures" / "incidents"


@pytest.mark.parametrize(
    ("judge", "incident"),
    [(open_case, "two-lanes-of-a-cable"), (scan, "two-lanes-of-a-cable"), (bench, "as-fast-as-its-wires")],
)
def test_every_file_is_found_read_once_and_judged(judge: Callable[[list[str]], object], incident: str) -> None:
    heard: list[tuple[str, int, int, int, int]] = []

    def tell(now: Watch) -> None:
        heard.append((now.stage, now.files, now.total, now.size, now.total_size))

    with watched(tell):
        judge([str(INCIDENTS / incident)])
    stages = [stage for stage, *_ in heard]
    assert list(dict.fromkeys(stages)) == [FINDING, READING, JUDGING]
    assert all(later[1] >= former[1] for former, later in pairwise(heard) if former[0] == later[0])
    read = [row for row in heard if row[0] == READING]
    assert read[0][1:4:2] == (0, 0)
    assert 0 < read[-1][1] <= read[-1][2]
    assert 0 < read[-1][3] <= read[-1][4]
    assert heard[-1][1] == heard[-1][2] > 0


def test_without_a_watcher_nothing_is_kept() -> None:
    watch().found()
    assert watch().files == 0
    with watched(None):
        watch().found()
        assert watch().files == 0


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (Watch(print, FINDING, 1), "finding evidence: 1 file"),
        (Watch(print, READING, 12, 40, 1 << 20, 3 << 20), "reading 12 of 40 files, 1 MiB of 3 MiB"),
        (Watch(print, JUDGING, 40, 40, 3 << 20, 3 << 20), "judging 40 files, 3 MiB"),
    ],
)
def test_the_line_says_n_of_n_files_and_bytes(now: Watch, words: str) -> None:
    assert reading_words(now) == words
