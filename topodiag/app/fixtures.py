"""The captured machines that ship with the program, for commands and completion."""

from __future__ import annotations

from topodiag.evidence.intake.fixtures import fixture_path, fixtures

__all__ = ["fixture_path", "fixtures"]
