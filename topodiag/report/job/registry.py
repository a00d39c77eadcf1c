"""Every view and table of a job that views.toml lists: options, help and completion of `topodiag logs` are made from
them. Their functions are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data

if TYPE_CHECKING:
    from topodiag.report.table_files import Table


@dataclass(frozen=True, slots=True)
class View:
    """`title` stands over the view of each job; "" where the view is of the whole result. `place`: module:function."""

    title: str
    help: str
    place: str

    @property
    def draw(self) -> Callable[..., None]:
        module, _, name = self.place.partition(":")
        draw: Callable[..., None] = getattr(import_module(f"topodiag.report.job.{module}"), name)
        return draw


VIEWS: Mapping[str, View] = {name: View(**view) for name, view in own_data("report/job/views")["views"].items()}
TABLES: Mapping[str, str] = own_data("report/job/views")["tables"]
"""The tables by name, each with the one of tables.toml that has its columns: `kind.name`."""


def table(name: str) -> Table:
    """The table of this name, with its rows as rows.py makes them, or as tables.toml says where that makes none."""
    from topodiag.report.job import rows  # noqa: PLC0415 - numpy, which the help does not need
    from topodiag.report.table_files import table_of  # noqa: PLC0415 - as above

    kind, _, of = TABLES[name].partition(".")
    return table_of(kind, of, getattr(rows, name, None))
