"""What is trained, for `topodiag place` and `topodiag diagnose`: how much the dimensions of a layout send in a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.dimensions import job_option
from topodiag.cli.model.step_options import TRAINED, Trained, trained_by
from topodiag.cli.options import option, options
from topodiag.model.dimensions import flags

if TYPE_CHECKING:
    from topodiag.app.case.place_paths import PlaceOptions

_SETTINGS = click.Command("model", params=TRAINED)
"""The options of `topodiag model step` that say what is trained, as one option takes them."""


def _trained(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> Trained:
    words = tuple(f"--{word.strip()}" for value in values for word in value.split(",") if word.strip())
    try:
        given = _SETTINGS.make_context("model", list(words), default_map=ctx.default_map).params
    except click.UsageError as error:
        more = "write it like params=7B,layers=32; topodiag model step --help lists all"
        raise click.BadParameter(f"{error.format_message().rstrip('.')}; {more}.", ctx, param) from None
    return trained_by(ctx, given, is_given=bool(words))


work_options = options(job_option, option("trained", callback=_trained))


def work_said(asked: PlaceOptions, trained: Trained) -> Mapping[str, Any] | None:
    """What is trained, None where no option says it. Raises UsageError where nothing says how it is laid out."""
    if trained.is_given and asked.layout is None:
        raise click.UsageError(f"--model goes with {flags()}.")
    return trained.asked
