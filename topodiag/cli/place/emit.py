"""`topodiag place emit`: a map in the words of a launcher."""

from __future__ import annotations

import re
import sys

import click

from topodiag.cli.options import Command, options
from topodiag.cli.params import EVIDENCE
from topodiag.cli.place.options import LAUNCHERS

_FORMATS = (*LAUNCHERS, "new-group", "json")


@click.command(cls=Command)
@click.argument("format_", metavar="FORMAT", type=click.Choice(_FORMATS))
@click.argument("map_", metavar="MAP", type=EVIDENCE, default="-")
@options("output")
def emit(format_: str, map_: str, output: str | None) -> None:
    """Write a map for a launcher: MAP is the JSON of `place solve --format json`, `-` for standard input.

    \b
    FORMAT
      slurm-hostfile  SLURM_HOSTFILE: a host per task, any order of ranks
      slurm-flags     what to ask sbatch for
      rankfile        Open MPI, any order of ranks
      hostfile        Open MPI, host after host
      mpich           MPICH (-f) and Intel MPI (-machinefile), host after host
      torchrun        the node rank of each host, host after host
      kubernetes      pod index, node and ranks as JSON
      new-group       lists for torch.distributed.new_group, and a DeviceMesh
      json            the map alone

    topodiag reads the file back before it writes it, and refuses a format that cannot hold the map. Standard error
    shows the command that uses the file.

    \b
    Example
      topodiag place solve --nodes 32 --tp 8 --format json --output map.json
      topodiag place emit slurm-hostfile map.json -o hosts
    """
    from topodiag.app.place import read_map  # noqa: PLC0415
    from topodiag.cli.errors import print_note  # noqa: PLC0415
    from topodiag.cli.output import printable, write_text  # noqa: PLC0415 - heavy from here on
    from topodiag.emit.place_formats import write  # noqa: PLC0415
    from topodiag.emit.place_map import UnwritableMapError  # noqa: PLC0415
    from topodiag.model.errors import InputError  # noqa: PLC0415

    if map_ == "-" and sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError(
            "MAP is missing: a file that `place solve --format json` wrote, or its output by a pipe."
        )
    place = read_map(map_)
    try:
        written = printable(write(place, format_), redact=False)
    except UnwritableMapError as error:
        raise InputError("<stdin>" if map_ == "-" else map_, error.message, hint=error.hint) from None
    write_text(output, written.text)
    name = output if output not in {None, "-"} else "FILE"

    def named(text: str) -> str:
        return re.sub(r"\bFILE\b", lambda _: str(name), text)

    if written.command:
        click.echo(f"use it: {named(written.command)}", file=sys.stderr)
    for note in written.notes:
        print_note(f"note: {named(note)}")
