"""The text of one piece of evidence."""

from dataclasses import replace
from pathlib import Path

import pytest

from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.pieces import read_piece
from topodiag.model.errors import InputError


def test_of_a_plain_text_that_is_larger_than_its_reader_takes_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node1 slots=8\n", encoding="utf-8")
    intake = gather([str(tmp_path / "hosts")])
    piece = intake.pieces[0]
    assert read_piece(intake, piece, piece.size).data == b"node1 slots=8\n"
    (tmp_path / "hosts").unlink()  # which reading would say
    with pytest.raises(InputError, match="is larger than"):
        read_piece(intake, piece, piece.size - 1)
    with pytest.raises(InputError, match="cannot be read"):
        read_piece(intake, replace(piece, coding=("gzip",)), piece.size - 1)
