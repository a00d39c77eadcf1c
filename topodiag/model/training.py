"""What a training's own log says of the model that is trained and of its layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class LoggedTraining:
    """The arguments that the program printed at its start. `sizes` are those of parallel dimensions by their short
    names (tp, pp, cp, ep), `world` the ranks they are of (0: not said), `options` what is trained by the names of
    `topodiag model step`: empty where the log does not say enough of it. `waited_for` are dimensions
    whose communication nothing hides."""

    source: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    world: int = 0
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    origin: Origin | None = None
    waited_for: tuple[str, ...] = ()
