"""What the topo commands share on the command line."""

from __future__ import annotations

from collections.abc import Sequence

import click

from topodiag.cli.params import Count

MAX_NODES = 100_000


def _version(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from topodiag.model.nccl_versions import UnknownVersionError, minor_of  # noqa: PLC0415 - not for the help

    try:
        minor_of(value)
    except UnknownVersionError as unknown:
        raise click.BadParameter(f"{unknown}.", ctx, param) from None
    return value


def _any_version(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return _version(ctx, param, value) if value else ""


def _env(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.startswith("NCCL_"):
            raise click.BadParameter(f"{value!r}: write it like NCCL_P2P_LEVEL=PHB.", ctx, param)
        made[name] = text
    return made


nccl_option = click.option(
    "--nccl", "version", default="2.28", show_default=True, metavar="VERSION", callback=_version,
    help="NCCL version, 2.18 to 2.30.",
)  # fmt: skip
any_nccl_option = click.option(
    "--nccl", "version", default="", metavar="VERSION", callback=_any_version,
    help="NCCL version, 2.18 to 2.30 (default: all of them).",
)  # fmt: skip
run_nccl_option = click.option(
    "--nccl", "version", default="", metavar="VERSION", callback=_any_version,
    help="NCCL version, 2.18 to 2.30 (default: what the output says).",
)  # fmt: skip
nodes_option = click.option(
    "--nodes", type=Count(1, MAX_NODES), default=1, show_default=True, metavar="N", help="Equal nodes in the job."
)
env_option = click.option(
    "--env", multiple=True, metavar="NAME=VALUE", callback=_env, help="An NCCL setting of the job; repeat it."
)
