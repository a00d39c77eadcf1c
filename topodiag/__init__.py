"""topodiag: why a GPU job's communication is slower than the wires allow, where, at what cost, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topodiag.version import __version__

if TYPE_CHECKING:
    from topodiag.app.diagnose import LogOptions, Options, diagnose, diagnose_logs, live

__all__ = ["LogOptions", "Options", "__version__", "diagnose", "diagnose_logs", "live"]
_LAZY = frozenset(__all__) - {"__version__"}


def __getattr__(name: str) -> Any:
    """`topodiag.diagnose([...])` for Python users, without making `topodiag --help` pay for it."""
    if name in _LAZY:
        from topodiag.app import diagnose as pipeline  # noqa: PLC0415

        return getattr(pipeline, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
