"""`topodiag fleet manifest`: the collector for Kubernetes, as YAML."""

from __future__ import annotations

import click

from topodiag.cli.command import Command
from topodiag.cli.options import options

KINDS = ("job", "daemonset")
KEEP = "/var/lib/topodiag"


@click.command(cls=Command)
@click.argument("kind", type=click.Choice(KINDS))
@options("nodelist", "image", "namespace", "every", "folder", "deadline", "output", of="fleet manifest")
def manifest(  # noqa: PLR0917 - one parameter per option
    kind: str,
    nodelist: tuple[str, ...],
    image: str | None,
    namespace: str | None,
    every: float,
    folder: str,
    deadline: float | None,
    output: str | None,
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
    from topodiag.app.collect import manifest as written  # noqa: PLC0415
    from topodiag.app.collect import request_of  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import check_output, write_text  # noqa: PLC0415

    check_output(output)
    request = request_of(deadline_s=deadline, image=image, namespace=namespace)
    write_text(output, written(kind, nodelist, request, every_s=every, keep=folder or KEEP))
