"""A plan as JSON, as docs/sweeps.md describes it: written for readers and `bench run`, read back with every bound."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from topodiag.evidence.intake.one_file import read_small
from topodiag.lazy import regex
from topodiag.model.errors import InputError, TopodiagError
from topodiag.model.sweep import Fabric, Launch, SweepPlan, SweepRun
from topodiag.sweep.commands import LAUNCHERS, command
from topodiag.sweep.launch_words import refuse_arguments, refuse_environment
from topodiag.sweep.places import check_name, expand
from topodiag.sweep.plan import KINDS, MAX_RUNS
from topodiag.words.fold import fold_hosts

FORMAT, VERSION = "topodiag-sweep", 1
MAX_BYTES = 256 << 20
MAX_GPUS = 256
_ID = regex(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,600}", re.ASCII)
_PROGRAM = regex(r"[a-z][a-z0-9_]{0,40}_(?:perf|bw)", re.ASCII)
_WORD = regex(r"[A-Za-z0-9_]{0,40}", re.ASCII)
_NIC = regex(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]{0,100}", re.ASCII)


def plan_json(plan: SweepPlan) -> dict[str, Any]:
    """The plan as an object. `argv` and `server` of each run are what `bench run` starts, for readers to see."""
    fabric = plan.fabric
    return {
        "format": FORMAT,
        "version": VERSION,
        "round": plan.round,
        "fabric": {
            "nodes": fold_hosts(fabric.nodes),
            "gpus": fabric.gpus,
            "rails": fabric.rails,
            "nics": list(fabric.nics),
            "racks": {rack: fold_hosts(nodes) for rack, nodes in fabric.by_rack().items()},
            "leaf_per_rail": fabric.leaf_per_rail,
        },
        "launch": {
            "launcher": plan.launch.launcher,
            "arguments": list(plan.launch.arguments),
            "env": dict(plan.launch.env),
            "timeout_s": plan.launch.timeout_s,
        },
        "ib_write_bw": plan.write_bw,
        "runs": [_run_json(plan, run) for run in plan.runs],
    }


def _run_json(plan: SweepPlan, run: SweepRun) -> dict[str, Any]:
    started = command(plan, run)
    return {
        "id": run.id,
        "kind": run.kind,
        "wave": run.wave,
        "nodes": fold_hosts(run.nodes) if len(run.nodes) > 2 else ",".join(run.nodes),
        "gpus": list(run.gpus),
        "rail": run.rail,
        "collective": run.collective,
        "program": run.program,
        "algorithm": run.algorithm,
        "protocol": run.protocol,
        "min_bytes": run.low,
        "max_bytes": run.high,
        **({"why": run.why} if run.why else {}),
        "argv": list(started.argv),
        **({"server": list(started.server)} if started.server else {}),
    }


def plan_text(plan: SweepPlan) -> str:
    """The same as text, a run a line: what is in it can be looked for with grep."""
    document = plan_json(plan)
    runs = document.pop("runs")
    head = json.dumps(document, indent=1).removesuffix("\n}")
    return head + ',\n "runs": [\n' + ",\n".join("  " + json.dumps(run) for run in runs) + "\n ]\n}\n"


def read_plan(path: str) -> SweepPlan:
    """The plan in a file. Raises InputError. `argv` is not believed but made anew from the run's other fields, so that
    a plan starts nothing but launchers and benchmarks."""
    data = read_small(path, MAX_BYTES)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"is no plan: not JSON ({error})", hint=_HINT) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(path, 'is no plan: it has no "format": "topodiag-sweep"', hint=_HINT)
    if document.get("version") != VERSION:
        raise InputError(
            path, f"is a plan of version {str(document.get('version'))[:20]}; this program reads {VERSION}"
        )
    try:
        return _plan(document)
    except _WrongError as wrong:
        raise InputError(path, f"is no plan that can be run: {wrong}", hint=_HINT) from None
    except TopodiagError as error:
        raise InputError(path, f"is no plan that can be run: {error.message}", hint=_HINT) from None


_HINT = "topodiag bench plan writes one; docs/sweeps.md describes it"


class _WrongError(Exception):
    """A field that is not what it should be."""


def _plan(document: Mapping[str, Any]) -> SweepPlan:
    fabric = _fabric(_of(document, "fabric", dict))
    launch = _of(document, "launch", dict)
    launcher = _of(launch, "launcher", str)
    if launcher not in LAUNCHERS:
        raise _WrongError(f"launcher {launcher[:20]!r} is none of {', '.join(LAUNCHERS)}")
    env = _of(launch, "env", dict)
    if not all(_NAME.fullmatch(name) and isinstance(value, str) and "\0" not in value for name, value in env.items()):
        raise _WrongError("env is not of names and strings")
    arguments = _strings(launch, "arguments")
    if refused := refuse_arguments(launcher, arguments) or refuse_environment(env):
        raise _WrongError(refused)
    listed = _of(document, "runs", list)
    if len(listed) > MAX_RUNS:
        raise _WrongError(f"it has more than {MAX_RUNS} runs")
    known = frozenset(fabric.nodes)
    runs = tuple(_run(entry, fabric, known) for entry in listed)
    if len({run.id for run in runs}) != len(runs):
        raise _WrongError("two of its runs have one id")
    return SweepPlan(
        fabric,
        runs,
        _number(document, "round", 1, 1000),
        Launch(launcher, arguments, env, _number(launch, "timeout_s", 1, 86_400)),
        _of(document, "ib_write_bw", bool),
    )


def _fabric(document: Mapping[str, Any]) -> Fabric:
    nodes = expand(_plain(_of(document, "nodes", str)))
    racks: dict[str, str] = {}
    for rack, members in _of(document, "racks", dict).items():
        if not isinstance(members, str):
            raise _WrongError("racks are not node sets by name")
        for node in expand(_plain(members)):
            racks[node] = rack
    nics = _strings(document, "nics")
    if not all(_NIC.fullmatch(nic) for nic in nics):
        raise _WrongError("nics are no device names")
    rails = _number(document, "rails", 1, MAX_GPUS)
    return Fabric(
        nodes, _number(document, "gpus", 1, MAX_GPUS), rails, nics, racks, _of(document, "leaf_per_rail", bool)
    )


def _run(document: object, fabric: Fabric, known: frozenset[str]) -> SweepRun:
    if not isinstance(document, dict):
        raise _WrongError("a run is no object")
    name = _of(document, "id", str)
    if not _ID.fullmatch(name):
        raise _WrongError(f"id {name[:40]!r}: letters, digits, dots and dashes only")
    program, kind = _of(document, "program", str), _of(document, "kind", str)
    if not _PROGRAM.fullmatch(program):
        raise _WrongError(f"{name[:60]}: {program[:40]!r} is no benchmark (*_perf or ib_write_bw)")
    if kind not in {*KINDS, "gpus"}:
        raise _WrongError(f"{name[:60]}: kind {kind[:20]!r}")
    nodes = _nodes_of(document, name, program, known)
    gpus = _of(document, "gpus", list)
    if not gpus or not all(type(gpu) is int and 0 <= gpu < fabric.gpus for gpu in gpus):
        raise _WrongError(f"{name[:60]}: gpus are not of the fabric")
    rail = document.get("rail")
    if rail is not None and not (type(rail) is int and 0 <= rail < fabric.rails):
        raise _WrongError(f"{name[:60]}: rail is not of the fabric")
    words = [_of(document, key, str) for key in ("collective", "algorithm", "protocol")]
    if not all(_WORD.fullmatch(word) for word in words):
        raise _WrongError(f"{name[:60]}: collective, algorithm and protocol are words")
    low, high = _number(document, "min_bytes", 1, 1 << 50), _number(document, "max_bytes", 1, 1 << 50)
    wave = _number(document, "wave", 1, MAX_RUNS)
    why = document.get("why", "")
    return SweepRun(
        name, kind, wave, nodes, tuple(gpus), words[0], program, rail, words[1], words[2], low, high,
        why if isinstance(why, str) else "",
    )  # fmt: skip


def _nodes_of(document: Mapping[str, Any], name: str, program: str, known: frozenset[str]) -> tuple[str, ...]:
    """The nodes of a run, all of the fabric."""
    nodes = expand(_plain(_of(document, "nodes", str)))
    if "[" not in document["nodes"]:
        nodes = tuple(map(check_name, document["nodes"].split(",")))  # a pair keeps its order: the first one listens
    if not nodes or not known.issuperset(nodes):
        raise _WrongError(f"{name[:60]}: nodes that are not of the fabric")
    if program == "ib_write_bw" and len(nodes) != 2:
        raise _WrongError(f"{name[:60]}: ib_write_bw is of two nodes")
    return nodes


def _plain(text: str) -> str:
    """A node set without groups: what a group is may be asked of a program, and a file starts none."""
    if "@" in text:
        raise _WrongError("node groups are not allowed in a plan")
    return text


T = TypeVar("T")


def _of(document: Mapping[str, Any], key: str, kind: type[T]) -> T:
    value = document.get(key)
    if not isinstance(value, kind):
        raise _WrongError(f"{key!r} is missing or is no {_SPELT[kind]}")
    return value


_SPELT: dict[type, str] = {dict: "object", list: "list", str: "string", bool: "true or false"}


def _strings(document: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = _of(document, key, list)
    if not all(isinstance(value, str) and "\0" not in value for value in values):
        raise _WrongError(f"{key!r} is no list of strings")
    return tuple(values)


def _number(document: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = document.get(key)
    if type(value) is not int or not least <= value <= most:
        raise _WrongError(f"{key!r} is no whole number from {least} to {most}")
    return value
