"""What the paths of `topodiag place` are: hostfiles, logs, descriptions of the cluster and bundles, told by content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from topodiag.app.case.build import LAYOUTS
from topodiag.app.case.opening import blob_at, gathered, kept_stdin
from topodiag.app.case.placement import PlaceError, PlaceOptions
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, left_aside
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.rank_files import read_map
from topodiag.model.errors import InputError

HINT = (
    "give a hostfile, rankfile or map of ranks, NCCL logs, a description of the cluster, bundles of its nodes, or the"
    " sizes of the parallel dimensions"
)
_OPTIONS = {
    **LAYOUTS, Kind.GROUPS: "groups", Kind.SIZES: "layout", Kind.TOPOLOGY: "system", Kind.HWLOC: "system",
    Kind.BUNDLE: "bundles",
}  # fmt: skip
"""The option that reads a file, by what it is first of all."""
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
    stream = kept_stdin() if STDIN in paths else None
    intake = gathered(paths)
    if stream is not None:
        stream.seek(0)  # what it is has been told by its head: the reader of its kind begins at the start
    logged = {piece.root for piece in intake.pieces if piece.is_any(_LOGS)}
    by_option: dict[str, list[str]] = {}
    left: list[str] = []
    for piece in intake.pieces:
        option = _option(piece, logged)
        if not option:
            left.append(str(left_aside(piece)))
        elif piece.member and option != "logs":  # the reader of logs unpacks them
            left.append(f"{piece.name}: in an archive; unpack {piece.path}, and give the folder")
        else:
            by_option.setdefault(option, []).append(piece.path)
    if stream is not None:
        stream.seek(0)
    if not by_option:
        _refuse(intake)
    named = {option: _one(options, option, own) for option, own in by_option.items()}
    return replace(options, **named, left=(*intake.notes, *left, *map(str, intake.aside)))


def _option(piece: Piece, logged: set[str]) -> str:
    """The option that reads it, "" for what `place` does not read. `logged` are arguments with logs: their other texts
    may hold records."""
    if piece.kind is Kind.RESULT and _holds_map(piece.path):
        return "map"
    if piece.kind in _OPTIONS or piece.is_any((Kind.CLUSTER, Kind.KUBERNETES)):
        return _OPTIONS.get(piece.kind, "topology")
    is_log = piece.is_any(_LOGS) or (piece.kind in (Kind.TEXT, Kind.JOB_OUTPUT) and piece.root in logged)
    return "logs" if is_log else ""


def _holds_map(path: str) -> bool:
    """Whether a result of topodiag is one of `place`, which has a map of ranks."""
    try:
        read_map(blob_at(path))
    except InputError:
        return False
    return True


def _one(options: PlaceOptions, option: str, paths: Sequence[str]) -> Any:
    """The option with these paths. Raises PlaceError where two say the same."""
    already = getattr(options, option)
    if option in ("bundles", "logs"):
        return (*already, *dict.fromkeys(paths))
    given = f"--{option} {already}" if isinstance(already, str) else "the sizes among the options"
    same = [*paths, given] if already else paths
    if len(same) > 1:
        what = "where ranks sit" if option in LAYOUTS.values() else "the same"
        raise PlaceError(f"{same[0]} and {same[1]} both say {what}: give one")
    if option != "layout":
        return paths[0]
    from topodiag.evidence.layout.job_file import layout_of, read_job  # noqa: PLC0415 - YAML, for this file only

    return layout_of(read_job(blob_at(paths[0])))


def _refuse(intake: Intake) -> None:
    """No path is of use to `place`: the first one says what it is."""
    for left_out in (*map(left_aside, intake.pieces), *intake.aside):
        raise InputError(left_out.path, left_out.words, hint=left_out.hint or HINT)
    raise InputError(intake.paths[0], "holds no file to read", hint=HINT)
