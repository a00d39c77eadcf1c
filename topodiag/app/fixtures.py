"""The evidence that ships with the program, for commands and completion."""

from __future__ import annotations

from topodiag.evidence.intake.collected import Fixture, fixture_path, fixtures, shipped

__all__ = ["Fixture", "fixture_path", "fixtures", "shipped"]
