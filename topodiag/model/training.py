"""What a job's own files, or its log, say of the model that is trained and of its layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.dimensions import ORDER
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class JobSettings:
    """The settings of a job. `sizes` are those of parallel dimensions by their short names (tp, pp, cp, ep, dp), in the
    `order` of their ranks, and `world` the ranks they are of (0: not said). `options` are what is trained by the names
    of `topodiag model step`. `waited_for` are dimensions whose communication nothing hides. `serves`: an engine answers
    requests, and nothing is trained. `origins` are the places of sizes and options, by the same names."""

    source: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    world: int = 0
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    waited_for: tuple[str, ...] = ()
    order: str = ORDER
    serves: bool = False

    @property
    def is_sized(self) -> bool:
        """Whether they say how large the model is."""
        return "params" in self.options
