"""`topodiag fixtures`: the captured machines that ship with the program, to try it on."""

from __future__ import annotations

import sys

import click


@click.command()
def fixtures() -> None:
    """List the captured machines that ship with topodiag; scan one with fixture:NAME."""
    from topodiag.app.fixtures import fixtures as shipped  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.terminal import style_for  # noqa: PLC0415
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    names = shipped()
    page = Page(style_for(sys.stdout))
    wide = min(max((len(name) for name in names), default=0) + 2, page.width // 2)
    for name in names:
        page.add(page.text((f"{name:<{wide}}", "strong")), _first_line(name))
    if not names:
        page.add("", "no fixtures are installed")
    print_page(page, sys.stdout)


def _first_line(name: str) -> str:
    """What is said about the fixture, in its first line."""
    from topodiag.app.fixtures import fixture_path  # noqa: PLC0415

    try:
        with (fixture_path(name) / "about.txt").open(encoding="utf-8", errors="replace") as file:
            return next((line.strip() for line in file if line.strip()), "")
    except OSError:
        return ""
