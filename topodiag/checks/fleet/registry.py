"""The checks of fleets, one line each: module and class."""

from __future__ import annotations

CHECKS = {
    "FLT001": "differs:DiffersFromSiblings",
    "FLT002": "populations:TwoPopulations",
}
