"""The checks of a node's history, one line each: module and class."""

from __future__ import annotations

CHECKS = {
    "FLT003": "changed:ChangedSinceGood",
    "FLT004": "flapping:ComesAndGoes",
}
