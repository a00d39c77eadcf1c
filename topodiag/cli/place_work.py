"""The options that say what is trained, for `topodiag place`: how much the dimensions of a layout say in a step."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from topodiag.cli.model_options import options
from topodiag.cli.model_step_options import MODEL_OPTIONS, TRAINING_OPTIONS

if TYPE_CHECKING:
    from topodiag.cli.place_options import Ready
    from topodiag.placement.groups import Talk

_NAMES = ("params", "layers", "hidden", "seq", "micro_batch", "global_batch", "precision", "experts", "top_k",
          "capacity", "active_params", "kv_share", "chunks", "zero", "shard", "sequence_parallel", "ulysses",
          "recompute", "overlap", "efficiency", "peak_tflops")  # fmt: skip


def work_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of the model and its training, handed to the command as its argument `work`: their values where one
    was given, an empty dict for the rule of thumb."""

    @options(MODEL_OPTIONS, TRAINING_OPTIONS)
    @click.pass_context
    @wraps(command)
    def wrapped(ctx: click.Context, *args: Any, **given: Any) -> None:
        taken = {name: given.pop(name) for name in _NAMES}
        said = any(ctx.get_parameter_source(name) is not ParameterSource.DEFAULT for name in _NAMES)
        ctx.invoke(command, *args, work=taken if said else {}, **given)

    return wrapped


def talk_for(ready: Ready, work: dict[str, Any]) -> Talk:
    """Who talks to whom, and how much: by parallel sizes, by groups, or by the communicators of a job's logs. Raises
    TopodiagError and click.UsageError."""
    from topodiag.placement.groups import talk_of_groups, talk_of_layout  # noqa: PLC0415 - heavy from here on
    from topodiag.placement.job_groups import talk_of_job  # noqa: PLC0415

    cluster, job = ready.opened.cluster, ready.opened.job
    if work and ready.layout is None:
        raise click.UsageError("--params and its like go with --tp, --pp, --dp, --cp or --ep.")
    if ready.layout is not None:
        if not work:
            return talk_of_layout(cluster, ready.layout, ready.world)
        return _trained(ready, work)
    if ready.groups:
        return talk_of_groups(cluster, ready.groups, ready.world)
    if job is not None:
        return talk_of_job(cluster, job)
    raise click.UsageError("Who talks to whom? Give parallel sizes (--tp 8 --pp 4), --groups FILE, or --log FILE.")


def _trained(ready: Ready, work: dict[str, Any]) -> Talk:
    from dataclasses import replace  # noqa: PLC0415

    from topodiag.cost.step import Work  # noqa: PLC0415
    from topodiag.cost.training import peak_of  # noqa: PLC0415
    from topodiag.placement.groups import machine_of, talk_of_layout  # noqa: PLC0415

    layout = ready.layout
    assert layout is not None  # noqa: S101 - the caller has looked
    whole = layout.for_world(ready.world)
    machine = machine_of(ready.opened.cluster, ready.world)
    peak = peak_of(machine, work["precision"], work["peak_tflops"])
    shard = work["shard"] or 0
    made = Work(
        parameters=work["params"], layers=work["layers"], hidden=work["hidden"], sequence=work["seq"],
        micro_batch=work["micro_batch"], global_batch=work["global_batch"] or 16 * work["micro_batch"] * whole.dp,
        peak_tflops=peak.tflops, reached=work["efficiency"], active_parameters=work["active_params"],
        experts=work["experts"], top_k=work["top_k"], capacity=work["capacity"], kv_share=work["kv_share"],
        chunks=work["chunks"], zero=3 if shard else work["zero"], shard=shard,
        sequence_parallel=work["sequence_parallel"], ulysses=work["ulysses"], recompute=work["recompute"],
        overlap=work["overlap"],
    )  # fmt: skip
    talk = talk_of_layout(ready.opened.cluster, layout, ready.world, made)
    said = f"computation reaches {made.reached:.0%} of {peak.tflops:g} TFLOPS ({peak.source})"
    return replace(talk, assumed=(*talk.assumed, said))
