"""`topodiag env`: the debug settings for the next run, in the words of the launcher."""

from __future__ import annotations

import sys

import click

from topodiag.cli.options import Command, format_option, options

FORMATS = ("sh", "slurm", "mpirun", "k8s", "json")


@click.command(cls=Command)
@format_option(FORMATS)
@click.option("--quick", "level", flag_value="quick", help="Shorter logs: communicators, settings, network and rings.")
@click.option("--full", "level", flag_value="full", help="For hangs: also every operation, and a topology dump.")
@options("folder", of="env")
def env(format_: str, level: str | None, folder: str) -> None:
    """Print the debug settings for the next run, so that its logs answer every check.

    For a shell: eval "$(topodiag env)", then start the job and give its logs to `topodiag logs`.
    """
    from topodiag.model.debug_settings import debug_settings  # noqa: PLC0415
    from topodiag.report.debug_settings import WRITERS  # noqa: PLC0415

    lines = WRITERS[format_](debug_settings(level or "recommended", folder))
    sys.stdout.write("\n".join(lines) + "\n")
