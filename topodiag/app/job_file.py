"""The files that describe a job (`--job`), as one set of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from topodiag.app.case.opening import blob_at
from topodiag.evidence.intake.collected import resolve
from topodiag.evidence.layout.job_file import read_job
from topodiag.model.errors import InputError
from topodiag.model.layout import JobSettings

Value = TypeVar("Value")


def declared(paths: Sequence[str]) -> JobSettings:
    """What these files declare of one job: a launch script and its model's config.json, for example. Raises InputError
    where one cannot be read or declares nothing, and where two disagree."""
    first, *others = [read_job(blob_at(resolve(path))) for path in paths]
    for other in others:
        first = JobSettings(
            f"{first.source} and {other.source}",
            _both(first.sizes, other.sizes, other.source),
            first.world or other.world,
            _both(first.options, other.options, other.source),
            {**other.origins, **first.origins},
            tuple(dict.fromkeys((*first.waited_for, *other.waited_for))),
            first.order if first.sizes else other.order,
            first.serves or other.serves,
        )
    return first


def spelt(settings: JobSettings) -> str:
    """What was read, with the line of each setting: `train.sh: tp 8 (line 12), ...`; and what nobody says."""
    facts = {**settings.sizes, **settings.options}
    lines = {name: origin.line for name, origin in settings.origins.items() if origin.line is not None}
    spots = {name: f" (line {line})" for name, line in lines.items()}
    words = [f"{name.replace('_', '-')} {_spelt(value)}{spots.get(name, '')}" for name, value in facts.items()]
    more = ""
    if settings.serves:
        more = "; it starts a server: nothing is trained"
    elif not settings.is_sized:
        more = "; the size of the model is not among them (params, layers and hidden, or --job config.json)"
    return f"{settings.source}: {', '.join(words)}{more}"


def _spelt(value: float | str | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _both(first: Mapping[str, Value], second: Mapping[str, Value], source: str) -> dict[str, Value]:
    for name in first.keys() & second.keys():
        if first[name] != second[name]:
            why = f"says {name} {second[name]}, and another --job says {first[name]}"
            raise InputError(source, why, hint="give the files of one run")
    return {**second, **first}
