"""The catalogue: every check of every subject, in the order of the families.

Each subject has its own registry, `topodiag/checks/SUBJECT/registry.py`: one line for a check, in CHECKS, or in
COMPANIONS where another subject carries the page. A class is imported when it is asked for, so that a scan of nodes
imports no check of jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

from topodiag.checks.interface import Check
from topodiag.model.finding import Status

FAMILIES = {
    "GPU": "GPUs",
    "HST": "Limits and settings of the host",
    "NVL": "NVLink and NVSwitch",
    "PCI": "PCIe",
    "NIC": "Network cards and ports",
    "NET": "The network as NCCL uses it",
    "GDR": "GPUDirect RDMA",
    "P2P": "Peer-to-peer between the GPUs of a node",
    "NUM": "NUMA",
    "TOP": "Topology files",
    "PLC": "Placement of ranks",
    "JOB": "Jobs",
    "ENV": "NCCL's settings",
    "BEN": "Benchmarks",
    "FLT": "A node among its peers",
}
"""What ids begin with, in the order of the catalogue, and what each family is about."""


class Subject(Enum):
    """What is judged; the value is the folder of its checks."""

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
    return tuple(sorted({check_id for subject in Subject for check_id in _lines(subject)}, key=_place))


@cache
def ids_of(*subjects: Subject) -> tuple[str, ...]:
    """The ids of the checks of some subjects, in the order of the catalogue."""
    return tuple(sorted({check_id for subject in subjects for check_id in _lines(subject)}, key=_place))


def has_check(subject: Subject, check_id: str) -> bool:
    """Whether a subject can show the fault of an id."""
    return check_id in _lines(subject)


@cache
def check_of(subject: Subject, check_id: str) -> type[Check[Any, Any]]:
    """The class by which a subject shows the fault of an id. No other subject is imported. Raises KeyError where the
    subject has no such check."""
    module, _, name = _lines(subject)[check_id].partition(":")
    loaded = getattr(import_module(f"topodiag.checks.{subject.value}.{module}"), name)
    if not (isinstance(loaded, type) and issubclass(loaded, Check) and loaded.id == check_id):
        raise TypeError(
            f"{subject.value}/registry.py: {module}:{name} is registered as {check_id} and is another check"
        )
    return loaded


@cache
def check_classes(check_id: str) -> tuple[type[Check[Any, Any]], ...]:
    """All classes of an id: the one that carries its page first, then those of the other subjects."""
    carriers = sorted(Subject, key=lambda subject: check_id not in _own(subject))
    return tuple(check_of(subject, check_id) for subject in carriers if has_check(subject, check_id))


def check_class(check_id: str) -> type[Check[Any, Any]] | None:
    """The class that carries the page of a check, or None when there is no check of that id."""
    carrier = next((subject for subject in Subject if check_id in _own(subject)), None)
    return check_of(carrier, check_id) if carrier is not None else None


@cache
def _own(subject: Subject) -> dict[str, str]:
    lines: dict[str, str] = import_module(f"topodiag.checks.{subject.value}.registry").CHECKS
    return lines


@cache
def _lines(subject: Subject) -> dict[str, str]:
    """`module:Class` by id, of a subject."""
    companions: dict[str, str] = getattr(import_module(f"topodiag.checks.{subject.value}.registry"), "COMPANIONS", {})
    return _own(subject) | companions


@cache
def idle_answer(subject: Subject) -> Callable[[Any], tuple[Status, str] | None] | None:
    """What answers for all checks of a subject where there is nothing for them to judge (`nothing_to_judge` of its
    registry), so that none of them is imported then. None where each check answers by itself."""
    return getattr(import_module(f"topodiag.checks.{subject.value}.registry"), "nothing_to_judge", None)


def _place(check_id: str) -> tuple[int, str]:
    """Where an id stands in the catalogue. Raises ValueError when its family is not in FAMILIES."""
    return tuple(FAMILIES).index(check_id[:3]), check_id
