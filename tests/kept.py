"""Answers that the program keeps, kept for longer: many tests ask what others asked, further apart than in a run."""

from functools import lru_cache
from importlib import import_module

from tests import read_once

_KEPT = (
    ("topodiag.nccl.predict", "_predicted", 512),
    ("topodiag.nccl.search.searched", "_searched", 128),
    ("topodiag.nccl.search.searched", "_built", 128),
    ("topodiag.evidence.intake.kind_of_file", "text_kinds", 512),
)
"""What NCCL decides on a topology, of which kinds a text is: module, function, answers.
Each follows from what is asked alone."""


def keep_longer() -> None:
    """In this process, from now on."""
    read_once.use()
    for name, function, kept in _KEPT:
        module = import_module(name)  # by name: a package gives the function of that name
        answer = getattr(module, function)
        setattr(module, function, lru_cache(maxsize=kept)(getattr(answer, "__wrapped__", answer)))
