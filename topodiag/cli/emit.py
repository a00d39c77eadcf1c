"""`topodiag emit`: files that apply a fix, judged and compared before they are written, and pictures."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from topodiag.cli.errors import FOUND, reach
from topodiag.cli.options import Command, nccl_option, options
from topodiag.cli.output import draw_note, opened_raw, printable, write_text
from topodiag.cli.params import EVIDENCE


@click.command("nccl-topo", cls=Command)
@click.argument("source", type=EVIDENCE)
@options(
    "output", "repair", "bare", "host_capture", "pairs", "instance", "affinity", "host", "nodes", nccl_option(), "env",
    "force", of="emit nccl-topo",
)  # fmt: skip
def nccl_topo(  # noqa: PLR0917 - one parameter per option
    source: str,
    output: str | None,
    repair: bool,
    bare: bool,
    host_capture: str | None,
    pairs: str | None,
    instance: str | None,
    affinity: str | None,
    host: str | None,
    nodes: int | None,
    nccl: str,
    env: dict[str, str],
    force: bool,
) -> None:
    """Write the NCCL_TOPO_FILE of a node: from its dump, its bundle, or fixture:NAME.

    The file is for one NCCL version and is checked by the rules of that version. Standard error compares what NCCL
    chooses with and without this file. A file that would make communication slower is not written, and the exit code
    is 1.

    A virtual machine does not see the PCIe switches of its host. --host-capture, --instance or --affinity adds them,
    with bus ids that the guest does not use. Without these options topodiag uses the instance type that fits the
    provider, the GPUs and the NICs of the guest, if exactly one type fits.

    \b
    Examples
      topodiag emit nccl-topo fixture:dgx-h100-healthy -o topo.xml
      topodiag emit nccl-topo fixture:dgx-h100-gpu3-12of18-nvlink --repair -o topo.xml
    """
    from topodiag.app.case.topology import open_topology  # noqa: PLC0415
    from topodiag.app.judge.topo_file import by_affinity, by_evidence, by_host, by_instance, make_topo_file  # noqa: PLC0415
    from topodiag.report.emit.files import draw_topo_file  # noqa: PLC0415

    given = {"--host-capture": host_capture, "--instance": instance, "--affinity": affinity}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} cannot go together: each says where the devices belong.")
    if bare and repair:
        raise click.UsageError("--bare leaves NVLinks to NCCL, so --repair could not restore them.")
    if pairs is not None and host_capture is None:
        raise click.UsageError("--pairs names devices with those of --host-capture.")
    topology = open_topology(source, env, complete=False)
    steps = []
    if host_capture is not None:
        steps.append(by_host(topology, host_capture, pairs))
    if instance is not None:
        steps.append(by_instance(topology, instance))
    if affinity is not None:
        steps.append(by_affinity(topology, affinity))
    if not chosen and not bare:
        steps += by_evidence(topology)
    topo_file = make_topo_file(
        topology, version=nccl, nodes=nodes, host=host, repaired=repair, undescribed=bare, complete=steps, env=env
    )
    topo_file = printable(topo_file, redact=False)
    refused = bool(topo_file.worse) and not force
    path = None if output is None or output == "-" else str(Path(output).absolute())
    draw_note(lambda page: draw_topo_file(page, topo_file, path, refused=refused))
    if refused:
        reach(FOUND)
        return
    write_text(output, topo_file.text)


@click.command("nccl-conf", cls=Command)
@click.argument("sources", metavar="[SOURCE]...", nargs=-1, type=EVIDENCE)
@options("logs", "output")
def nccl_conf(sources: tuple[str, ...], logs: tuple[str, ...], output: str | None) -> None:
    """Write an nccl.conf that fixes the findings of this node, of bundles or of a job's logs.

    The file names the compute NICs if NCCL would also use others, and the interface of the default route. It corrects
    lines that NCCL misreads and removes harmful settings; a comment gives the reason for each. A file cannot override
    an environment variable: a note names the variable to unset. If no finding needs a line, no file is written.

    SOURCE is a bundle or fixture:NAME; without SOURCE and --log, this node.

    \b
    Example
      topodiag emit nccl-conf fixture:dgx-h100-gpu5-x4 -o nccl.conf
    """
    from topodiag.app.judge.conf_file import make_conf_file  # noqa: PLC0415
    from topodiag.report.emit.files import draw_conf  # noqa: PLC0415

    conf_file = printable(make_conf_file(sources, logs), redact=False)
    draw_note(lambda page: draw_conf(page, conf_file.advice, None if output == "-" else output))
    if conf_file.text:
        write_text(output, conf_file.text)


FORMATS = ("svg", "png", "pdf", "dot")


@click.command(cls=Command)
@click.argument("source", type=EVIDENCE)
@options("output")
def picture(source: str, output: str | None) -> None:
    """Draw the node: sockets, switches, GPUs, NICs, NVLinks. Faults are red.

    SOURCE is what `topodiag scan` reads: a bundle, a topology file, lstopo XML, pasted output, fixture:NAME. The suffix
    of FILE chooses the format: .svg, .dot for Graphviz, or .png and .pdf after `pip install 'topodiag[pictures]'`.
    Without FILE, standard output gets SVG.

    \b
    Examples
      topodiag emit picture gpu07.tar.gz -o gpu07.svg
      topodiag emit picture fixture:dgx-h100-healthy -o node.png
    """
    from topodiag.app.scan import pictured  # noqa: PLC0415 - heavy from here on
    from topodiag.report.emit.picture import titled_picture  # noqa: PLC0415

    format_ = _format_of(output)
    title = titled_picture(*printable(pictured(source), redact=False))
    if format_ == "dot":
        from topodiag.emit.dot import to_dot  # noqa: PLC0415

        data = to_dot(title).encode()
    else:
        from topodiag.draw.node import draw_node  # noqa: PLC0415

        drawn = draw_node(title)
        data = drawn.encode() if format_ == "svg" else _raster(drawn, format_)
    with opened_raw(output) as stream:
        stream.write(data)


def _format_of(output: str | None) -> str:
    if output is None or output == "-":
        if sys.stdout.isatty():
            raise click.UsageError("Name a file: -o node.svg, .png, .pdf or .dot.")
        return "svg"
    suffix = os.path.splitext(output)[1].lower().removeprefix(".")
    if suffix not in FORMATS:
        raise click.UsageError(f"{output!r}: the suffix is the format: .svg, .png, .pdf or .dot.")
    return suffix


def _raster(svg: str, format_: str) -> bytes:
    from topodiag.emit.raster import to_pdf, to_png  # noqa: PLC0415 - needs an extra

    return to_png(svg) if format_ == "png" else to_pdf(svg)
