"""What is written never destroys what is read, and appears whole or not at all."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.files import filed
from tests.program import environment
from tests.tables import examples
from topodiag.api import logs
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.model.errors import InputError
from topodiag.writing import check_apart, check_distinct, check_writable, new_folder, replacing, scratch_folder

LOGS = Path(__file__).parents[1] / "fixtures" / "jobs" / "healthy" / "logs"
TABLE = Path(__file__).parents[1] / "fixtures" / "tables"
XML = Path(__file__).parents[1] / "fixtures" / "topo" / "dgx-h100-healthy" / "topo.xml"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job" / "rank.log"
    path.parent.mkdir()
    path.write_bytes(sorted(LOGS.iterdir())[0].read_bytes())
    return path


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


@examples("args")
def test_every_command_holds_to_it(args: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = filed(tmp_path, "topo.xml", XML.read_bytes())
    assert run(cli, [text.format(file=file) for text in args]) == 2
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
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_full_disk_leaves_no_part_of_a_folder(tmp_path: Path) -> None:
    def fill() -> None:
        with new_folder(str(tmp_path / "bundle")) as folder:
            Path(folder, "file").write_text("x")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match="No space left"):
        fill()
    assert not list(tmp_path.iterdir())


def test_the_file_that_standard_input_comes_from_is_not_written_over(log: Path) -> None:
    before = log.read_bytes()
    with log.open("rb") as stream:
        argv = [sys.executable, "-m", "topodiag", "logs", "-", "-o", str(log)]
        ended = subprocess.run(argv, env=environment(), stdin=stream, capture_output=True, check=False)
    assert (ended.returncode, b"it is read as standard input" in ended.stderr) == (2, True)
    assert log.read_bytes() == before


def test_a_file_that_a_link_in_a_given_folder_leads_to_is_not_written_over(tmp_path: Path, log: Path) -> None:
    (log.parent / "more").mkdir()
    other = filed(tmp_path, "other.log", "text")
    (log.parent / "more" / "link").symlink_to(other)
    with pytest.raises(InputError, match="would be written over"):
        check_apart(str(other), [str(log.parent)])
    check_apart(str(tmp_path / "new"), [str(log.parent)])


def test_two_outputs_never_share_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "folder").symlink_to(tmp_path)
    for pair in (("a", "a"), ("a", "link"), ("new", "folder/new"), ("new", "../" + tmp_path.name + "/new")):
        with pytest.raises(InputError, match="two outputs"):
            check_distinct([str(tmp_path / each) for each in pair])
    check_distinct([str(tmp_path / "a"), str(tmp_path / "b"), "/dev/null", "/dev/null"])


def test_a_command_refuses_two_outputs_in_one_file_and_writes_neither(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = str(tmp_path / "nodes")
    assert run(cli, ["fleet", "compare", "fixture:dgx-h100-healthy", "--pass-list", both, "--fail-list", both]) == 2
    assert "is named for two outputs" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_private_is_for_its_owner_and_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    there.chmod(0o640)
    for name, private in (("there", True), ("secret", True), ("report", False)):
        with replacing(str(tmp_path / name), private=private) as stream:
            assert stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == 0o600
    mask = os.umask(0)
    os.umask(mask)
    assert [mode(tmp_path / name) for name in ("there", "secret", "report")] == [0o640, 0o600, 0o666 & ~mask]
    with new_folder(str(tmp_path / "bundle")) as folder:
        Path(folder, "file").touch()
    assert mode(tmp_path / "bundle") == 0o700


def test_a_name_of_a_temporary_file_is_not_the_same_twice(tmp_path: Path) -> None:
    with replacing(str(tmp_path / "a")), replacing(str(tmp_path / "a")):
        assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["", "a" * 300, "file/below", "nul\0byte"])
def test_a_place_that_takes_no_file_is_refused_before_the_work(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError):
        check_writable(str(tmp_path / name) if name else name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "no" / "folder" / "file"))
    with replacing(str(tmp_path / "no" / "folder" / "file")) as stream:
        stream.write(b"x")
    assert (tmp_path / "no" / "folder" / "file").read_text() == "x"


def test_what_a_killed_run_left_goes_with_the_next_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, foreign = tmp_path / "topodiag-left", tmp_path / "topodiag-foreign"
    for folder in (left, foreign):
        folder.mkdir()
        (folder / "0").write_text("a member")
    (left / ".held").touch()
    with scratch_folder() as first, scratch_folder() as second:
        assert {path.name for path in tmp_path.iterdir()} == {Path(first).name, Path(second).name, foreign.name}
    assert [path.name for path in tmp_path.iterdir()] == [foreign.name]


def test_a_link_that_leads_to_itself_is_refused_before_the_work(tmp_path: Path) -> None:
    loop = tmp_path / "page.html"
    loop.symlink_to(loop)
    with pytest.raises(InputError, match=r"cannot be written: Too many levels"):
        check_writable(str(loop))
