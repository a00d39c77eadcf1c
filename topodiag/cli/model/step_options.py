"""The options that say what is trained, and how it is laid out: for `topodiag model step` and `topodiag place`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from topodiag.cli.command import JOB
from topodiag.cli.dimensions import size_options
from topodiag.cli.options import Command, nodes_option, options
from topodiag.cli.params import Count, Number, Ratio
from topodiag.lazy import dataclass
from topodiag.model.dimensions import DIMENSIONS, NAMES, RANKED, listed

if TYPE_CHECKING:
    from topodiag.model.training import JobSettings

HIDDEN = {dimension.name: dimension.hidden for dimension in DIMENSIONS if dimension.hidden}
"""What frameworks run beside compute unless told otherwise."""
_HIDDEN_WORDS = ", ".join(f"{name}={share:g}" for name, share in HIDDEN.items())


def _overlap(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    overlap = dict(HIDDEN)
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
    from topodiag.model.layout import LayoutError, dense_order  # noqa: PLC0415 - not for the help

    try:
        return dense_order(value)
    except LayoutError as error:
        raise click.BadParameter(f"{error}.", ctx, param) from None


_SIZE = Count(1, 1 << 20)
MODEL_OPTIONS = (
    click.option(
        "--params", type=Number(), default="70e9", show_default=True, metavar="N",
        help="Number of parameters: 70e9 or 70B.",
    ),
    click.option(
        "--layers", type=Count(1, 10_000), default=80, show_default=True, metavar="N", help="Number of layers."
    ),
    click.option("--hidden", type=_SIZE, default=8192, show_default=True, metavar="N", help="Hidden size."),
    click.option(
        "--seq", type=Count(1, 1 << 24), default=4096, show_default=True, metavar="N", help="Sequence length."
    ),
    click.option(
        "--micro-batch", type=_SIZE, default=1, show_default=True, metavar="N", help="Sequences per micro-batch."
    ),
    click.option(
        "--global-batch", type=Count(1, 1 << 24), metavar="N", help="Sequences per step (default: 16 per replica)."
    ),
    click.option(
        "--precision", type=click.Choice(("bf16", "fp16", "fp8")), default="bf16", show_default=True,
        help="Precision of the arithmetic; activations and gradients are sent as 16 bit.",
    ),
    click.option(
        "--experts", type=Count(0, 1 << 16), default=0, metavar="N", help="Experts per layer (0: a dense model)."
    ),
    click.option("--top-k", type=Count(1, 1024), default=2, show_default=True, metavar="N", help="Experts per token."),
    click.option("--capacity", type=Ratio(0.1, 100), default=1.0, metavar="X", help="Capacity factor of the experts."),
    click.option("--active-params", type=Number(), metavar="N", help="Parameters that one token uses."),
    click.option(
        "--kv-share", type=Ratio(0.001, 1), default=1.0, metavar="X", help="Key-value heads divided by attention heads."
    ),
)  # fmt: skip
LAYOUT_OPTIONS = (
    nodes_option(8),
    size_options({name: 1 for name in NAMES if name != "dp"} | {"tp": 8}),
    click.option(
        "--order", default="-".join(RANKED), show_default=True, callback=_order, metavar="DIMS",
        help="Order of the dimensions over the ranks, fastest first.",
    ),
)  # fmt: skip
TRAINING_OPTIONS = (
    click.option(
        "--chunks", type=Count(1, 1024), default=1, metavar="N", help="Model chunks per GPU (interleaved pipeline)."
    ),
    click.option(
        "--zero", type=Count(0, 3), default=1, show_default=True, metavar="STAGE", help="ZeRO stage 0 to 3; 3 is FSDP."
    ),
    click.option("--shard", type=_SIZE, metavar="N", help="HSDP: FSDP within N ranks, replicas between."),
    click.option("--sequence-parallel", is_flag=True, help="Use sequence parallelism with tp."),
    click.option("--ulysses", is_flag=True, help="Context parallelism by all-to-all instead of a ring."),
    click.option(
        "--recompute", type=click.Choice(("none", "selective", "full")), default="selective", show_default=True,
        help="Which activations the backward pass computes again.",
    ),
    click.option(
        "--overlap", multiple=True, metavar="DIM=SHARE", callback=_overlap,
        help=f"Share of a dimension's traffic that overlaps with compute (default: {_HIDDEN_WORDS}); "
        "may be given several times.",
    ),
    click.option(
        "--efficiency", type=Ratio(0.01, 1), default=0.5, show_default=True, metavar="X",
        help="Share of the peak that compute reaches between communication.",
    ),
    click.option(
        "--peak-tflops", type=Ratio(0.001, 1e6), metavar="X",
        help="Dense peak of one GPU, instead of the datasheet's.",
    ),
)  # fmt: skip
"""How it is trained, whatever the layout."""
TRAINED: list[click.Parameter] = click.command()(options(MODEL_OPTIONS, TRAINING_OPTIONS)(lambda: None)).params
"""Both, as parameters."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What is trained, as the options say it by name. `said`: one was given, or --job says how large the model is."""

    given: Mapping[str, Any]
    said: bool
    serves: bool = False

    @property
    def asked(self) -> Mapping[str, Any] | None:
        """As the use cases take it: None where nothing says what is trained, and nothing in it where nothing is."""
        return {} if self.serves else self.given if self.said else None


def trained_by(ctx: click.Context, given: Mapping[str, Any], *, said: bool) -> Trained:
    """What the options say, with what --job read; `said`: whether one was given."""
    settings: JobSettings | None = ctx.meta.get(JOB)
    sized, serves = (settings.is_sized, settings.serves) if settings is not None else (False, False)
    return Trained(given, said or sized, serves and not said)


def trained_options(*groups: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    """These options; of them what is trained reaches the command as its argument `trained`."""

    def add(command: Command) -> Command:
        @options(*groups)
        @click.pass_context
        @wraps(command)
        def wrapped(ctx: click.Context, *args: Any, **given: Any) -> None:
            names = [str(param.name) for param in TRAINED]
            said = any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in names)
            trained = trained_by(ctx, {name: given.pop(name) for name in names}, said=said)
            ctx.invoke(command, *args, trained=trained, **given)

        return wrapped

    return add
