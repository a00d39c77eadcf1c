"""A plan as JSON, as docs/sweeps.md describes it: written for readers and `bench run`, read back with every bound."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from topodiag.evidence.intake.one_file import read_small
from topodiag.model.errors import InputError, TopodiagError
from topodiag.sweep.commands import IB_WRITE_BW, LAUNCHERS, command, refuse_arguments, refuse_environment
from topodiag.sweep.places import check_name, expand
from topodiag.sweep.plan import KINDS, MAX_RUNS
from topodiag.sweep.values import Fabric, Launch, SweepPlan, SweepRun
from topodiag.words.units import fold_hosts

FORMAT: Final = "topodiag-sweep"
VERSION: Final = 1
MAX_BYTES = 256 << 20
MAX_GPUS = 256
_HINT = "topodiag bench plan writes one; docs/sweeps.md describes it"

Text = Annotated[str, Meta(pattern=r"^[^\0]*\Z")]
Word = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{0,40}\Z")]
Size = Annotated[int, Meta(ge=1, le=1 << 50)]
Count = Annotated[int, Meta(ge=1, le=MAX_GPUS)]
Index = Annotated[int, Meta(ge=0, lt=MAX_GPUS)]


class FabricFields(msgspec.Struct, kw_only=True):
    """The machines, in node sets."""

    nodes: str
    gpus: Count
    rails: Count
    nics: tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:-]{1,64}\Z")], ...]
    racks: dict[str, str]
    leaf_per_rail: bool


class LaunchFields(msgspec.Struct, kw_only=True):
    """How runs are started."""

    launcher: str
    arguments: tuple[Text, ...]
    env: dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,100}\Z")], Text]
    timeout_s: Annotated[int, Meta(ge=1, le=86_400)]


class RunFields(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One run. `argv` and `server` are what `bench run` starts, for readers to see."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+-]{0,600}\Z")]
    kind: str
    wave: Annotated[int, Meta(ge=1, le=MAX_RUNS)]
    nodes: str
    gpus: Annotated[tuple[Index, ...], Meta(min_length=1)]
    rail: Index | None
    collective: Word
    program: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,40}_(?:perf|bw)\Z")]
    algorithm: Word
    protocol: Word
    min_bytes: Size
    max_bytes: Size
    why: str = ""
    argv: tuple[str, ...] = ()
    server: tuple[str, ...] = ()


class PlanFields(msgspec.Struct, kw_only=True):
    """The whole file."""

    format: Literal["topodiag-sweep"]
    version: Literal[1]
    round: Annotated[int, Meta(ge=1, le=1000)]
    fabric: FabricFields
    launch: LaunchFields
    ib_write_bw: bool
    runs: Annotated[tuple[RunFields, ...], Meta(max_length=MAX_RUNS)]


def plan_json(plan: SweepPlan) -> dict[str, Any]:
    """The plan as an object."""
    racks = {rack: fold_hosts(nodes) for rack, nodes in plan.fabric.by_rack().items()}
    fabric = msgspec.to_builtins(plan.fabric) | {"nodes": fold_hosts(plan.fabric.nodes), "racks": racks}
    fields = PlanFields(
        format=FORMAT,
        version=VERSION,
        round=plan.round,
        fabric=FabricFields(**fabric),
        launch=LaunchFields(**msgspec.to_builtins(plan.launch)),
        ib_write_bw=plan.write_bw,
        runs=tuple(_run_fields(plan, run) for run in plan.runs),
    )
    document: dict[str, Any] = msgspec.to_builtins(fields)
    return document


def _run_fields(plan: SweepPlan, run: SweepRun) -> RunFields:
    started = command(plan, run)
    nodes = fold_hosts(run.nodes) if len(run.nodes) > 2 else ",".join(run.nodes)
    fields = msgspec.to_builtins(run) | {"nodes": nodes}
    return RunFields(**fields, argv=started.argv, server=started.server)


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
        document = msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(path, f"is no plan: not JSON ({error})", hint=_HINT) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(path, 'is no plan: it has no "format": "topodiag-sweep"', hint=_HINT)
    if document.get("version") != VERSION:
        raise InputError(
            path, f"is a plan of version {str(document.get('version'))[:20]}; this program reads {VERSION}"
        )
    try:
        return _plan(msgspec.convert(document, PlanFields))
    except msgspec.ValidationError as wrong:
        raise InputError(path, f"is no plan that can be run: {wrong}", hint=_HINT) from None
    except TopodiagError as wrong:
        raise InputError(path, f"is no plan that can be run: {wrong.message}", hint=_HINT) from None


def _plan(fields: PlanFields) -> SweepPlan:
    """The plan, where its fields fit each other. Raises TopodiagError."""
    launch = fields.launch
    if launch.launcher not in LAUNCHERS:
        raise TopodiagError(f"launcher {launch.launcher[:20]!r} is none of {', '.join(LAUNCHERS)}")
    if refused := refuse_arguments(launch.launcher, launch.arguments) or refuse_environment(launch.env):
        raise TopodiagError(refused)
    machines = fields.fabric
    racks = {node: rack for rack, members in machines.racks.items() for node in _nodes(members)}
    fabric = Fabric(_nodes(machines.nodes), machines.gpus, machines.rails, machines.nics, racks, machines.leaf_per_rail)
    known = frozenset(fabric.nodes)
    runs = tuple(_run(run, fabric, known) for run in fields.runs)
    if len({run.id for run in runs}) != len(runs):
        raise TopodiagError("two of its runs have one id")
    started = Launch(launch.launcher, launch.arguments, launch.env, launch.timeout_s)
    return SweepPlan(fabric, runs, fields.round, started, fields.ib_write_bw)


def _run(run: RunFields, fabric: Fabric, known: frozenset[str]) -> SweepRun:
    name = run.id[:60]
    if run.kind not in {*KINDS, "gpus"}:
        raise TopodiagError(f"{name}: kind {run.kind[:20]!r}")
    nodes = _nodes(run.nodes)
    if "[" not in run.nodes:
        nodes = tuple(map(check_name, run.nodes.split(",")))  # a pair keeps its order: the first one listens
    if not nodes or not known.issuperset(nodes):
        raise TopodiagError(f"{name}: nodes that are not of the fabric")
    if run.program == IB_WRITE_BW and len(nodes) != 2:
        raise TopodiagError(f"{name}: ib_write_bw is of two nodes")
    if max(run.gpus) >= fabric.gpus:
        raise TopodiagError(f"{name}: gpus are not of the fabric")
    if run.rail is not None and run.rail >= fabric.rails:
        raise TopodiagError(f"{name}: rail is not of the fabric")
    return SweepRun(
        run.id, run.kind, run.wave, nodes, run.gpus, run.collective, run.program, run.rail, run.algorithm,
        run.protocol, run.min_bytes, run.max_bytes, run.why,
    )  # fmt: skip


def _nodes(text: str) -> tuple[str, ...]:
    """A node set without groups: what a group is may be asked of a program, and a file starts none."""
    if "@" in text:
        raise TopodiagError("node groups are not allowed in a plan")
    return expand(text)
