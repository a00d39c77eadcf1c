"""Captured machines that ship with the program: `fixture:NAME` stands for the path of one."""

from __future__ import annotations

from pathlib import Path

from topodiag.evidence.intake.bundle import MANIFEST
from topodiag.model.errors import InputError

PREFIX = "fixture:"


def fixtures() -> tuple[str, ...]:
    """Names of the captured machines that ship with the program, for `fixture:NAME`."""
    return tuple(sorted(place.name for place in _root().glob("*") if (place / MANIFEST).is_file()))


def fixture_path(name: str) -> Path:
    """Where a shipped fixture lies. Raises InputError with the names there are."""
    if name not in fixtures():
        near = ", ".join(fixtures()) or "none is installed"
        raise InputError(PREFIX + name, "no such fixture", hint=f"there are: {near}")
    return _root() / name


def resolve(path: str) -> str:
    """The path that is meant: of `fixture:NAME` that of the fixture, any other as it is."""
    return str(fixture_path(path.removeprefix(PREFIX))) if path.startswith(PREFIX) else path


def _root() -> Path:
    """Inside an installed wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parents[2]
    shipped = package / "fixtures" / "nodes"
    return shipped if shipped.is_dir() else package.parent / "fixtures" / "nodes"
