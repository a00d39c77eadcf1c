"""What is written never destroys what is read, and appears whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from topodiag.api import logs
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.model.errors import InputError
from topodiag.writing import check_apart, new_folder, replacing

LOGS = Path(__file__).parents[1] / "fixtures" / "jobs" / "healthy" / "logs"
TABLE = Path(__file__).parents[1] / "fixtures" / "tables"
XML = Path(__file__).parents[1] / "fixtures" / "topo" / "dgx-h100-healthy" / "topo.xml"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    made = tmp_path / "job" / "rank.log"
    made.parent.mkdir()
    made.write_bytes(sorted(LOGS.iterdir())[0].read_bytes())
    return made


def names(log: Path, tmp_path: Path) -> dict[str, str]:
    """The same file by other names."""
    soft, hard = tmp_path / "soft", tmp_path / "hard"
    soft.symlink_to(log)
    os.link(log, hard)
    return {"itself": str(log), "dots": f"{log.parent}/../job/rank.log", "symlink": str(soft), "hard link": str(hard)}


@pytest.mark.parametrize("name", ["itself", "dots", "symlink", "hard link"])
@pytest.mark.parametrize("option", ["--save", "--output"])
def test_no_command_writes_over_its_input(
    log: Path, tmp_path: Path, name: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = log.read_bytes()
    assert run(cli, ["logs", str(log), option, names(log, tmp_path)[name]]) == 2
    assert "would be written over: it is read as" in capsys.readouterr().err
    assert log.read_bytes() == before


@pytest.mark.parametrize("given", ["{folder}", "{folder}/*.log", "{folder}/r?nk.log"])
def test_a_file_of_a_folder_or_of_a_pattern_is_input_too(log: Path, given: str) -> None:
    with pytest.raises(InputError, match="would be written over"):
        check_apart(str(log), [given.format(folder=log.parent)])


def test_a_new_file_beside_the_input_is_no_input(log: Path) -> None:
    check_apart(str(log.parent / "report.txt"), [str(log), str(log.parent), "-", "fixture:dgx-h100-healthy"])


@pytest.mark.parametrize(
    "args",
    [
        ("emit", "nccl-topo", "{file}", "-o", "{file}"),
        ("topo", "show", "{file}", "-o", "{file}"),
        ("emit", "picture", "{file}", "-o", "{file}"),
        ("bench", "{file}", "--output", "{file}"),
        ("scan", "{file}", "--output", "{file}"),
        ("place", "audit", "--map", "{file}", "--output", "{file}"),
    ],
    ids=lambda args: " ".join(args[:2]),
)
def test_every_command_holds_to_it(args: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "topo.xml"
    file.write_bytes(XML.read_bytes())
    assert run(cli, [each.format(file=file) for each in args]) == 2
    assert "would be written over" in capsys.readouterr().err
    assert file.read_bytes() == XML.read_bytes()


def test_the_api_holds_to_it(log: Path) -> None:
    before = log.read_bytes()
    with pytest.raises(InputError, match="would be written over"):
        logs(log, save=log)
    assert log.read_bytes() == before


def test_a_link_is_written_through(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with replacing(str(link)) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with new_folder(str(tmp_path / "bundle")) as folder:
        Path(folder, "file").write_text("x")
        assert not (tmp_path / "bundle").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["bundle"]


def test_a_full_disk_leaves_no_part_of_a_folder(tmp_path: Path) -> None:
    def fill() -> None:
        with new_folder(str(tmp_path / "bundle")) as folder:
            Path(folder, "file").write_text("x")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match="No space left"):
        fill()
    assert not list(tmp_path.iterdir())
