"""`topodiag fleet`: the captures of many nodes, collected, compared and remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.errors import CLEAN, FOUND, reach
from topodiag.cli.options import Command, Printing, format_option, options, page_options, report_options, value_options
from topodiag.cli.output import (
    conclude,
    conclude_by,
    opened,
    printable,
    write_answer,
    write_drawing,
    write_table,
    write_text,
)
from topodiag.cli.params import EVIDENCE

if TYPE_CHECKING:
    from topodiag.model.collect import NodeAnswer
    from topodiag.model.fleet import FleetResult


WHOLE_S = 300.0
_OF_COLLECTION = options(
    "nodelist", "to", "via", "fanout", "deadline", "within", "sample", "user", "ssh_options", "image", "namespace",
    "again", of="fleet collect",
)  # fmt: skip
_OF_REQUEST = ("fanout", "deadline", "sample", "user", "ssh_options", "image", "namespace")


@click.command(cls=Command)
@value_options("asked", dict, _OF_COLLECTION, _OF_REQUEST)
@format_option()
@page_options
def collect(  # noqa: PLR0917 - one parameter per option
    nodelist: tuple[str, ...],
    to: str,
    via: str,
    asked: dict[str, Any],
    within: float | None,
    again: bool,
    printing: Printing,
) -> None:
    """Run the collector on many nodes, and bring one bundle of each into a folder.

    A node needs Python 3.6. Nothing is installed there, no disk is written, and root is not needed. Each bundle is
    saved when it arrives; the same command, run again, asks only the nodes without a good bundle. A node that was not
    reached is asked once more. A node that hung is not asked again: its bundle says what it waited for.

    Exit code 0: every node answered. 1: at least one node did not answer. Whether the nodes are healthy, `topodiag
    fleet compare` says.

    \b
    Examples
      topodiag fleet collect --nodelist gpu[001-200] --to monday/
      salloc -N 64 topodiag fleet collect --to monday/
      topodiag fleet compare monday/
    """
    from topodiag.app.collect import collect_fleet, request_of  # noqa: PLC0415 - heavy from here on
    from topodiag.fleet.collect.share import command as share_command  # noqa: PLC0415
    from topodiag.report.fleet.collected import draw_collection, write_collection  # noqa: PLC0415

    request = request_of(**asked)
    whole = WHOLE_S if within is None else within
    if via == "share":
        click.echo(f"run on each node: {share_command(to, request)}", err=True)
    with _progress(printing) as tell:
        done = collect_fleet(nodelist, to, via, request, whole_s=whole, again=again, tell=tell)
    reach(CLEAN if done.complete else FOUND)
    if printing.format_ == "json":
        with opened(printing.output) as stream:
            write_collection(done, stream)
        return
    write_drawing(lambda page: draw_collection(page, done), printing)


@contextmanager
def _progress(printing: Printing) -> Iterator[Callable[[NodeAnswer | None, int, int], None] | None]:
    """A bar of the nodes that have answered, on standard error, while a terminal looks on; else silence."""
    from topodiag.cli.progress import bar  # noqa: PLC0415 - heavy

    counts: dict[str, int] = {}
    with bar(printing, "collecting", "MofNCompleteColumn", "TimeElapsedColumn") as shown:

        def tell(answer: NodeAnswer | None, done: int, total: int) -> None:
            if answer is not None and answer.state != "answered":
                counts[answer.state.value] = counts.get(answer.state.value, 0) + 1
            words = ", ".join(["collecting", *(f"{count} {state}" for state, count in counts.items())])
            if shown is not None:
                shown.show(done, total, words)

        yield None if shown is None else tell


KINDS = ("job", "daemonset")
KEEP = "/var/lib/topodiag"
_OF_MANIFEST = options(
    "nodelist", "image", "namespace", "interval", "folder", "deadline", "output", of="fleet manifest"
)


@click.command(cls=Command)
@click.argument("kind", type=click.Choice(KINDS))
@value_options("asked", dict, _OF_MANIFEST, ("image", "namespace", "deadline"))
def manifest(  # noqa: PLR0917 - one parameter per option
    kind: str, nodelist: tuple[str, ...], asked: dict[str, Any], interval: float, folder: str, output: str | None
) -> None:
    """Write the Kubernetes manifest that runs the collector: a Job with one pod a node, or a DaemonSet.

    The manifest contains the collector, so any image with Python works; a pod runs the host's tools. A pod is
    privileged. It reads the host's files, writes only bundles, and requests no GPU. `fleet collect --via kubectl`
    creates the Job and reads its logs without this command. A DaemonSet saves a bundle on each node every hour.

    \b
    Examples
      topodiag fleet manifest job --nodelist gpu[001-004] -o job.yaml
      topodiag fleet manifest daemonset | kubectl apply --server-side -f -
    """
    from topodiag.app import collect as app  # noqa: PLC0415 - heavy

    write_text(output, app.manifest(kind, nodelist, app.request_of(**asked), every_s=interval, keep=folder or KEEP))


FORMATS = ("table", "json", "jsonl", "csv", "parquet", "drain", "conditions")


@click.command(cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=EVIDENCE)
@options("pass_list", "fail_list", "workers", "dask", of="fleet compare")
@report_options(FORMATS)
def compare(  # noqa: PLR0917 - one parameter per option
    paths: tuple[str, ...],
    pass_list: str | None,
    fail_list: str | None,
    workers: int | None,
    dask: str | None,
    printing: Printing,
) -> None:
    """Compare the nodes of a fleet with their peers, and say which to exclude now and why.

    PATH is a folder of captures, or whatever `topodiag scan` reads; the latest capture of a host counts. Nodes are
    compared with nodes of the same kind: the same product, GPU and role. The report shows equal findings of many nodes
    once, the values that all nodes share, the nodes that differ from the majority, and groups of equal nodes.

    --format jsonl writes a line per node, csv and parquet a row per finding of a node, drain the commands for Slurm,
    conditions those of node-problem-detector. The fail list fits srun --exclude=$(cat FILE). Exit code 1: a node is to
    be excluded, or a finding reaches --fail-on.

    \b
    Examples
      topodiag fleet compare captures/
      topodiag fleet compare captures/ --fail-list bad --pass-list good
      topodiag fleet compare captures/ --format drain
    """
    if printing.format_ == "parquet" and printing.output in {None, "-"}:
        raise click.UsageError("--format parquet needs --output FILE.")
    from topodiag.fleet.cores import one_thread  # noqa: PLC0415

    one_thread()
    from topodiag.app.compare import compare as compared  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.progress import reading  # noqa: PLC0415

    with reading(printing, "captures", "comparing", "MofNCompleteColumn") as tell:
        result = compared(paths, workers=workers, dask=dask, on_read=tell)
    conclude_by(result.worst, printing.fail_on, is_bad=bool(result.failed))
    result = printable(result, redact=printing.redact)
    _write_lists(result, pass_list, fail_list)
    _write_answer(result, printing)
    _write_rows(result, printing)


def _write_lists(result: FleetResult, pass_list: str | None, fail_list: str | None) -> None:
    from topodiag.emit import fleet_lists  # noqa: PLC0415

    texts = (pass_list, fleet_lists.pass_list(result)), (fail_list, fleet_lists.node_list(result.failed))
    for path, text in texts:
        if path is not None:
            write_text(path, text)


def _write_answer(result: FleetResult, printing: Printing) -> None:
    from topodiag.model.result import Result  # noqa: PLC0415
    from topodiag.report.fleet.page import draw_fleet, fleet_json  # noqa: PLC0415
    from topodiag.report.html.fleet import fleet_extras  # noqa: PLC0415

    shown = Result(
        inputs=result.inputs, findings=result.findings, outcomes=result.outcomes, not_observed=result.left_out,
        unexplained=result.unexplained,
    )  # fmt: skip
    write_answer(
        printing, "fleet compare", lambda page: draw_fleet(page, result), lambda: fleet_json(result), lambda: shown,
        lambda: fleet_extras(result),
    )  # fmt: skip


def _write_rows(result: FleetResult, printing: Printing) -> None:
    """The formats of lines and rows: a line or more for each node."""
    if printing.format_ in {"table", "json"}:
        return
    from topodiag.emit.fleet_lists import conditions, drain_lines  # noqa: PLC0415
    from topodiag.report.fleet.page import COLUMNS, json_lines, rows  # noqa: PLC0415

    if printing.format_ in {"csv", "parquet"}:
        write_table(printing.output, COLUMNS, rows(result), parquet=printing.format_ == "parquet")
        return
    lines = {"jsonl": json_lines, "drain": drain_lines, "conditions": conditions}[printing.format_]
    with opened(printing.output) as stream:
        stream.writelines(f"{line}\n" for line in lines(result))


@click.command(cls=Command)
@click.argument("place", metavar="DIR", type=EVIDENCE)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=EVIDENCE)
@options("nodelist", of="fleet history")
@report_options()
def history(place: str, paths: tuple[str, ...], nodelist: tuple[str, ...], printing: Printing) -> None:
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
    conclude(result, printing.fail_on)
    write_answer(
        printing, "fleet history", lambda page: draw_history(page, answers), lambda: document(answers), lambda: result,
        lambda: history_extras(answers),
    )  # fmt: skip
