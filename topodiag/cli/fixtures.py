"""`topodiag fixtures`: the evidence that ships with the program, to try its commands on."""

from __future__ import annotations

import sys

import click

from topodiag.cli.command import Command

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
    from topodiag.cli.terminal import style_for  # noqa: PLC0415
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    shipped_fixtures = shipped()
    page = Page(style_for(sys.stdout))
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
    print_page(page, sys.stdout)
