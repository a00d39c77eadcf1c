"""The settings of the next run in the words of each launcher, for `topodiag env`, by debug_settings.toml."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from topodiag.model.debug_settings import DebugSetting
from topodiag.words.own_data import own_data


def _written(form: Mapping[str, Any], settings: Sequence[DebugSetting]) -> list[str]:
    notes = [form["notes"].format(name=s.name, words=" ".join(s.why)) for s in settings if "notes" in form]
    lines = [*notes, *form.get("head", ())]
    for setting in settings:
        name, value = setting.name, setting.value
        given = {"shell": shlex.quote(value), "json": json.dumps(value), "pair": shlex.quote(f"{name}={value}")}
        lines += [form["why"].format(words=words) for words in setting.why if "why" in form]
        lines += [line.format(name=name, **given) for line in form["setting"]]
    return [*lines, *form.get("end", ())]


def _json(settings: Sequence[DebugSetting]) -> list[str]:
    values = [{"name": s.name, "value": s.value, "why": " ".join(s.why)} for s in settings]
    return json.dumps(values, indent=2).splitlines()


WRITERS: Mapping[str, Callable[[Sequence[DebugSetting]], list[str]]] = {
    **{name: partial(_written, form) for name, form in own_data("report/debug_settings").items()},
    "json": _json,
}
