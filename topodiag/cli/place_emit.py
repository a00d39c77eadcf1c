"""`topodiag place emit`: a map in the words of a launcher."""

from __future__ import annotations

import re
import sys

import click

from topodiag.cli.params import PLACE

_FORMATS = (
    "slurm-hostfile",
    "slurm-flags",
    "rankfile",
    "hostfile",
    "mpich",
    "torchrun",
    "kubernetes",
    "new-group",
    "json",
)


@click.command()
@click.argument("format_", metavar="FORMAT", type=click.Choice(_FORMATS))
@click.argument("map_", metavar="MAP", type=PLACE, default="-")
@click.option("--output", "-o", metavar="FILE", type=PLACE, help="Write to a file instead of standard output.")
def emit(format_: str, map_: str, output: str | None) -> None:
    """Write a map for a launcher: MAP is the JSON of `place solve --format json`, `-` for standard input.

    \b
    FORMAT
      slurm-hostfile  SLURM_HOSTFILE: a host per task     kubernetes  pod index, node and ranks as JSON
      slurm-flags     what to ask sbatch for              new-group   lists for torch, and a DeviceMesh
      rankfile        Open MPI, any order of ranks        mpich       host:8, also Intel MPI
      hostfile        Open MPI, host after host           json        the map alone
      torchrun        the node rank of each host

    What is written is read back first and must be the same map; a format that cannot say the map is refused. The
    command that uses the file is told on standard error.
    """
    from topodiag.cli.output import check_output, opened  # noqa: PLC0415 - heavy from here on
    from topodiag.emit.place_formats import write  # noqa: PLC0415
    from topodiag.evidence.one_file import open_blob  # noqa: PLC0415
    from topodiag.evidence.place_map import read_place_map  # noqa: PLC0415
    from topodiag.pipeline import stdin  # noqa: PLC0415

    check_output(output)
    place = read_place_map(open_blob(map_, stdin() if map_ == "-" else None))
    made = write(place, format_)
    with opened(output) as stream:
        stream.write(made.text)
        stream.flush()
    name = output if output not in {None, "-"} else "FILE"
    if made.command:
        command = re.sub(r"\bFILE\b", lambda _: str(name), made.command)
        click.echo(f"use it: {command}", file=sys.stderr)
    for note in made.notes:
        click.echo(f"note: {note}", file=sys.stderr)
