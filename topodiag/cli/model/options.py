"""The machine of the model commands: a system of the catalogue, evidence of one, or two links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.options import (
    DEFAULT_SYSTEM,
    gpu_option,
    gpus_per_node_option,
    inside_option,
    leaf_option,
    machine_option,
    nics_option,
    outside_option,
    oversubscription_option,
    system_option,
)

if TYPE_CHECKING:
    from topodiag.cost.alpha_beta import Link
    from topodiag.cost.tiers import Machine

system_options = (
    system_option(DEFAULT_SYSTEM), machine_option, gpu_option, nics_option, leaf_option, oversubscription_option,
)  # fmt: skip
link_options = (inside_option, outside_option, gpus_per_node_option)


def machine_from(
    evidence: str | None,
    system: str | None,
    nodes: int,
    *,
    gpu: str,
    nics: tuple[int, float] | None,
    leaf: int | None,
    oversubscription: float | None,
    inside: Link | None = None,
    outside: Link | None = None,
    gpus_per_node: int = 8,
) -> Machine:
    """The machine that the options name. Raises ModelError, InputError, UsageError."""
    from topodiag.app.model import machine_of, machine_of_links  # noqa: PLC0415 - heavy from here on

    if inside is not None:
        return machine_of_links(inside, outside, gpus_per_node, nodes)
    if outside is not None:
        raise click.UsageError("--outside goes with --inside.")
    if evidence is not None and system is not None:
        raise click.UsageError("--machine and --system exclude each other.")
    return machine_of(
        evidence or system or DEFAULT_SYSTEM, nodes,
        gpu=gpu, nics=nics, nodes_per_leaf=leaf or 0, oversubscription=oversubscription or 1.0,
    )  # fmt: skip
