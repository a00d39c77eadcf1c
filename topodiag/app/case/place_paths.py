"""What the paths of `topodiag place` are: hostfiles, logs, descriptions of the cluster and bundles, told by content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import BinaryIO

from topodiag.app.case.cluster import ClusterOptions, PlaceError
from topodiag.app.case.layout import LayoutOptions
from topodiag.app.case.opening import stream_for
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.one_file import open_blob
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, left_aside
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.rank_files import read_map
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError

HINT = (
    "give a hostfile, rankfile or map of ranks, NCCL logs, a description of the cluster, bundles of its nodes, or the"
    " sizes of the parallel dimensions"
)
_LAYOUTS = {Kind.HOSTFILE: "hostfile", Kind.RANKFILE: "rankfile", Kind.RANK_MAP: "map"}
_CLUSTERS = (Kind.CLUSTER, Kind.KUBERNETES)
_LOGS = (Kind.NCCL_LOG, Kind.SAVED_FACTS, Kind.PARQUET)
_NODE = (Kind.TOPOLOGY, Kind.HWLOC)


@dataclass(frozen=True, slots=True)
class SortedPaths:
    """The options with what the paths are. `groups` and `sizes` are files that say who talks to whom, "" where there is
    none; `left` has a line for each file that is left aside."""

    cluster: ClusterOptions
    places: LayoutOptions
    groups: str
    sizes: str
    left: tuple[str, ...]


def sort_paths(paths: tuple[str, ...], cluster: ClusterOptions, places: LayoutOptions, groups: str) -> SortedPaths:
    """What the paths are. Raises InputError where no path is of use, and PlaceError where two say the same."""
    stream = stream_for(paths)
    if stream is not None and not stream.seekable():
        raise PlaceError("standard input goes in by an option that says what it is", hint="--hostfile -, --topology -")
    intake = gather(paths, stdin=stream)
    if stream is not None:
        stream.seek(0)  # what it is has been told by its head: the reader of its kind begins at the start
    by_path: dict[str, str] = {}
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
    left += [str(left_out) for left_out in intake.aside]
    _refuse_twice(by_path, cluster, places, groups)
    layout = {name: by_path[name] for name in _LAYOUTS.values() if name in by_path}
    return SortedPaths(
        replace(
            cluster,
            topology=by_path.get("topology", cluster.topology),
            system=by_path.get("system", cluster.system),
            bundles=(*cluster.bundles, *bundles),
        ),
        replace(places, logs=(*places.logs, *dict.fromkeys(logs)), **layout),
        by_path.get("groups", groups),
        by_path.get("sizes", ""),
        (*intake.notes, *left),
    )


def _is_log(piece: Piece, logged: set[str]) -> bool:
    """Whether the reader of logs takes it. `logged` are arguments with logs: their other texts may hold records."""
    return piece.is_any(_LOGS) or (piece.kind in (Kind.TEXT, Kind.JOB_OUTPUT) and piece.root in logged)


def _refuse_twice(by_path: Mapping[str, str], cluster: ClusterOptions, places: LayoutOptions, groups: str) -> None:
    """A path and an option that say the same are one too many."""
    given = {"topology": cluster.topology, "system": cluster.system, "groups": groups, "sizes": ""}
    for option, path in by_path.items():
        already = given[option] if option in given else getattr(places, option)
        if already:
            raise PlaceError(f"{path} and --{option} {already} say the same: give one")


def _option(piece: Piece, stream: BinaryIO | None) -> str:
    """The option that reads it, "" for bundles, logs and what `place` does not read."""
    if piece.kind in _LAYOUTS:
        return _LAYOUTS[piece.kind]
    if piece.kind is Kind.GROUPS:
        return "groups"
    if piece.kind is Kind.SIZES:
        return "sizes"
    if piece.is_any(_CLUSTERS):
        return "topology"
    if piece.kind in _NODE:
        return "system"
    return "map" if piece.kind is Kind.RESULT and _holds_map(piece, stream) else ""


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


def _take(by_path: dict[str, str], option: str, path: str) -> None:
    """One file of each kind, and one of where ranks sit."""
    rivals = set(_LAYOUTS.values()) if option in _LAYOUTS.values() else {option}
    other = next((by_path[name] for name in by_path if name in rivals), None)
    if other is not None:
        what = "where ranks sit" if option in _LAYOUTS.values() else "the same"
        raise PlaceError(f"{other} and {path} both say {what}: give one")
    by_path[option] = path


def _refuse(intake: Intake) -> None:
    """No path is of use to `place`: the first one says what it is."""
    for left_out in (*map(left_aside, intake.pieces), *intake.aside):
        reads = f"; {left_out.command} reads it" if left_out.command else ""
        raise InputError(left_out.path, f"{left_out.why}{reads}", hint=left_out.hint or HINT)
    raise InputError(intake.paths[0], "holds no file to read", hint=HINT)
