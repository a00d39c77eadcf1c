"""The options that say what is trained, for `topodiag place`: how much the dimensions of a layout say in a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.dimensions import job_option
from topodiag.cli.model.step_options import MODEL_OPTIONS, TRAINING_OPTIONS, Trained, trained_options
from topodiag.model.dimensions import flags

if TYPE_CHECKING:
    from topodiag.app.judge.placing import PlaceOptions

work_options = trained_options((job_option,), MODEL_OPTIONS, TRAINING_OPTIONS)


def work_said(asked: PlaceOptions, trained: Trained) -> Mapping[str, Any] | None:
    """What is trained, None where no option says it. Raises UsageError where nothing says how it is laid out."""
    if trained.said and asked.layout is None:
        raise click.UsageError(f"--params and its like go with {flags()}.")
    return trained.asked
