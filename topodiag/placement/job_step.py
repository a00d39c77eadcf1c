"""The training step of a job that ran, as far as its layout is known: what a fault of one wire takes of it.

The traffic is that of `topodiag place` and `topodiag model step`. Where nobody says what is trained, the same layout in
steps of other models gives the range within which the share lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum

from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster
from topodiag.model.finding import Outcome
from topodiag.model.provenance import NotObserved
from topodiag.placement.groups import Talk
from topodiag.placement.price import DemandCost, Floats, price_placement

Slower = Callable[[DemandCost], Floats | None]
"""Of a demand, for each of its groups, the share of its bandwidth that is left (1 where nothing is lost); None where
that is not known."""


@dataclass(frozen=True, slots=True)
class ModelStep:
    """The step of one model: `base_us` is what it takes besides the communication that it waits for."""

    name: str
    base_us: float
    demands: tuple[DemandCost, ...]

    @property
    def step_us(self) -> float:
        return self.base_us + fsum(demand.step_us for demand in self.demands)

    def lost(self, left: Sequence[Floats]) -> float:
        """The share of a step that is lost, 0 to 1, where `left` of each demand's bandwidth is there."""
        slow = fsum(
            cost.demand.waited_us(float((cost.each_us / share).max())) if cost.each_us.size else 0.0
            for cost, share in zip(self.demands, left, strict=True)
        )
        return max(1.0 - self.step_us / (self.base_us + slow), 0.0)


@dataclass(frozen=True, slots=True)
class JobStep:
    """A job by its name. `models` are the step of what is trained, first and alone where it is given, else the rule of
    thumb's and those of other sizes; `model` says where what is given is from. `layout` says the dimensions in words,
    `source` where they are from. `sm` is the compute capability of the GPUs that the step is reckoned for."""

    job: str
    models: tuple[ModelStep, ...]
    layout: str
    source: str
    given: bool = False
    model: str = "given"
    sm: int = 0

    @property
    def basis(self) -> str:
        """What the share of a step rests on, in words."""
        named = [model.name for model in self.models]
        if self.given:
            return f"{self.layout} ({self.source}), the model {self.model}"
        if len(named) == 1:
            return f"{self.layout} ({self.source}), a model of {named[0]} parameters assumed"
        first, *others = named
        return f"{self.layout} ({self.source}); {first} parameters assumed, the range is with {' and '.join(others)}"

    def lost(self, slower: Slower) -> tuple[float, ...]:
        """By model the share of a step that is lost; () where one demand's loss is not known."""
        known: dict[tuple[str, str], Floats] = {}
        lost = []
        for model in self.models:
            for demand in model.demands:
                key = (demand.demand.dimension, demand.demand.collective)
                if key not in known:
                    share = slower(demand)
                    if share is None:
                        return ()
                    known[key] = share
            lost.append(
                model.lost([known[demand.demand.dimension, demand.demand.collective] for demand in model.demands])
            )
        return tuple(lost)


def model_step(name: str, cluster: Cluster, talk: Talk, assignment: Assignment) -> ModelStep | None:
    """The step of a model on the seats that the ranks have; None where nothing says what is computed."""
    if talk.base_us is None:
        return None
    demands = tuple(demand for demand in talk.demands if demand.talks)
    return ModelStep(name, talk.base_us, price_placement(cluster, demands, assignment).demands)


@dataclass(frozen=True, slots=True)
class PlacedJobs:
    """What the seats of the ranks say: the training `steps` of jobs, the `outcomes` of the checks of layouts, and what
    could not be judged."""

    steps: tuple[JobStep, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    not_observed: tuple[NotObserved, ...] = ()
