"""The functions of the API. Each mirrors a command: the same evidence, the same options by the same names.

Evidence is a path (`fixture:NAME`, a pattern, `-`), several paths, or bytes with the content of one file. Every
function raises InputError, with the file, the reason and a remedy, for evidence that cannot be read.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Parameter, signature
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeVar

from topodiag.api.results import AuditedLayout, Diagnosis, PredictedTopology, SolvedLayout
from topodiag.app.case.opening import standard_input
from topodiag.model.layout import NAMES, ORDER, TRAINING, Layout, listed

if TYPE_CHECKING:
    from topodiag.app.case.placement import PlaceOptions

Call = TypeVar("Call", bound=Callable[..., Any])


PLACEMENT = {
    "system": "str", "nodes": "int", "gpu": "str", "nics": "tuple[int, float]", "leaf": "int", "racks": "int",
    "oversubscription": "float", "topology": "str", "bundles": "Sequence[str]", "nodelist": "str",
    "exclude": "Sequence[str]", "free": "str", "hostfile": "str", "rankfile": "str", "slurm_hostfile": "str",
    "torchrun": "str", "map": "str", "logs": "Sequence[str]", "rule": "str", "groups": "str", "ranks": "int",
    "job": "Path | Sequence[Path]", "order": "str",
}  # fmt: skip
"""Options of `topodiag place` by the names that `audit` and `solve` take, with what they take."""


Path = str | os.PathLike[str]
Source = Path | bytes | Iterable[Path]
"""A path (also a pattern, `fixture:NAME` or `-`), several paths, or bytes."""


@contextmanager
def paths_of(source: Source | None) -> Iterator[tuple[str, ...]]:
    """The paths as the use cases take them. Bytes are read where `-` reads standard input. Raises TypeError."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        with standard_input(io.BytesIO(bytes(source))):
            yield ("-",)
        return
    if source is None:
        yield ()
        return
    given = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    for path in given:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a path is a str or an os.PathLike, not {type(path).__name__}; bytes go alone")
    yield tuple(os.fspath(path) for path in given)


def _with_signature(**more: str) -> Callable[[Call], Call]:
    """Show the parallel dimensions, and these options, by their names in the signature, so that a notebook completes
    them: one table each is the list of them."""

    def shown(call: Call) -> Call:
        plain = signature(call)
        names = dict.fromkeys(NAMES, "int | None") | more
        given = [parameter for parameter in plain.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        named = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in names.items()]
        call.__signature__ = plain.replace(parameters=[*given, *named])  # type: ignore[attr-defined]
        return call

    return shown


@_with_signature()
def diagnose(
    source: Source,
    *,
    job: Path | Sequence[Path] = (),
    order: str = "",
    training: Mapping[str, Any] | None = None,
    **sizes: int | None,
) -> Diagnosis:
    """Judge all evidence at some paths: nodes, jobs and measured runs. `sizes` declare the layout of the job, tp=8,
    pp=4, by which causes are priced as a share of a training step. `training` is what is trained, by the names of the
    options: {"params": 70e9, "layers": 80}. `job` are files that declare both: see --job.

    >>> import topodiag
    >>> [finding.id for finding in topodiag.diagnose("fixture:dgx-h100-gpu3-12of18-nvlink").findings]
    ['NVL001']
    """
    from topodiag.app import diagnose as use  # noqa: PLC0415 - heavy from here on

    sizes, order, trained = _declared(job, sizes, order, training)
    with paths_of(source) as paths:
        return Diagnosis(use.diagnose(paths, layout=_layout(sizes, order), trained=trained))


def scan(
    source: Source | None = None,
    *,
    deadline: float = 20.0,
    sample: float = 0.0,
    save: Path | None = None,
    redact: bool = False,
) -> Diagnosis:
    """This machine, or captured nodes. `deadline` and `sample` are seconds; `save` is where the bundle goes."""
    from topodiag.app import scan as use  # noqa: PLC0415 - heavy from here on
    from topodiag.app.case.live import Options  # noqa: PLC0415

    options = Options(deadline, sample, None if save is None else fspath(save), redact)
    if source is None:
        return Diagnosis(use.live(options=options))
    with paths_of(source) as paths:
        return Diagnosis(use.scan(paths, options=options))


@_with_signature()
def logs(
    source: Source,
    *,
    workers: int | None = None,
    dask: str | None = None,
    flight: Source = (),
    save: Path | None = None,
    order: str = "",
    **sizes: int | None,
) -> Diagnosis:
    """The job of NCCL logs, rebuilt and judged. `sizes` declare its layout: tp=8, pp=4. `workers` are processes, by
    default one per core; `flight` are dumps of torch's flight recorder; `save` is where the facts go (Parquet)."""
    from topodiag.app import logs as use  # noqa: PLC0415 - heavy from here on
    from topodiag.app.case.jobs import LogOptions  # noqa: PLC0415
    from topodiag.fleet.cores import one_thread  # noqa: PLC0415

    one_thread()
    with paths_of(flight) as dumps:
        options = LogOptions(
            workers=workers,
            dask=dask,
            layout=_layout(sizes, order),
            flight=dumps,
            save=None if save is None else fspath(save),
        )
    with paths_of(source) as paths:
        return Diagnosis(use.logs(paths, options=options))


