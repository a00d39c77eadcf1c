"""The settings of the next run in the words of each launcher, for `topodiag env`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping

from topodiag.model.debug_settings import DebugSetting


def _sh(settings: tuple[DebugSetting, ...]) -> list[str]:
    lines: list[str] = []
    for setting in settings:
        lines += [f"# {words}" for words in setting.why]
        lines.append(f"export {setting.name}={shlex.quote(setting.value)}")
    return lines


def _slurm(settings: tuple[DebugSetting, ...]) -> list[str]:
    return [
        "# In the batch script, before srun; srun passes the environment on (--export=ALL, its default).",
        "# Not in --export=NAME=VALUE itself: its list is split at commas.",
        *_sh(settings),
    ]


def _mpirun(settings: tuple[DebugSetting, ...]) -> list[str]:
    lines = [f"# {s.name}: {' '.join(s.why)}" for s in settings]
    words = [f"-x {shlex.quote(f'{s.name}={s.value}')}" for s in settings]
    return [*lines, "# Open MPI; with MPICH or Intel MPI write -genv NAME VALUE", "mpirun \\",
            *(f"  {word} \\" for word in words), "  ..."]  # fmt: skip


def _k8s(settings: tuple[DebugSetting, ...]) -> list[str]:
    lines = ["env:"]
    for setting in settings:
        lines += [f"  # {words}" for words in setting.why]
        lines += [f"  - name: {setting.name}", f"    value: {json.dumps(setting.value)}"]
    return lines


def _json(settings: tuple[DebugSetting, ...]) -> list[str]:
    values = [{"name": s.name, "value": s.value, "why": " ".join(s.why)} for s in settings]
    return json.dumps(values, indent=2).splitlines()


WRITERS: Mapping[str, Callable[[tuple[DebugSetting, ...]], list[str]]] = {
    "sh": _sh,
    "slurm": _slurm,
    "mpirun": _mpirun,
    "k8s": _k8s,
    "json": _json,
}
