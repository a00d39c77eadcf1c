"""topodiag: why a GPU job's communication is slower than the wires allow, where, at what cost, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topodiag.version import __version__

if TYPE_CHECKING:
    from topodiag.pipeline import Options, diagnose, live

__all__ = ["Options", "__version__", "diagnose", "live"]


def __getattr__(name: str) -> Any:
    """`topodiag.diagnose([...])` for Python users, without making `topodiag --help` pay for it."""
    if name in ("Options", "diagnose", "live"):
        from topodiag import pipeline  # noqa: PLC0415

        return getattr(pipeline, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
