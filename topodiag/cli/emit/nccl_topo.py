"""`topodiag emit nccl-topo`: an NCCL_TOPO_FILE, judged and compared before it is written."""

from __future__ import annotations

from pathlib import Path

import click

from topodiag.cli.errors import FOUND, Outcome
from topodiag.cli.options import Command, nccl_option, options
from topodiag.cli.params import EVIDENCE


@click.command("nccl-topo", cls=Command)
@click.argument("source", type=EVIDENCE)
@options(
    "output", "repair", "bare", "host_capture", "pairs", "instance", "affinity", "host", "nodes", nccl_option(), "env",
    "force", of="emit nccl-topo",
)  # fmt: skip
@click.pass_obj
def nccl_topo(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
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
    from topodiag.cli.output import draw_note, printable, write_text  # noqa: PLC0415 - heavy from here on
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
        reached.code = FOUND
        return
    write_text(output, topo_file.text)
