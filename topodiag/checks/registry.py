"""The catalogue: every check of every family, in the order of the families.

`catalogue.toml` has one line for an id, with the class for each subject that can show the fault. A class is imported
when it is asked for, so that a scan of nodes imports no check of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

from topodiag.checks.interface import Check
from topodiag.checks.shared.topo_file import nothing_to_judge
from topodiag.model.finding import Status
from topodiag.words.own_data import own_data

FAMILIES: dict[str, str] = {name: family["about"] for name, family in own_data("checks/catalogue")["families"].items()}
"""What ids begin with, in the order of the catalogue, and what each family is about."""

FOLDERS: dict[str, str] = {name: family["folder"] for name, family in own_data("checks/catalogue")["families"].items()}
"""The folder of each family. NUMA is a part of the host."""


class Subject(Enum):
    """What is judged; the value is its name in the catalogue."""

    NODE = "node"
    TOPO = "topo"
    JOB = "job"
    LAYOUT = "layout"
    BENCH = "bench"
    FLEET = "fleet"
    HISTORY = "history"


@cache
def ids() -> tuple[str, ...]:
    """The ids of all checks, in the order of the catalogue."""
    return tuple(_lines())


@cache
def ids_of(*subjects: Subject) -> tuple[str, ...]:
    """The ids of the checks of some subjects, in the order of the catalogue."""
    names = {subject.value for subject in subjects}
    return tuple(check_id for check_id, classes in _lines().items() if names & classes.keys())


def has_check(subject: Subject, check_id: str) -> bool:
    """Whether a subject can show the fault of an id."""
    return subject.value in _lines().get(check_id, {})


@cache
def check_of(subject: Subject, check_id: str) -> type[Check[Any]]:
    """The class by which a subject shows the fault of an id. No other is imported. Raises KeyError where the subject
    has no such check."""
    module, _, name = _lines()[check_id][subject.value].partition(":")
    loaded = getattr(import_module(f"topodiag.checks.{FOLDERS[check_id[:3]]}.{module}"), name)
    if not (isinstance(loaded, type) and issubclass(loaded, Check) and loaded.id == check_id):
        raise TypeError(f"catalogue.toml: {module}:{name} is registered as {check_id} and is another check")
    return loaded


@cache
def check_classes(check_id: str) -> tuple[type[Check[Any]], ...]:
    """All classes of an id: the one that carries its page first, then those of the other subjects."""
    return tuple(check_of(Subject(subject), check_id) for subject in _lines().get(check_id, {}))


def check_class(check_id: str) -> type[Check[Any]] | None:
    """The class that carries the page of a check, or None when there is no check of that id."""
    carrier = next(iter(_lines().get(check_id, {})), None)
    return check_of(Subject(carrier), check_id) if carrier is not None else None


@cache
def _lines() -> dict[str, Mapping[str, str]]:
    """`module:Class` by id and subject, in the order of the catalogue. Raises ValueError for an id of no family."""
    return dict(sorted(own_data("checks/catalogue")["checks"].items(), key=lambda line: _place(line[0])))


def idle_answer(subject: Subject) -> Callable[[Any], tuple[Status, str] | None] | None:
    """What answers for all checks of a subject where there is nothing for them to judge, so that none of them is
    imported then. None where each check answers by itself."""
    return nothing_to_judge if subject is Subject.TOPO else None


def _place(check_id: str) -> tuple[int, str]:
    """Where an id stands in the catalogue. Raises ValueError when its family is not in FAMILIES."""
    return tuple(FAMILIES).index(check_id[:3]), check_id
