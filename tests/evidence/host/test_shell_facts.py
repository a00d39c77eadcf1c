"""Small commands that people paste: `uptime`."""

from __future__ import annotations

import pytest

from tests.evidence.filled import draft_by, values
from tests.tables import examples
from topodiag.evidence.host.shell_facts import ShellFacts
from topodiag.evidence.interface import Blob


def uptime(text: str) -> list[object]:
    draft = draft_by(ShellFacts(), Blob("paste.txt", text.encode()))
    return list(values(draft.single("os")).values())


@examples("line", "seconds")
def test_uptime_is_read_in_the_forms_of_procps(line: str, seconds: float) -> None:
    assert uptime(f"$ uptime\n{line}\n") == [seconds]


@pytest.mark.parametrize("line", ["14:20:07 up and running", "14:20:07 link up 6 days, 3:11, load average: 1"])
def test_other_lines_with_up_are_no_uptime(line: str) -> None:
    assert uptime(line) == []
