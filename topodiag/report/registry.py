"""Every report, one line each. `--format` of `topodiag scan` offers these names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topodiag.report.interface import Report

_REPORTS = {
    "table": "table:Table",
    "json": "formats.json_report:JsonReport",
    "prometheus": "formats.prometheus:Prometheus",
    "nagios": "formats.nagios:Nagios",
}


def names() -> tuple[str, ...]:
    return tuple(_REPORTS)


def report(name: str) -> Report:
    """The report of this name; KeyError when there is none."""
    from topodiag.report.interface import Report  # noqa: PLC0415 - the command line asks for the names alone

    module, _, cls = _REPORTS[name].partition(":")
    built = getattr(import_module(f"topodiag.report.{module}"), cls)()
    if not isinstance(built, Report) or built.name != name:
        raise TypeError(f"{_REPORTS[name]} is registered as {name} and is not that report")
    return built
