"""What a reason says for which a scheduler holds a node out of service.

Slurm's `Reason=` is the sentence of whoever drained the node: slurmctld's own (`gres/gpu count reported lower than
configured (7 < 8)`), LBNL's Node Health Check (`NHC: check_hw_ib: No IB port mlx5_4:1 is ACTIVE`), or a person's. The
catalogue holds the sentences; Slurm cuts them in tables.
"""

from __future__ import annotations

import re

from topodiag.evidence.signatures import engine
from topodiag.lazy import regex
from topodiag.model.events import OUT_OF_SERVICE

_WANTED = regex(
    r"^\W{0,4}(?:none|unknown|n/?a|-)?\W{0,4}$|\b(?:maint(?:enance)?|reserv\w*|upgrad\w*|updat\w*|reinstall\w*"
    r"|re-?imag\w*"
    r"|firmware|planned|scheduled|schedule|testing|test|burn-?in|power_?sav\w*|powered down|reboot (?:asap"
    r"|requested|complete)"
    r"|moved?|decommission\w*|resum\w*)\b",
    re.IGNORECASE,
)
"""Sentences by which somebody keeps a node free on purpose."""


def kind_of(reason: str) -> str:
    """The kind of event that a reason is; "" where somebody keeps the node free on purpose. A health check that fails
    is never one."""
    if _WANTED.search(reason) is not None and not re.match(r"\s*(?:NHC|check_)\b", reason):
        return ""
    return next((taken.entry.says for taken in engine.of_line(reason)), OUT_OF_SERVICE)


__all__ = ["kind_of"]
