"""`topodiag watch`: a small loop on a node that writes down what changes."""

from __future__ import annotations

import click

from topodiag.cli.options import Command, options


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@options("textfile", "interval", "size", "files", "times", "quiet", of="watch")
def watch(  # noqa: PLR0917 - one parameter per option
    folder: str | None, textfile: str | None, interval: float, size: int, files: int, times: int | None, quiet: bool
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
    if interval < 0.1:
        raise click.UsageError("--every takes 100ms and more.")
    from topodiag.app.watch import watch as run  # noqa: PLC0415

    def tell(words: str) -> None:
        if not quiet:
            click.echo(words, err=True, nl=False)

    run(folder, textfile, every_s=interval, size=size, keep=files, times=times or 0, tell=tell)
