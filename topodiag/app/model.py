"""The wiring of `topodiag model`: from a system's name, a bundle or plain links to a machine, and its answers.

>>> from topodiag.app.case.system import machine_of
>>> from topodiag.app.model import ask_collective
>>> made = ask_collective(machine_of("dgx-h100"), "all_reduce", 1 << 30, against=(8, 1))[0]
>>> [round(each.priced.time_us / 1000, 2) for each in made.placed]
[3.97, 39.18]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topodiag.app.case.system import GIVEN
from topodiag.cost.collectives import Link
from topodiag.cost.questions import (
    Hierarchy,
    LinkPrice,
    Placements,
    Reading,
    price_hierarchy,
    price_links,
    price_placements,
    read_measured,
)
from topodiag.cost.tiers import Machine, Tier
from topodiag.cost.tiers import system_names as known_systems

if TYPE_CHECKING:
    from topodiag.cost.step import Step
    from topodiag.hardware.compute import Peak


def machine_of_links(inside: Link, outside: Link | None, per_node: int, nodes: int) -> Machine:
    """Nodes of `per_node` ranks that reach each other by `inside`, and other nodes by `outside`."""
    near = Tier("inside", inside, per_node, 0.0, GIVEN)
    far = Tier("network", outside, per_node * nodes, 0.0, GIVEN) if outside is not None else None
    tiers = (near,) if far is None else (near, far)
    return Machine("the links given", nodes, per_node, per_node, near, far, tiers=tiers)


def ask_links(size: int, *, machine: Machine | None = None, links: Sequence[Link] = ()) -> tuple[LinkPrice, ...]:
    """One buffer of `size` bytes over all tiers of the machine, or over the links given."""
    if machine is not None:
        return price_links(machine.tiers, float(size))
    return price_links(tuple(Tier("given", link, 2, link.gbs, GIVEN) for link in links), float(size))


# --- collectives ----------------------------------------------------------------------------------------------


def ask_collective(
    machine: Machine,
    collective: str,
    size: int,
    *,
    placement: tuple[int, int] | None = None,
    against: tuple[int, int] | None = None,
    algorithm: str = "auto",
    measured_us: float | None = None,
) -> tuple[Placements, Reading | None]:
    """A collective of `size` bytes under `placement` (nodes, ranks on each; by default one full node) and under
    `against` (by default one rank per node), and what a measured time speaks for. Raises ModelError for what the model
    does not know."""
    first = placement or (1, machine.gpus_per_node)
    other = against or (first[0] * first[1], 1)
    # A reducing switch has nothing to do for one rank per node.
    single = other == first or (against is None and algorithm in {"nvls", "nvls_tree"})
    placements = price_placements(machine, collective, float(size), (first,) if single else (first, other), algorithm)
    return placements, read_measured(placements, measured_us) if measured_us is not None else None


def ask_hierarchy(machine: Machine) -> Hierarchy:
    """Flat against hierarchical all-reduce over all GPUs of the machine, grouped by its NVLink domains."""
    domains = max(machine.gpus // machine.domain, 1)
    return price_hierarchy(machine, domains, machine.gpus // domains)


# --- training -------------------------------------------------------------------------------------------------


def ask_step(
    machine: Machine, trained: Mapping[str, Any], sizes: Mapping[str, int], order: Sequence[str]
) -> tuple[Step, Peak, tuple[str, ...]]:
    """A step of a model on all GPUs of the machine, the peak of a GPU, and what was assumed. `trained` are the options
    of `topodiag model step` by name, `sizes` those of its dimensions, `order` the fastest first. Raises ModelError
    where sizes do not divide."""
    from topodiag.cost.training import fitted_layout, peak_of, price_training, work_assumed, work_of  # noqa: PLC0415 - numpy

    layout = fitted_layout(machine, sizes, order)
    peak = peak_of(machine, trained["precision"], trained["peak_tflops"])
    step = price_training(work_of(trained, layout.dp, peak), layout, machine)
    return step, peak, work_assumed(step, peak)


__all__ = [
    "Link", "ask_collective", "ask_hierarchy", "ask_links", "ask_step", "known_systems", "machine_of_links",
]  # fmt: skip
