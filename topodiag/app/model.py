"""The questions of `topodiag model`, which cost/ answers, for the command line.

>>> from topodiag.app.case.system import machine_of
>>> from topodiag.app.model import ask_collective
>>> made = ask_collective(machine_of("dgx-h100"), "all_reduce", 1 << 30, against=(8, 1))[0]
>>> [round(each.priced.time_us / 1000, 2) for each in made.placed]
[3.97, 39.18]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topodiag.cost.collectives import Link
from topodiag.cost.questions import ask_collective, ask_hierarchy, ask_links
from topodiag.cost.tiers import Machine, machine_of_links
from topodiag.cost.tiers import system_names as known_systems

if TYPE_CHECKING:
    from topodiag.cost.step import Step
    from topodiag.hardware.compute import Peak


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
