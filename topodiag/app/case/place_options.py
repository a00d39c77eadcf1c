"""What the commands of `topodiag place` are asked: a cluster, the layout on it, and the groups in which ranks talk."""

from __future__ import annotations

import hashlib
import os

from topodiag.evidence.layout.rank_files import READERS
from topodiag.lazy import dataclass
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Input
from topodiag.model.layout import Layout

MOST_BYTES = 64 << 20
"""Bytes of a file whose checksum is taken: a table of ranks has less."""
_FILES = ("topology", "bundles", "free", *READERS, "logs", "groups")


class PlaceError(TopodiagError):
    """Options that make no cluster or no layout."""


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """The cluster: `topology` is a file, `bundles` are captures of the nodes; without both, `nodes` systems in leaves
    of `leaf` nodes or in `racks` equal racks. `nodelist` keeps only these nodes, `exclude` takes out `gpu[01-04]` or
    `gpu07:0,3`, `free` is a file of what is free. `oversubscription` None is 1, or what the file tells.

    Where ranks sit: one of the files, a job's `logs`, or the launcher's `rule`. All empty: no layout is given. With a
    file and logs the ranks sit where they ran, and the file is what was declared.

    Who talks: parallel sizes (`layout`) or a file (`groups`). `ranks` 0: as many as fit. `least_ranks` is how many a
    cluster must hold of which nothing names or counts the nodes. `left` says which of the paths given are of no use."""

    system: str = ""
    nodes: int = 0
    gpu: str = ""
    nics: tuple[int, float] | None = None
    leaf: int = 0
    racks: int = 0
    oversubscription: float | None = None
    topology: str = ""
    bundles: tuple[str, ...] = ()
    nodelist: str = ""
    exclude: tuple[str, ...] = ()
    free: str = ""
    hostfile: str = ""
    rankfile: str = ""
    slurm_hostfile: str = ""
    torchrun: str = ""
    map: str = ""
    logs: tuple[str, ...] = ()
    rule: str = ""
    layout: Layout | None = None
    groups: str = ""
    ranks: int = 0
    least_ranks: int = 0
    left: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The files and folders that the options name, each with the option as its kind."""
        named = {name: getattr(self, name) for name in _FILES}
        return tuple(
            _input(path, name)
            for name, given in named.items()
            for path in ([given] if isinstance(given, str) else given)
            if path
        )


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
