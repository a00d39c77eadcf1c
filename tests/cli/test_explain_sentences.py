"""`topodiag explain EVENT` and `explain --line`: what the catalogue of sentences knows."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from topodiag.cli.explain import explain

PEERMEM = "modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gpudirect.module_missing"], ["gpudirect.modprobe", "source   kmod tools/modprobe.c", "leaves"]),
        (["gpudirect.modprobe"], ["event gpudirect.module_missing"]),
        (["--line", PEERMEM], ["takes it  gpudirect.modprobe", "reason = Invalid argument", "leaves it"]),
        (
            ["--line", PEERMEM.replace("nv_peer_mem", "nouveau")],
            ["leaves it  gpudirect.modprobe  the pattern does not"],
        ),
        (["--line", "hello"], ["no entry of the catalogue has words of this line"]),
    ],
)
def test_entries_and_lines_are_explained(arguments: list[str], words: list[str]) -> None:
    done = CliRunner().invoke(explain, arguments)
    assert done.exit_code == 0
    assert [word for word in words if word not in done.output] == []


@pytest.mark.parametrize("arguments", [[], ["GDR001", "--line", "x"]])
def test_it_wants_a_name_or_a_line(arguments: list[str]) -> None:
    done = CliRunner().invoke(explain, arguments)
    assert done.exit_code == 2
    assert "give a name or --line TEXT" in done.output