def bench(
    source: Source,
    *,
    machine: Path | Sequence[Path] = (),
    system: str | None = None,
    nics: tuple[int, float] | None = None,
    nodes: int | None = None,
    nccl: str | None = None,
    env: Mapping[str, str] | None = None,
    by_file: bool = False,
) -> Diagnosis:
    """Measured bandwidth of nccl-tests against what the machine should reach. `nics` are NICs of a node and Gb/s of
    one, (8, 400); `by_file`: each file is another placement of the same job."""
    from topodiag.app.bench import bench as use  # noqa: PLC0415
    from topodiag.app.judge.runs import BenchOptions  # noqa: PLC0415 - heavy from here on

    machines = [machine] if isinstance(machine, (str, PathLike)) else machine
    options = BenchOptions(
        machine=tuple(fspath(machine) for machine in machines),
        system=system,
        nics=nics,
        nodes=nodes,
        nccl=nccl,
        env=dict(env or {}),
        by_file=by_file,
    )
    with paths_of(source) as paths:
        return Diagnosis(use(paths, options=options))


def predict(
    source: Source, *, nodes: int = 1, nccl: str = "2.28", env: Mapping[str, str] | None = None
) -> PredictedTopology:
    """What NCCL would choose on `nodes` equal nodes of a topology: paths, channels, algorithms."""
    from topodiag.app.case.topology import open_topology, predict_topology  # noqa: PLC0415 - heavy from here on

    with paths_of(source) as paths:
        if len(paths) != 1:
            raise TypeError(f"predict takes one topology, not {len(paths)} paths")
        topology = open_topology(paths[0], env)
    return PredictedTopology(topology, predict_topology(topology, nodes=nodes, version=nccl, env=env, explain=True))


@_with_signature(**PLACEMENT)
def audit(source: Source | None = None, *, training: Mapping[str, Any] | None = None, **options: Any) -> AuditedLayout:
    """What a layout costs, dimension by dimension, and what the same GPUs could give.

    `options` are those of `topodiag place audit` by name: system="dgx-h100", nodes=32, leaf=8, tp=8, pp=4,
    rule="cyclic", hostfile="hosts", topology="topology.conf". `source` are
    what the command takes as paths, or the bytes of one such file. `training` is what is trained, by the
    names of the options: {"params": 70e9, "layers": 80}, and `job` are files that declare the layout and it. Raises
    TypeError for an option that the command has not.
    """
    from topodiag.app.place import audit_placement  # noqa: PLC0415 - heavy from here on

    options, trained = _with_job(options, training)
    with paths_of(source) as paths:
        asked = _placement(paths, options)
        return AuditedLayout(*audit_placement(asked, trained))


@_with_signature(**PLACEMENT)
def solve(
    source: Source | None = None, *, launcher: str = "", training: Mapping[str, Any] | None = None, **options: Any
) -> SolvedLayout:
    """A map from ranks to nodes and GPUs that makes a training step wait least. `launcher` is a format of `topodiag
    place emit`: the map is one that it can take. See `audit` for the options."""
    from topodiag.app.judge.placing import solve_placement  # noqa: PLC0415 - heavy from here on

    options, trained = _with_job(options, training)
    with paths_of(source) as paths:
        asked = _placement(paths, options)
        return SolvedLayout(solve_placement(asked, trained, launcher=launcher), asked.inputs)


def _with_job(
    options: Mapping[str, Any], training: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """The options that are given, with the layout that the files of `job` declare, and what is trained."""
    options = {name: value for name, value in options.items() if value is not None}
    rest = {name: value for name, value in options.items() if name not in {"job", "order", *NAMES}}
    sizes = {name: options[name] for name in NAMES if name in options}
    sizes, order, trained = _declared(options.get("job", ()), sizes, options.get("order", ""), training)
    return {**rest, **sizes, "order": order}, trained or None


def _declared(
    job: Path | Sequence[Path], sizes: Mapping[str, int | None], order: str, training: Mapping[str, Any] | None
) -> tuple[dict[str, int | None], str, Mapping[str, Any] | None]:
    """Sizes, order and what is trained, with what the job's own files say where nothing else does."""
    given = {name: size for name, size in sizes.items() if size is not None}
    files = [fspath(path) for path in ([job] if isinstance(job, (str, PathLike)) else job)]
    if not files:
        return {**given}, order, None if training is None else _trained(training, TRAINING)
    from topodiag.app.job_file import declared  # noqa: PLC0415 - only where files are given

    settings = declared(files)
    trained: Mapping[str, Any] | None = {} if settings.serves else None
    if training is not None or settings.is_sized:
        trained = _trained(training or {}, settings.trained)
    return {**settings.sizes, **given}, order or (settings.order if settings.sizes else ""), trained


def _layout(sizes: Mapping[str, int | None], order: str) -> Layout | None:
    """The declared layout, None where nothing is declared. Raises TypeError for a name that is no dimension."""
    unknown = [name for name in sizes if name not in NAMES]
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}: dimensions of a layout are {listed()}")
    given = {name: size for name, size in sizes.items() if size is not None}
    if not given:
        return None
    return Layout(**given, order=order or ORDER)


def _placement(paths: Sequence[str], options: Mapping[str, Any]) -> PlaceOptions:
    """The options of the use case. Raises TypeError for an unknown one."""
    from topodiag.app.case.place_paths import place_options  # noqa: PLC0415 - heavy from here on

    left = dict(options)
    layout = _layout({name: left.pop(name) for name in NAMES if name in left}, left.pop("order", ""))
    return place_options(left, paths, layout=layout)


def _trained(training: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is trained, where it says nothing what is `known`. Raises TypeError for a name of no option."""
    unknown = [name for name in training if name not in known]
    if unknown:
        raise TypeError(f"unknown name {unknown[0]!r} in training: the names are {', '.join(known)}")
    return {**known, **training, "overlap": {**known["overlap"], **training.get("overlap", {})}}
