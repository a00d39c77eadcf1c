"""`topodiag fixtures`: the evidence that ships with the program, to try its commands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from topodiag.cli.options import Command, Printing

if TYPE_CHECKING:
    from topodiag.app.fixtures import Fixture
    from topodiag.report.text import Page

HEADS = {
    "incident": ("incidents", "topodiag fixture:NAME; topodiag demo explains one"),
    "node": ("machines", "topodiag scan fixture:NAME; also topo, emit, and bench --machine"),
    "job": ("jobs", "topodiag logs fixture:NAME; also place audit"),
    "table": ("tables of nccl-tests", "topodiag bench fixture:NAME"),
}
"""What each kind is called, and the commands that read it."""


@click.command(cls=Command)
def fixtures() -> None:
    """List the incidents, machines, jobs and tables that ship with topodiag. Type fixture:NAME as the path of one."""
    from topodiag.app.fixtures import shipped  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import write_drawing  # noqa: PLC0415

    write_drawing(lambda page: _draw(page, shipped()), Printing())


def _draw(page: Page, shipped_fixtures: Sequence[Fixture]) -> None:
    wide = min(max((len(fixture.name) for fixture in shipped_fixtures), default=0) + 2, page.width // 2)
    for kind, (head, command) in HEADS.items():
        same = [fixture for fixture in shipped_fixtures if fixture.kind == kind]
        if same:
            page.add("", page.text((head, "strong"), f": {command}"))
        for fixture in same:
            begin = len(page.lines)
            page.add(page.text(f"  {fixture.name:<{wide}}"), fixture.about)
            page.keep_lines(begin, 1)
    if not shipped_fixtures:
        page.add("", "no fixtures are installed")
