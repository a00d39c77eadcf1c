"""Documents and source files beside evidence accuse nobody."""

from pathlib import Path

import pytest

from tests.tables import examples
from topodiag.evidence.intake.gather import gather

XID = "[ 8122.4] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"
TABLE = """\
#       size         count      type   redop    root     time   algbw   busbw #wrong
  8589934592    2147483648     float     sum      -1    81000  106.05  198.84      0
"""


@examples("name")
def test_a_paper_beside_a_table_is_left_aside_with_the_reason(tmp_path: Path, name: str) -> None:
    (tmp_path / "all_reduce.txt").write_text(TABLE)
    (tmp_path / name).write_text(XID)
    intake = gather([str(tmp_path)])
    assert [Path(piece.path).name for piece in intake.pieces] == ["all_reduce.txt"]
    assert [(Path(aside.path).name, "document" in aside.why) for aside in intake.aside] == [(name, True)]


@pytest.mark.parametrize("name", ["notes.md", "README.md"])
def test_a_paper_that_is_all_there_is_or_is_named_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(XID)
    assert len(gather([str(tmp_path)]).pieces) == 1
    (tmp_path / "all_reduce.txt").write_text(TABLE)
    assert len(gather([str(tmp_path), str(tmp_path / name)]).pieces) == 2


@pytest.mark.parametrize("name", ["dmesg.txt", "news.log", "readme-kernel.log", "python.log"])
def test_other_names_are_evidence(tmp_path: Path, name: str) -> None:
    (tmp_path / "all_reduce.txt").write_text(TABLE)
    (tmp_path / name).write_text(XID)
    assert name in {Path(piece.path).name for piece in gather([str(tmp_path)]).pieces}
