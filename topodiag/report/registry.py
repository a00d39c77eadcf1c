"""Every format of a result beside the table by the name of its module, whose `write` writes it on a stream. `--format`
of `topodiag scan` offers these names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from topodiag.model.errors import TopodiagError

if TYPE_CHECKING:
    from topodiag.report.interface import Report

_REPORTS = ("json", "prometheus", "nagios")


def names() -> tuple[str, ...]:
    return ("table", *_REPORTS)


def report(name: str) -> Report:
    """What writes a result in this format. Raises TopodiagError where it is none of them."""
    if name not in _REPORTS:
        raise TopodiagError(f"no format {name!r:.40}: the formats are {', '.join(_REPORTS)}")
    write: Report = import_module(f"topodiag.report.formats.{name}").write
    return write
