"""Which nodes are collected from: those that are named, or those of the Slurm allocation around this program."""

from __future__ import annotations

import os
from collections.abc import Sequence

from topodiag.model.errors import InputError
from topodiag.words.node_sets import NodeSetError, expand

ALLOCATION = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")


def nodes_of(sets: Sequence[str]) -> tuple[str, ...]:
    """The nodes of all these sets, each once; of none, those of the Slurm allocation that this program runs in. Raises
    InputError."""
    given = list(sets) or [os.environ[name] for name in ALLOCATION if os.environ.get(name)][:1]
    if not given:
        raise InputError(
            "--nodelist", "names no node", hint="write --nodelist gpu[001-200]; inside salloc it is not needed"
        )
    try:
        return tuple(dict.fromkeys(node for name in given for node in expand(name, groups=True)))
    except NodeSetError as error:
        raise InputError("--nodelist", str(error)) from None
