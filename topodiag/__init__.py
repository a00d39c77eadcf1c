"""topodiag: why a GPU job's communication is slower than the wires allow, where, at what cost, and what to change.

`topodiag.diagnose`, `scan`, `logs`, `bench`, `predict`, `audit` and `solve` are the commands for Python users: see
docs/api.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topodiag.version import __version__

if TYPE_CHECKING:
    from topodiag.api import audit, bench, diagnose, logs, predict, scan, solve
    from topodiag.model.errors import InputError, TopodiagError

__all__ = [
    "InputError", "TopodiagError", "__version__", "audit", "bench", "diagnose", "logs", "predict", "scan", "solve",
]  # fmt: skip
_ERRORS = frozenset({"InputError", "TopodiagError"})
_CALLS = frozenset(__all__) - _ERRORS - {"__version__"}


def __getattr__(name: str) -> Any:
    """The functions of the API, imported when the first is used: `topodiag --help` does not pay for them."""
    if name in _CALLS:
        from topodiag import api  # noqa: PLC0415

        return getattr(api, name)
    if name in _ERRORS:
        from topodiag.model import errors  # noqa: PLC0415

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The API alone."""
    return sorted(__all__)
