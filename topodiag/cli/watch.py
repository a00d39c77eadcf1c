"""`topodiag watch`: a small loop on a node that writes down what changes."""

from __future__ import annotations

import click

from topodiag.cli.command import Command
from topodiag.cli.params import PLACE, Count, Duration, Size


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@click.option(
    "--textfile", metavar="FILE", type=PLACE, help="Prometheus text for node_exporter's textfile collector (.prom)."
)
@click.option("--every", type=Duration(), default=10.0, metavar="TIME", help="Time between two samples (default: 10s).")
@click.option(
    "--size", type=Size(), default=4 << 20, metavar="SIZE", help="Largest size of one file of changes (default: 4M)."
)
@click.option(
    "--files", type=Count(1, 1000), default=4, metavar="N", help="Number of files of changes to keep (default: 4)."
)
@click.option("--times", type=Count(1, 10**9), metavar="N", help="End after N samples (default: no end).")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing at the start.")
def watch(  # noqa: PLR0917 - one parameter per option
    folder: str | None, textfile: str | None, every: float, size: int, files: int, times: int | None, quiet: bool
) -> None:
    """Watch this node: states and error counters of its links, sampled every few seconds.

    Only changes are written, to DIR/HOST.watch.jsonl: ports, network interfaces and PCIe lanes, NVLinks and GPUs if
    NVML is installed, Xids if the kernel log is readable. Memory and disk use are limited. SIGTERM ends the command.
    `topodiag fleet history` reads the files and says which link comes and goes.

    \b
    Examples
      topodiag watch /var/log/topodiag
      topodiag watch --textfile /var/lib/node_exporter/textfile/topodiag.prom
      python3 topodiag-probe.pyz watch /tmp/changes      without topodiag
    """
    if folder is None and textfile is None:
        raise click.UsageError("Say where to: DIR for the changes, --textfile FILE for Prometheus, or both.")
    if every < 0.1:
        raise click.UsageError("--every takes 100ms and more.")
    from topodiag.app.watch import Watching  # noqa: PLC0415
    from topodiag.app.watch import watch as run  # noqa: PLC0415

    asked = Watching(folder, textfile, every, size, files, times or 0)
    run(asked, lambda words: None if quiet else click.echo(words, err=True, nl=False))
