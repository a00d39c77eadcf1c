"""`topodiag fleet history`: captures over time, and what they answer."""

from __future__ import annotations

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, options, report_options
from topodiag.cli.params import EVIDENCE


@click.command(cls=Command)
@click.argument("place", metavar="DIR", type=EVIDENCE)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=EVIDENCE)
@options("nodelist", of="fleet history")
@report_options()
@click.pass_obj
def history(
    reached: Outcome, place: str, paths: tuple[str, ...], nodelist: tuple[str, ...], printing: Printing
) -> None:
    """Show what changed over time, which links come and go, and which nodes keep failing.

    DIR is a store: a folder of Parquet files, created if missing. The captures at PATH are added to it first: bundles,
    folders of bundles, files of `topodiag watch`. Adding a capture twice changes nothing. If DIR holds bundles and no
    store, topodiag reads the bundles and keeps nothing.

    The last capture of a node is compared with its last good capture before that, one without an error. Differences in
    serial numbers, addresses, clocks and counters do not count. A counter that is lower than before was reset, and
    counting starts again from there.

    \b
    Examples
      topodiag fleet history /srv/history monday/       add captures, then report
      topodiag fleet history /srv/history               report only
      topodiag fleet history /srv/history changes/      add files of `topodiag watch`
      topodiag fleet history gpu07/                     bundles, without a store
    """
    from topodiag.app.history import history as ask  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import printable, verdict, write_answer  # noqa: PLC0415
    from topodiag.cli.progress import working  # noqa: PLC0415
    from topodiag.model.provenance import NotObserved  # noqa: PLC0415
    from topodiag.model.result import Result  # noqa: PLC0415
    from topodiag.report.fleet.history import document, draw_history  # noqa: PLC0415
    from topodiag.report.html.fleet import history_extras  # noqa: PLC0415

    with working(printing):
        answers = printable(ask(place, paths, nodelist), redact=printing.redact)
    result = Result(
        inputs=answers.inputs, findings=answers.findings, outcomes=answers.outcomes,
        not_observed=tuple(NotObserved("part of the input", text) for text in answers.aside),
    )  # fmt: skip
    reached.code = verdict(result, printing.fail_on)
    write_answer(
        printing, "fleet history", lambda page: draw_history(page, answers), lambda: document(answers), lambda: result,
        lambda: history_extras(answers),
    )  # fmt: skip
