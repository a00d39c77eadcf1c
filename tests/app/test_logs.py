"""Logs in archives tell what the same logs in a folder tell; what cannot be read is said in the first lines."""

import errno
import gzip
import os
import pickle
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.evidence.flight.test_flight_recorder import dump
from tests.files import filed, laid, tarred, zipped
from tests.fleet.ingested import rank_log
from tests.printed import drawn
from topodiag.app.case.jobs import LogOptions
from topodiag.app.diagnose import diagnose
from topodiag.app.logs import logs
from topodiag.model.errors import InputError
from topodiag.model.result import Result
from topodiag.report.job.table import draw_logs
from topodiag.report.verdict.table import draw_diagnosis

MEMBERS = {
    "logs/nccl.a.0.log": rank_log(0),
    "logs/nccl.a.1.log.gz": gzip.compress(rank_log(1)),
    "dumps/nccl_trace_rank_3": pickle.dumps(dump(), 2),
    "notes.txt": b"the run of monday\n",
}


def read(path: Path, **options: object) -> Result:
    return logs([str(path)], options=LogOptions(workers=1, **options))  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return laid(tmp_path / "job", MEMBERS)


def told(result: Result, below: Path) -> str:
    """All of the result, with the names of files as they are below the folder or the archive."""
    return repr(result).replace(f"{below}/", "")


@pytest.mark.parametrize("name", ["job.tgz", "job.tar.zst", "job.zip"])
def test_an_archive_tells_what_the_folder_tells(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    pack = {"job.tgz": gzip.compress, "job.tar.zst": zstandard.compress}.get(name)
    path = filed(tmp_path, name, pack(tarred(MEMBERS)) if pack else zipped(MEMBERS))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    result = read(path)
    assert [item.path for item in result.inputs] == [f"{path}/logs/nccl.a.0.log", f"{path}/logs/nccl.a.1.log.gz"]
    assert result.jobs[0].flight[0].rank == 3
    assert told(result, path) == told(read(folder), folder)
    assert str(scratch) not in repr(result)
    assert os.listdir(scratch) == []


def test_a_folder_with_archives_and_logs_is_one_job(tmp_path: Path) -> None:
    (tmp_path / "node-a.tar.gz").write_bytes(gzip.compress(tarred({"0.log": rank_log(0)})))
    (tmp_path / "node-b.zip").write_bytes(zipped({"1.log": rank_log(1)}))
    (tmp_path / "2.log").write_bytes(rank_log(2))
    (tmp_path / "copy.log").write_bytes(rank_log(1))
    result = read(tmp_path)
    assert [os.path.relpath(item.path, tmp_path) for item in result.inputs] == [
        "2.log", "copy.log", "node-a.tar.gz/0.log", "node-b.zip/1.log",
    ]  # fmt: skip
    assert len(result.jobs) == 1
    assert len(result.jobs[0].processes) == 3


def test_saved_facts_in_an_archive_are_read(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(rank_log(0))
    plain = read(tmp_path / "0.log", save=str(tmp_path / "job.facts"))
    (tmp_path / "job.zip").write_bytes(zipped({"job.facts": (tmp_path / "job.facts").read_bytes()}))
    assert repr(read(tmp_path / "job.zip").jobs) == repr(plain.jobs)


def test_damaged_facts_are_named_as_the_member_that_they_are(tmp_path: Path) -> None:
    (tmp_path / "job.zip").write_bytes(zipped({"job.facts": b"topodiag facts 4\n" + bytes(200)}))
    with pytest.raises(InputError, match=r"/job.zip/job.facts: is damaged"):
        read(tmp_path / "job.zip")


def test_an_archive_without_logs_names_what_is_in_it_and_a_command_that_can_be_typed(tmp_path: Path) -> None:
    path = filed(tmp_path, "job.zip", zipped({"hosts": b"gpu01 slots=8\ngpu02 slots=8\n"}))
    with pytest.raises(InputError, match=r"job.zip/hosts: is no NCCL log: it looks like a hostfile") as caught:
        read(path)
    assert caught.value.hint == f"topodiag place audit {path} --tp 8 reads it"


def test_hostile_archives_stay_refused(tmp_path: Path) -> None:
    path = filed(tmp_path, "job.tar", tarred({"../0.log": rank_log(0)}))
    with pytest.raises(InputError, match="lies outside the archive"):
        read(path)
    link = tarfile.TarInfo("1.log")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    path.write_bytes(tarred({"0.log": rank_log(0)}, link))
    result = read(path)
    assert [item.path for item in result.inputs] == [f"{path}/0.log"]
    assert any("1.log: a link, not read" in gap.why for gap in result.not_observed)


# --- an input that is there and cannot be read is said in the first lines, with the reason: it may hold the cause


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
