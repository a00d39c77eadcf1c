"""`topodiag fleet manifest`: the collector for Kubernetes, as YAML."""

from __future__ import annotations

from typing import Any

import click

from topodiag.cli.options import Command, options, value_options

KINDS = ("job", "daemonset")
KEEP = "/var/lib/topodiag"
_OPTIONS = options("nodelist", "image", "namespace", "interval", "folder", "deadline", "output", of="fleet manifest")


@click.command(cls=Command)
@click.argument("kind", type=click.Choice(KINDS))
@value_options("asked", dict, _OPTIONS, ("image", "namespace", "deadline"))
def manifest(  # noqa: PLR0917 - one parameter per option
    kind: str,
    nodelist: tuple[str, ...],
    asked: dict[str, Any],
    interval: float,
    folder: str,
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
    from topodiag.cli.output import write_text  # noqa: PLC0415

    write_text(output, written(kind, nodelist, request_of(**asked), every_s=interval, keep=folder or KEEP))
