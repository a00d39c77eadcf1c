"""What the paths of `topodiag place` are: hostfiles, logs, descriptions of the cluster and bundles, told by content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from topodiag.app.case.build import LAYOUTS
from topodiag.app.case.given import blob_at
from topodiag.app.case.opening import stream_for
from topodiag.app.case.place_options import PlaceError, PlaceOptions
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.one_file import open_blob
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, left_aside
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.rank_files import read_map
from topodiag.model.errors import InputError

if TYPE_CHECKING:
    from topodiag.model.layout import Layout

HINT = (
    "give a hostfile, rankfile or map of ranks, NCCL logs, a description of the cluster, bundles of its nodes, or the"
    " sizes of the parallel dimensions"
)
_READ_BY = {**LAYOUTS, Kind.GROUPS: "groups", Kind.SIZES: "sizes", Kind.TOPOLOGY: "system", Kind.HWLOC: "system"}
"""The option that reads a file, by what it is first of all."""
_CLUSTERS = (Kind.CLUSTER, Kind.KUBERNETES)
_LOGS = (Kind.NCCL_LOG, Kind.SAVED_FACTS, Kind.PARQUET)


def place_options(options: Mapping[str, Any], paths: Sequence[str] = (), **given: Any) -> PlaceOptions:
    """The options that a user gives by name, None for one that was not given, and those that the caller adds; `paths`
    are files of any kind that the options take, bundles and logs, known by their content. Raises TypeError for a name
    of no option, InputError where no path is of use, and PlaceError where two say the same."""
    named = {name: value for name, value in options.items() if value is not None}
    known = {field.name for field in fields(PlaceOptions)}
    if unknown := [name for name in named if name not in known]:
        raise TypeError(f"unknown option {unknown[0]!r}: topodiag place audit --help lists them")
    placed = PlaceOptions(**named, **given)
    placed = _sorted(placed, paths) if paths else placed
    if placed.layout is not None and placed.groups:
        raise PlaceError(f"{placed.groups} and parallel sizes both say which ranks form groups: give one")
    return placed


def _sorted(options: PlaceOptions, paths: Sequence[str]) -> PlaceOptions:
    """The options with the paths put where they belong."""
    stream = stream_for(paths)
    if stream is not None and not stream.seekable():
        raise PlaceError("standard input goes in by an option that says what it is", hint="--hostfile -, --topology -")
    intake = gather(paths, stdin=stream)
    if stream is not None:
        stream.seek(0)  # what it is has been told by its head: the reader of its kind begins at the start
    by_path: dict[str, Any] = {}
    bundles: list[str] = []
    logs: list[str] = []
    left: list[str] = []
    logged = {piece.root for piece in intake.pieces if piece.is_any(_LOGS)}
    for piece in intake.pieces:
        option = _option(piece, stream if piece.path == STDIN else None)
        is_log = _is_log(piece, logged)
        if piece.member and is_log:
            logs.append(piece.path)  # the reader of logs unpacks it
        elif piece.member:
            left.append(f"{piece.name}: in an archive; unpack {piece.path}, and give the folder")
        elif option:
            _take(by_path, option, piece.path)
        elif piece.kind is Kind.BUNDLE:
            bundles.append(piece.path)
        elif is_log:
            logs.append(piece.path)
        else:
            left.append(str(left_aside(piece)))
    if not (by_path or bundles or logs):
        _refuse(intake)
    placed = _with_paths(options, by_path, bundles, logs)
    return replace(placed, left=(*intake.notes, *left, *map(str, intake.aside)))


def _with_paths(
    options: PlaceOptions, by_path: dict[str, Any], bundles: Sequence[str], logs: Sequence[str]
) -> PlaceOptions:
    """The options with what the paths are. Raises PlaceError where two say the same."""
    for option, path in by_path.items():
        if already := getattr(options, option, ""):
            raise PlaceError(f"{path} and --{option} {already} say the same: give one")
    layout, sizes = options.layout, by_path.pop("sizes", "")
    if sizes:
        if layout is not None:
            raise PlaceError(f"{sizes} and the options both say how the job is laid out: give one")
        layout = _sizes(sizes)
    bundles, logs = (*options.bundles, *bundles), (*options.logs, *dict.fromkeys(logs))
    return replace(options, **by_path, bundles=bundles, logs=logs, layout=layout)


def _sizes(path: str) -> Layout | None:
    from topodiag.evidence.layout.job_file import layout_of, read_job  # noqa: PLC0415 - YAML, for this file only

    return layout_of(read_job(blob_at(path)))


def _is_log(piece: Piece, logged: set[str]) -> bool:
    """Whether the reader of logs takes it. `logged` are arguments with logs: their other texts may hold records."""
    return piece.is_any(_LOGS) or (piece.kind in (Kind.TEXT, Kind.JOB_OUTPUT) and piece.root in logged)


def _option(piece: Piece, stream: BinaryIO | None) -> str:
    """The option that reads it, "" for bundles, logs and what `place` does not read."""
    if piece.kind is Kind.RESULT and _holds_map(piece, stream):
        return "map"
    return _READ_BY.get(piece.kind, "topology" if piece.is_any(_CLUSTERS) else "")


def _holds_map(piece: Piece, stream: BinaryIO | None) -> bool:
    """Whether a result of topodiag is one of `place`, which has a map of ranks."""
    try:
        read_map(open_blob(piece.path, stream))
    except InputError:
        return False
    finally:
        if stream is not None:
            stream.seek(0)
    return True


def _take(by_path: dict[str, Any], option: str, path: str) -> None:
    """One file of each kind, and one of where ranks sit."""
    rivals = set(LAYOUTS.values()) if option in LAYOUTS.values() else {option}
    other = next((by_path[name] for name in by_path if name in rivals), None)
    if other is not None:
        what = "where ranks sit" if option in LAYOUTS.values() else "the same"
        raise PlaceError(f"{other} and {path} both say {what}: give one")
    by_path[option] = path


def _refuse(intake: Intake) -> None:
    """No path is of use to `place`: the first one says what it is."""
    for left_out in (*map(left_aside, intake.pieces), *intake.aside):
        raise InputError(left_out.path, left_out.words, hint=left_out.hint or HINT)
    raise InputError(intake.paths[0], "holds no file to read", hint=HINT)
