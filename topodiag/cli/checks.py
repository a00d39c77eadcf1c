"""`topodiag checks`: the catalogue of checks that are built in."""

from __future__ import annotations

import sys

import click

from topodiag.cli.former import Command
from topodiag.cli.options import format_option


@click.command(cls=Command)
@format_option()
def checks(format_: str) -> None:
    """List all checks with their titles. `topodiag explain ID` explains one."""
    from topodiag.checks import registry  # noqa: PLC0415 - heavy from here on

    found = [
        (check_id, cls.title) for check_id in registry.ids() if (cls := registry.check_class(check_id)) is not None
    ]
    if format_ == "json":
        import json  # noqa: PLC0415

        click.echo(json.dumps([{"id": check_id, "title": title} for check_id, title in found], indent=2))
        return
    from topodiag.cli.terminal import style_for  # noqa: PLC0415
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    page = Page(style_for(sys.stdout))
    for check_id, title in found:
        page.add(page.text((check_id, "info"), "  "), title)
    print_page(page, sys.stdout)
