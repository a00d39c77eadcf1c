"""What NCCL's search finds on a system, searched once in a run of the suite: all its processes share one folder.

Files are named by the content of the question (the system, the settings, which graphs), so that another question
never gets this one's answer. The folder begins empty with each run: `share` makes it, `drop` removes it. What tests the
search itself calls `topodiag.nccl.search.search`, which keeps nothing.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from topodiag.nccl.graph.graph import SearchGraph, System
from topodiag.nccl.search import search
from topodiag.nccl.settings import Settings

_PLACE = "SEARCHES_OF_THIS_RUN"
"""The variable that says to the processes of a run where their folder is."""


def share() -> str | None:
    """Begin a run: an empty folder for this process and those it starts. None where a process above began it."""
    if _PLACE in os.environ:
        return None
    os.environ[_PLACE] = tempfile.mkdtemp(prefix="topodiag-searches-")
    return os.environ[_PLACE]


def drop(folder: str) -> None:
    """End the run that `share` began."""
    os.environ.pop(_PLACE, None)
    shutil.rmtree(folder, ignore_errors=True)


def use() -> None:
    """Let the program, in this process, ask here."""
    setattr(import_module("topodiag.nccl.search.searched"), "search_graphs", search_graphs)  # noqa: B010 - untyped


def search_graphs(
    system: System, settings: Settings, *, nvls: bool = True, collnet: bool = False
) -> tuple[SearchGraph, ...]:
    """As `search.search_graphs`, which is asked where no process of this run has asked it before."""
    folder = os.environ.get(_PLACE)
    if folder is None:
        return search.search_graphs(system, settings, nvls=nvls, collnet=collnet)
    # from which line of a file a vertex comes decides nothing
    try:
        question = pickle.dumps((replace(system, lines={}), settings, nvls, collnet))
    except RecursionError:  # racks: every vertex holds its links, one inside the other
        return search.search_graphs(system, settings, nvls=nvls, collnet=collnet)
    place = Path(folder, hashlib.sha256(question).hexdigest())
    with suppress(FileNotFoundError):
        known: tuple[SearchGraph, ...] = pickle.loads(place.read_bytes())
        return known
    found = search.search_graphs(system, settings, nvls=nvls, collnet=collnet)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(pickle.dumps(found))
    Path(file.name).replace(place)
    return found
