"""`topodiag emit nccl-topo`: an NCCL_TOPO_FILE, judged and compared before it is written."""

from __future__ import annotations

import sys

import click

from topodiag.cli.errors import FOUND, Outcome
from topodiag.cli.params import PLACE
from topodiag.cli.topo_options import env_option, nccl_option, nodes_option


@click.command("nccl-topo")
@click.argument("source", type=PLACE)
@click.option("--output", "-o", metavar="FILE", type=PLACE, help="Write to a file instead of standard output.")
@click.option("--repair", is_flag=True, help="Restore missing NVLinks, low link widths and misplaced NICs.")
@click.option(
    "--host", metavar="HASH", help="Of a dump of several hosts, the one with this host_hash (default: first)."
)
@nodes_option
@nccl_option
@env_option
@click.option("--force", is_flag=True, help="Write it even where it would make things worse.")
@click.pass_obj
def nccl_topo(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    source: str,
    output: str | None,
    repair: bool,
    host: str | None,
    nodes: int,
    version: str,
    env: dict[str, str],
    force: bool,
) -> None:
    """Write the NCCL_TOPO_FILE of a node: from its dump, its bundle, or fixture:NAME.

    The file is made for one NCCL version, read back by that version's rules, and what NCCL makes of it is shown beside
    the present on standard error. A file that would make things worse is not written, and the exit code is 1.
    """
    from topodiag.cli.output import opened  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.terminal import style_for  # noqa: PLC0415
    from topodiag.pipeline_emit import make_topo_file  # noqa: PLC0415
    from topodiag.pipeline_topo import open_topology  # noqa: PLC0415
    from topodiag.report.emit_topo import draw_topo_file  # noqa: PLC0415
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415
    from topodiag.writing import check_writable  # noqa: PLC0415

    if output not in {None, "-"}:
        check_writable(str(output))
    made = make_topo_file(open_topology(source, env), version=version, nodes=nodes, host=host, repaired=repair, env=env)
    page = Page(style_for(sys.stderr))
    refused = bool(made.worse) and not force
    draw_topo_file(page, made, None if output in {None, "-"} else output, refused=refused)
    print_page(page, sys.stderr)
    if refused:
        reached.code = FOUND
        return
    with opened(output) as stream:
        stream.write(made.text)
        stream.flush()
