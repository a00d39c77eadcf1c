"""A cause of a low bandwidth that can be priced, as the modules that know causes give it."""

from __future__ import annotations

from collections.abc import Callable

from topodiag.expect.rates import Rates, reached_on
from topodiag.expect.setup import NoSetupError, Setup
from topodiag.lazy import dataclass
from topodiag.nccl.topo.changes import ChangeError
from topodiag.words.own_data import own_data


def _unchanged(setup: Setup) -> Setup:
    return setup


@dataclass(frozen=True, slots=True)
class Cause:
    """`change` makes the changed machine; `gbs` and `span` a known figure
    or range instead. `prior`: how common, 1 for the most common. `checks` find it on a node or in a log; `settings`
    cause it; `networks` imply it; `slow_start`: whether it also raises the latency of small sizes.
    `least`: the share of the model's figure down to which it may fall, where NCCL's model is an upper bound.
    `cleared_by_log`, `cleared_by_nodes`: checks of which a single clean verdict excludes it: on a log, or on bundles
    of all nodes."""

    words: str
    change: Callable[[Setup], Setup] = _unchanged
    prior: float = 0.5
    checks: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    gbs: float | None = None
    span: tuple[float, float] | None = None
    least: float = 1.0
    slow_start: bool | None = None
    cleared_by_log: tuple[str, ...] = ()
    cleared_by_nodes: tuple[str, ...] = ()
    both_ways: bool = False
    """Whether it costs only where a link carries both directions at once."""
    shown: str = ""
    """What shows the fault itself, where the machine or a setting does."""

    def share_left(self, setup: Setup, whole: Rates, collective: str) -> float | None:
        """What it leaves of the bandwidth of a whole machine; None where the model has no answer."""
        try:
            return reached_on(whole, self.change(setup), collective)
        except (NoSetupError, ChangeError, ZeroDivisionError):
            return None


def cause_of(name: str, change: Callable[[Setup], Setup] = _unchanged, **words: object) -> Cause:
    """The cause that causes.toml knows by this name, `words` filled into its words."""
    row = own_data("expect/causes")[name]
    lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
    return Cause(**{**row, **lists, "words": row["words"].format(**words), "change": change})
