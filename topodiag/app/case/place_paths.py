"""What the paths of `topodiag place` are: hostfiles, logs, descriptions of the cluster and bundles, told by content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from topodiag.app.case.cluster import ClusterOptions, PlaceError
from topodiag.app.case.given import blob_at
from topodiag.app.case.layout import READERS, LayoutOptions
from topodiag.app.case.opening import stream_for
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.one_file import open_blob
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, left_aside
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.rank_files import read_map
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.finding import Input

if TYPE_CHECKING:
    from topodiag.model.layout import Layout

HINT = (
    "give a hostfile, rankfile or map of ranks, NCCL logs, a description of the cluster, bundles of its nodes, or the"
    " sizes of the parallel dimensions"
)
_LAYOUTS = {Kind.HOSTFILE: "hostfile", Kind.RANKFILE: "rankfile", Kind.RANK_MAP: "map"}
_READ_BY = {**_LAYOUTS, Kind.GROUPS: "groups", Kind.SIZES: "sizes", Kind.TOPOLOGY: "system", Kind.HWLOC: "system"}
"""The option that reads a file, by what it is first of all."""
_CLUSTERS = (Kind.CLUSTER, Kind.KUBERNETES)
_LOGS = (Kind.NCCL_LOG, Kind.SAVED_FACTS, Kind.PARQUET)
MOST_BYTES = 64 << 20
"""Bytes of a file whose checksum is taken: a table of ranks has less."""


def _input(path: str, kind: str) -> Input:
    """A file with its checksum; of a folder, a stream or a file that is no table of ranks the name alone."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MOST_BYTES:
            return Input(path, kind)
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError:
        return Input(path, kind)
    return Input(path, kind, hashlib.sha256(data).hexdigest(), data.count(b"\n"))


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """A cluster, the layout on it, and the groups in which ranks talk: parallel sizes (`layout`) or a file (`groups`).
    `ranks` 0: as many as fit. `paths` are files of any of these kinds, bundles and logs, known by their content."""

    cluster: ClusterOptions = ClusterOptions()
    places: LayoutOptions = LayoutOptions()
    layout: Layout | None = None
    groups: str = ""
    ranks: int = 0
    paths: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The files and folders that the options name, each with the option as its kind."""
        cluster, places = self.cluster, self.places
        named: dict[str, tuple[str, ...]] = {
            "topology": (cluster.topology,), "bundles": tuple(cluster.bundles), "free": (cluster.free,),
            **{name: (getattr(places, name),) for name in READERS}, "logs": tuple(places.logs),
            "groups": (self.groups,), "path": self.paths,
        }  # fmt: skip
        return tuple(_input(path, kind) for kind, paths in named.items() for path in paths if path)


def place_options(
    options: Mapping[str, Any], layout: Layout | None, paths: Sequence[str], *, least_ranks: int = 0
) -> PlaceOptions:
    """Options by name, each where it belongs; one that is None or is not there has its default. `least_ranks` is how
    many ranks a cluster must hold of which nothing names the nodes. Raises TypeError for a name of no option."""
    left = {name: value for name, value in options.items() if value is not None}
    groups, ranks = left.pop("groups", ""), left.pop("ranks", 0)
    cluster, places = (
        {field.name: left.pop(field.name) for field in fields(kind) if field.name in left}
        for kind in (ClusterOptions, LayoutOptions)
    )
    if left:
        raise TypeError(f"unknown option {next(iter(left))!r}: topodiag place audit --help lists them")
    whole = ClusterOptions(**cluster, ranks=ranks or least_ranks)
    return PlaceOptions(whole, LayoutOptions(**places), layout, groups, ranks, tuple(paths))


def sort_paths(options: PlaceOptions) -> tuple[PlaceOptions, tuple[str, ...]]:
    """The options with their paths put where they belong, and a line for each file that is left aside. Raises
    InputError where no path is of use, and PlaceError where two say the same."""
    paths = options.paths
    if not paths:
        return options, ()
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
    return _with_paths(options, by_path, bundles, logs), (*intake.notes, *left)


def _with_paths(
    options: PlaceOptions, by_path: Mapping[str, str], bundles: Sequence[str], logs: Sequence[str]
) -> PlaceOptions:
    """The options with what the paths are. Raises PlaceError where two say the same."""
    _refuse_twice(by_path, options)
    groups, sizes = by_path.get("groups", options.groups), by_path.get("sizes", "")
    if sizes and options.layout is not None:
        raise PlaceError(f"{sizes} and the options both say how the job is laid out: give one")
    layout = _sizes(sizes) if sizes else options.layout
    if groups and layout is not None:
        raise PlaceError("a file of groups and parallel sizes both say which ranks form groups: give one")
    cluster, places = options.cluster, options.places
    cluster = replace(
        cluster,
        topology=by_path.get("topology", cluster.topology),
        system=by_path.get("system", cluster.system),
        bundles=(*cluster.bundles, *bundles),
    )
    files = {name: by_path[name] for name in _LAYOUTS.values() if name in by_path}
    places = replace(places, logs=(*places.logs, *dict.fromkeys(logs)), **files)
    return replace(options, cluster=cluster, places=places, layout=layout, groups=groups, paths=())


def _sizes(path: str) -> Layout | None:
    from topodiag.evidence.layout.job_file import layout_of, read_job  # noqa: PLC0415 - YAML, for this file only

    return layout_of(read_job(blob_at(path)))


def _is_log(piece: Piece, logged: set[str]) -> bool:
    """Whether the reader of logs takes it. `logged` are arguments with logs: their other texts may hold records."""
    return piece.is_any(_LOGS) or (piece.kind in (Kind.TEXT, Kind.JOB_OUTPUT) and piece.root in logged)


def _refuse_twice(by_path: Mapping[str, str], options: PlaceOptions) -> None:
    """A path and an option that say the same are one too many."""
    cluster = options.cluster
    given = {"topology": cluster.topology, "system": cluster.system, "groups": options.groups, "sizes": ""}
    for option, path in by_path.items():
        already = given[option] if option in given else getattr(options.places, option)
        if already:
            raise PlaceError(f"{path} and --{option} {already} say the same: give one")


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
        raise InputError(left_out.path, left_out.words, hint=left_out.hint or HINT)
    raise InputError(intake.paths[0], "holds no file to read", hint=HINT)
