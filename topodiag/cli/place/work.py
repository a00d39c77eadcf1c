"""The options that say what is trained, for `topodiag place`: how much the dimensions of a layout say in a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.model.step_options import MODEL_OPTIONS, TRAINING_OPTIONS, Trained, trained_options

if TYPE_CHECKING:
    from topodiag.cli.place.options import Ready
    from topodiag.placement.groups import Talk

work_options = trained_options(MODEL_OPTIONS, TRAINING_OPTIONS)


def talk_for(ready: Ready, trained: Trained) -> Talk:
    """Who talks to whom, and how much: by parallel sizes, by groups, or by the communicators of a job's logs. Raises
    TopodiagError and click.UsageError."""
    from topodiag.placement.groups import talk_of_groups, talk_of_layout  # noqa: PLC0415 - heavy from here on
    from topodiag.placement.job_groups import talk_of_job  # noqa: PLC0415

    cluster, job = ready.opened.cluster, ready.opened.job
    if trained.said and ready.layout is None:
        raise click.UsageError("--params and its like go with --tp, --pp, --dp, --cp or --ep.")
    if ready.layout is not None:
        if not trained.said:
            return talk_of_layout(cluster, ready.layout, ready.world)
        return _trained(ready, trained)
    if ready.groups:
        return talk_of_groups(cluster, ready.groups, ready.world)
    if job is not None:
        return talk_of_job(cluster, job)
    raise click.UsageError("Who talks to whom? Give parallel sizes (--tp 8 --pp 4), --groups FILE, or --log FILE.")


def _trained(ready: Ready, trained: Trained) -> Talk:
    from dataclasses import replace  # noqa: PLC0415

    from topodiag.cost.training import peak_of  # noqa: PLC0415
    from topodiag.placement.groups import machine_of, talk_of_layout  # noqa: PLC0415

    layout = ready.layout
    assert layout is not None  # noqa: S101 - the caller has looked
    whole = layout.for_world(ready.world)
    machine = machine_of(ready.opened.cluster, ready.world)
    peak = peak_of(machine, trained.given["precision"], trained.given["peak_tflops"])
    made = trained.work(whole.dp, peak)
    talk = talk_of_layout(ready.opened.cluster, layout, ready.world, made)
    said = f"computation reaches {made.reached:.0%} of {peak.tflops:g} TFLOPS ({peak.source})"
    return replace(talk, assumed=(*talk.assumed, said))
