"""Who looks on hears of every file that is read, once, and of the bytes of all."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from topodiag.app.bench import bench
from topodiag.app.case.build import open_case
from topodiag.app.scan import scan
from topodiag.cli.progress import reading_words
from topodiag.evidence.intake.watched import FINDING, JUDGING, READING, Watch, watch, watched

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
