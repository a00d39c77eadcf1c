"""`topodiag demo`: an incident that ships with the program, from its evidence to the verdict."""

from __future__ import annotations

import click

from topodiag.cli.options import Command, Printing, page_options

INCIDENT = "a-gpu-link-stuck-at-gen2"


@click.command(cls=Command)
@click.argument("name", default=INCIDENT)
@page_options
def demo(name: str, printing: Printing) -> None:
    """Show an incident that ships with topodiag: its evidence, the command that reads it, and the verdict.

    NAME is one of the incidents that `topodiag fixtures` lists. The exit code is 0, so that a script can try it.
    """
    from topodiag.app.diagnose import diagnose  # noqa: PLC0415 - heavy from here on
    from topodiag.app.fixtures import fixture_path  # noqa: PLC0415
    from topodiag.cli.output import write_drawing  # noqa: PLC0415
    from topodiag.cli.progress import working  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415
    from topodiag.report.verdict.table import draw_diagnosis  # noqa: PLC0415

    path = fixture_path(name)
    with working(printing):
        result = diagnose([str(path)])

    def draw(page: Page) -> None:
        page.add("$ ", (f"topodiag fixture:{name}", "strong"))
        draw_diagnosis(page, result)

    write_drawing(draw, printing)
