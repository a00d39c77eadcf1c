"""Small commands that people paste: `uptime`."""

from __future__ import annotations

import pytest

from topodiag.evidence.host.shell_facts import ShellFacts
from topodiag.evidence.interface import Blob


def uptime(text: str) -> list[object]:
    return [each.value for each in ShellFacts().parse(Blob("paste.txt", text.encode())).records]


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (" 14:20:07 up 6 days,  3:11,  1 user,  load average: 3.10, 2.87, 2.91", 6 * 86400 + 3 * 3600 + 11 * 60),
        (" 14:20:07 up 1 day, 12 min,  0 users,  load average: 3.10, 2.87, 2.91", 86400 + 12 * 60),
        ("top - 14:20:07 up  3:11, 14 users,  load average: 0.10, 0.20, 0.30", 3 * 3600 + 11 * 60),
        (" 14:20:07 up 45 min,  load average: 0.00, 0.00, 0.00", 45 * 60),
    ],
)
def test_uptime_is_read_in_the_forms_of_procps(line: str, seconds: float) -> None:
    assert uptime(f"$ uptime\n{line}\n") == [seconds]


@pytest.mark.parametrize("line", ["14:20:07 up and running", "14:20:07 link up 6 days, 3:11, load average: 1"])
def test_other_lines_with_up_are_no_uptime(line: str) -> None:
    assert uptime(line) == []
