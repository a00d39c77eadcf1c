"""Members of archives lie as plain files for a while, under the names by which a reader knows them."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.evidence.intake.test_gather import MATRIX, RECORD, tar
from topodiag.evidence.intake.archives import copy_members
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.pieces import Piece, read_piece
from topodiag.evidence.intake.spool import spooled
from topodiag.evidence.kinds import Kind
from topodiag.model.errors import InputError, TopodiagError


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
