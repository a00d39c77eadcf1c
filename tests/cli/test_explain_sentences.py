"""`topodiag explain EVENT` and `explain --line`: what the catalogue of sentences knows."""

import pytest
from click.testing import CliRunner

from tests.tables import examples
from topodiag.cli.explain import explain


@examples("arguments", "words")
def test_entries_and_lines_are_explained(arguments: list[str], words: list[str]) -> None:
    done = CliRunner().invoke(explain, arguments)
    assert done.exit_code == 0
    assert [word for word in words if word not in done.output] == []


@pytest.mark.parametrize("arguments", [["GDR001", "--line", "x"], ["--line", "x", "--format", "json"]])
def test_a_line_stands_alone(arguments: list[str]) -> None:
    done = CliRunner().invoke(explain, arguments)
    assert done.exit_code == 2
    assert "--line goes with no name" in done.output
