"""What NCCL's search finds on a system, and the best map of a job, searched once in a run of the suite: all its
processes share one folder.

Files are named by the content of the question (the system, the settings, which graphs; the cluster, what is sent), so
that another question never gets this one's answer. The folder begins empty with each run: `share` makes it, `drop`
removes it. What tests the searches themselves calls `topodiag.nccl.search.search` and `topodiag.placement.solve`, which
keep nothing.
"""

import hashlib
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from topodiag.model.cluster import Assignment, Cluster, Demand
from topodiag.nccl.graph.graph import RejectedError, SearchGraph, System
from topodiag.nccl.search import search
from topodiag.nccl.settings import Settings, read_settings
from topodiag.placement import solve as placement

T = TypeVar("T")
_POLICY = "NCCL_NETDEVS_POLICY"
"""Of the variables, the one that the search reads itself (`search.candidates.Guide`)."""
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
    for name in ("topodiag.app.judge.placing", "topodiag.placement.audit"):
        setattr(import_module(name), "solve", solve)  # noqa: B010


def search_graphs(
    system: System, settings: Settings, *, nvls: bool = True, collnet: bool = False
) -> tuple[SearchGraph, ...]:
    """As `search.search_graphs`, which is asked where no process of this run has asked it before.

    It is asked without what no search looks at, so that more questions are one: from which line of a file a vertex
    comes, how many ranks there are elsewhere, settings of other decisions.
    """
    bare = replace(system, lines={}, nranks=len(system.gpus))
    policy = {name: value for name, value in settings.values.items() if name == _POLICY}
    asked = replace(read_settings({}, system.minor), cross_nic=settings.cross_nic, values=policy)
    return _once((bare, asked, nvls, collnet), lambda: search.search_graphs(bare, asked, nvls=nvls, collnet=collnet))


def solve(
    cluster: Cluster,
    demands: Sequence[Demand],
    world: int,
    *,
    seed: int = 0,
    tries: int | None = None,
    at_most: Assignment | None = None,
) -> placement.Solution:
    """As `topodiag.placement.solve.solve`, which says the same whenever it is asked the same."""
    question = cluster, tuple(demands), world, seed, tries, at_most
    return _once(question, lambda: placement.solve(cluster, demands, world, seed=seed, tries=tries, at_most=at_most))


@dataclass(frozen=True)
class _GivenUp:
    """An answer as well: the words with which NCCL's search gives up, where no line of a file is named."""

    words: str


def _once(question: object, answer: Callable[[], T]) -> T:
    folder = os.environ.get(_PLACE)
    if folder is None:
        return answer()
    try:
        asked = pickle.dumps(question)
    except RecursionError:  # racks: every vertex holds its links, one inside the other
        return answer()
    place = Path(folder, hashlib.sha256(asked).hexdigest())
    with suppress(FileNotFoundError):
        known: T | _GivenUp = pickle.loads(place.read_bytes())
        if isinstance(known, _GivenUp):
            raise RejectedError(known.words)
        return known
    try:
        found = answer()
    except RejectedError as rejected:
        if not rejected.line:
            _keep(place, _GivenUp(rejected.words))
        raise
    _keep(place, found)
    return found


def _keep(place: Path, found: object) -> None:
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
        file.write(pickle.dumps(found))
    Path(file.name).replace(place)
