"""`topodiag watch`: what it takes, and what it leaves."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from topodiag.cli.watch import watch


def test_a_watch_of_two_samples_leaves_a_file_and_an_exposition(tmp_path: Path) -> None:
    arguments = [str(tmp_path), "--textfile", str(tmp_path / "a.prom"), "--times", "2", "--every", "100ms", "-q"]
    done = CliRunner().invoke(watch, arguments)
    assert (done.exit_code, done.output) == (0, "")
    (journal,) = tmp_path.glob("*.watch.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert lines[0]["watch"] == 1
    assert lines[-1]["end"] == "the number of samples"
    assert "topodiag_watch_timestamp_seconds" in (tmp_path / "a.prom").read_text()


@pytest.mark.parametrize("arguments", [[], ["--every", "10ms", "."]])
def test_a_watch_that_goes_nowhere_or_never_rests_is_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(watch, arguments).exit_code == 2
