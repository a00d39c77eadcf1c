"""An input that is there and cannot be read is said in the first lines, with the reason: it may hold the cause."""

import errno
import gzip
import os
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.printed import drawn
from topodiag.app.case.jobs import LogOptions
from topodiag.app.diagnose import diagnose
from topodiag.app.logs import logs
from topodiag.model.errors import InputError
from topodiag.report.job.table import draw_logs
from topodiag.report.verdict.table import draw_diagnosis

INCIDENT = Path(__file__).parents[2] / "fixtures" / "incidents" / "gid-index-moved"
FIRST = 12
"""Lines in which it must stand, on a terminal of 80 columns."""
Breaks = Callable[[Path, pytest.MonkeyPatch], None]


def truncated_archive(place: Path, _: pytest.MonkeyPatch) -> None:
    packed = shutil.make_archive(str(place / "odd"), "gztar", INCIDENT)
    Path(packed).write_bytes(Path(packed).read_bytes()[:2000])


def damaged_gzip(place: Path, _: pytest.MonkeyPatch) -> None:
    (place / "odd.log.gz").write_bytes(b"\x1f\x8b\x08" + bytes(400))


def cut_gzip(place: Path, _: pytest.MonkeyPatch) -> None:
    text = (INCIDENT / "nccl.log").read_bytes().replace(b"pod-gpu-1", b"pod-gpu-7")
    (place / "odd.log.gz").write_bytes(gzip.compress(text)[:-900])


def link_to_nowhere(place: Path, _: pytest.MonkeyPatch) -> None:
    (place / "odd.log").symlink_to("gone")


def failing_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "odd.log").write_text("x\n")
    fails(monkeypatch, import_module("topodiag.evidence.intake.gather"), "_ends", "odd.log", errno.EIO)


def forbidden_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "odd.log").write_text("x\n")
    fails(monkeypatch, import_module("topodiag.evidence.intake.gather"), "_ends", "odd.log", errno.EACCES)


def forbidden_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "odd").mkdir()
    fails(monkeypatch, os, "scandir", "odd", errno.EACCES)


def fails(monkeypatch: pytest.MonkeyPatch, module: object, name: str, end: str, number: int) -> None:
    """Makes a function of a path fail for the paths with this end: root may read whatever its mode is."""
    before: Callable[..., Any] = getattr(module, name)

    def opened(path: Any, *rest: Any) -> Any:
        if str(path).endswith(end):
            raise OSError(number, os.strerror(number), str(path))
        return before(path, *rest)

    monkeypatch.setattr(module, name, opened)


CASES: tuple[tuple[Breaks, str], ...] = (
    (truncated_archive, "odd.tar.gz: is a damaged archive"),
    (damaged_gzip, "odd.log.gz: not read, it is a damaged archive"),
    (cut_gzip, "odd.log.gz: the archive is cut short: what was readable counts"),
    (link_to_nowhere, "odd.log: a link to nowhere"),
    (failing_disk, "odd.log: cannot be read: input/output error"),
    (forbidden_file, "odd.log: cannot be read: permission denied"),
    (forbidden_folder, "odd: folder not read: Permission denied"),
)


@pytest.mark.parametrize(("breaks", "reason"), CASES, ids=[case[0].__name__ for case in CASES])
def test_it_stands_in_the_first_lines(
    breaks: Breaks, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "in"
    shutil.copytree(INCIDENT, place, ignore=shutil.ignore_patterns("truth.json"))
    breaks(place, monkeypatch)
    monkeypatch.chdir(place)
    first = drawn(draw_diagnosis, diagnose(["."]), width=80).splitlines()[:FIRST]
    assert reason in " ".join(" ".join(first).split())
    assert sum("not read  " in line for line in first) == 1


@pytest.mark.parametrize("breaks", [case[0] for case in CASES])
def test_it_stands_in_the_first_lines_of_the_view_of_logs(
    breaks: Breaks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nccl.log").write_bytes((INCIDENT / "nccl.log").read_bytes())
    breaks(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    page = drawn(draw_logs, logs(["."], options=LogOptions(workers=1)), width=80)
    reason = "odd.log.gz: the archive is damaged" if breaks is damaged_gzip else dict(CASES)[breaks]
    assert reason in " ".join(" ".join(page.splitlines()[:FIRST]).split())


@pytest.mark.parametrize("breaks", [case[0] for case in CASES if case[0] is not cut_gzip])
def test_alone_it_is_one_line_of_an_error(breaks: Breaks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    breaks(tmp_path, monkeypatch)
    with pytest.raises(InputError) as raised:
        diagnose([str(tmp_path)])
    assert "\n" not in str(raised.value)


def test_a_loop_of_folders_ends(tmp_path: Path) -> None:
    place = tmp_path / "in"
    shutil.copytree(INCIDENT, place, ignore=shutil.ignore_patterns("truth.json"))
    before = diagnose([str(place)]).findings
    (place / "again").symlink_to(place)
    assert diagnose([str(place)]).findings == before
