"""The options that say what is trained, and how it is laid out: for `topodiag model step` and `topodiag place`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from topodiag.cli.dimensions import size_options
from topodiag.cli.options import JOB, Option, on_command_line, options, value_options
from topodiag.lazy import dataclass
from topodiag.model.layout import NAMES, OVERLAP, RANKED, JobSettings, LayoutError, dense_order, listed

_HIDDEN_WORDS = ", ".join(f"{name}={share:g}" for name, share in OVERLAP.items())


def _overlap(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    overlap = dict(OVERLAP)
    for value in values:
        name, equals, text = value.partition("=")
        try:
            share = float(text)
        except ValueError:
            share = -1.0
        if not equals or name not in NAMES or not 0 <= share <= 1:
            raise click.BadParameter(f"{value!r}: write it like dp=0.5, with {listed()} and 0 to 1.", ctx, param)
        overlap[name] = share
    return overlap


def _order(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    try:
        return dense_order(value)
    except LayoutError as error:
        raise click.BadParameter(f"{error}.", ctx, param) from None


MODEL_OPTIONS = options(
    "params", "layers", "hidden", "seq", "micro_batch", "global_batch", "precision", "experts", "top_k", "capacity",
    "active_params", "kv_share", of="model step",
)  # fmt: skip
LAYOUT_OPTIONS = options(
    "nodes",
    size_options({name: 1 for name in NAMES if name != "dp"} | {"tp": 8}),
    click.option(
        "--order", default="-".join(RANKED), show_default=True, callback=_order, metavar="DIMS",
        help="Order of the dimensions over the ranks, fastest first.",
    ),
    of="model step",
)  # fmt: skip
TRAINING_OPTIONS = options(
    "chunks", "zero", "shard", "sequence_parallel", "ulysses", "recompute",
    click.option(
        "--overlap", multiple=True, metavar="DIM=SHARE", callback=_overlap,
        help=f"Share of a dimension's traffic that overlaps with compute (default: {_HIDDEN_WORDS}); "
        "may be given several times.",
    ),
    "efficiency", "peak_tflops", of="model step",
)  # fmt: skip
"""How it is trained, whatever the layout."""
TRAINED: list[click.Parameter] = click.command()(options(MODEL_OPTIONS, TRAINING_OPTIONS)(lambda: None)).params
"""Both, as parameters."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What is trained, as the options say it by name. `said`: one was given, or --job says how large the model is."""

    given: Mapping[str, Any]
    is_given: bool
    serves: bool = False

    @property
    def asked(self) -> Mapping[str, Any] | None:
        """As the use cases take it: None where nothing says what is trained, and nothing in it where nothing is."""
        return {} if self.serves else self.given if self.is_given else None


def trained_by(ctx: click.Context, given: Mapping[str, Any], *, is_given: bool) -> Trained:
    """What the options say, with what --job read; `said`: whether one was given."""
    settings: JobSettings | None = ctx.meta.get(JOB)
    sized, serves = (settings.is_sized, settings.serves) if settings is not None else (False, False)
    return Trained(given, is_given or sized, serves and not is_given)


def trained_options(*groups: Option) -> Option:
    """These options; of them what is trained reaches the command as its argument `trained`."""

    names = [str(param.name) for param in TRAINED]
    return value_options("trained", _trained_by_options, options(*groups), names)


def _trained_by_options(**given: Any) -> Trained:
    return trained_by(click.get_current_context(), given, is_given=any(map(on_command_line, given)))
