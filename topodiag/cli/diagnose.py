"""`topodiag diagnose`: any mix of evidence, one verdict, exit with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from topodiag.cli.dimensions import layout_of, order_option, size_options
from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, options, report_options
from topodiag.cli.params import EVIDENCE
from topodiag.cli.place.options import work_options

if TYPE_CHECKING:
    from topodiag.app.artefacts import Artefact
    from topodiag.cli.model.step_options import Trained
    from topodiag.model.result import Result
    from topodiag.report.text import Page


@click.command(cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, type=EVIDENCE)
@options("places", "folder", of="diagnose")
@size_options()
@order_option
@work_options
@report_options()
@click.pass_obj
def diagnose(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    paths: tuple[str, ...],
    places: tuple[str, ...],
    folder: str | None,
    sizes: dict[str, int],
    order: str,
    trained: Trained,
    printing: Printing,
) -> None:
    """Join all evidence of a job into one verdict: the cause, what it costs, what to change, and what is still open.

    PATH is a folder, a file, an archive, a pattern or - for standard input, in any mix: NCCL logs, captures of nodes
    (`topodiag scan --save`), output of nccl-tests, hostfiles, topology files, kernel logs, dumps of torch's flight
    recorder. Files that nothing reads are listed.

    With --job, or --tp, --pp and the other sizes, or where the log names its groups, a cause is also priced as a share
    of a training step: of the model in --job or --model, else of models of several sizes.

    \b
    Examples
      topodiag diagnose incident/
      topodiag diagnose slurm-4711.out captures/*.tar.gz all_reduce.txt
      topodiag diagnose --ras node07 logs/
      topodiag diagnose --job train.sh logs/
    """
    if not paths and not places:
        raise click.UsageError("Missing argument 'PATH...'.")
    layout = layout_of(sizes, order)
    from topodiag.fleet.cores import one_thread  # noqa: PLC0415

    one_thread()
    from topodiag.app.diagnose import diagnose as judge_case  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import better_map, printable, verdict, write_report  # noqa: PLC0415
    from topodiag.cli.progress import working  # noqa: PLC0415

    if folder is not None:
        from topodiag.writing import check_new_folder  # noqa: PLC0415

        check_new_folder(folder)
    with working(printing):
        result = judge_case(paths, places=places, layout=layout, trained=trained.asked)
    reached.code = verdict(result, printing.fail_on)
    solved = better_map(printing, result, paths)
    made_files: Sequence[Artefact] = ()
    if folder is not None:
        from topodiag.app.artefacts import artefacts  # noqa: PLC0415

        made_files = artefacts(result, paths)
    shown, solved, made_files = printable((result, solved, made_files), redact=printing.redact)
    write_report(printing, "diagnose", shown, _draw, solved)
    if folder is not None:
        from topodiag.app.artefacts import write_artefacts  # noqa: PLC0415

        names = write_artefacts(folder, shown, made_files)
        if not printing.quiet:
            click.echo(f"wrote {', '.join(names)} to {folder}", err=True)


def _draw(page: Page, result: Result) -> None:
    from topodiag.report.verdict.table import draw_diagnosis  # noqa: PLC0415 - only where it is asked for

    draw_diagnosis(page, result)
