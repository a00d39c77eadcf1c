"""Every view and table of a job that views.toml lists: options, help and completion of `topodiag logs` are made from
them. Their functions are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data

if TYPE_CHECKING:
    from topodiag.model.result import Result
    from topodiag.report.table_files import Row


@dataclass(frozen=True, slots=True)
class View:
    """`title` stands over the view of each job; "" where the view is of the whole result. `place`: module:function."""

    title: str
    help: str
    place: str

    @property
    def draw(self) -> Callable[..., None]:
        draw: Callable[..., None] = _writer(self.place)
        return draw


@dataclass(frozen=True, slots=True)
class Table:
    """Where the rows of a table come from, and the table of tables.toml that has its columns: `kind.name`."""

    place: str
    of: str

    @property
    def columns(self) -> Mapping[str, type]:
        from topodiag.report.table_files import KINDS, columns  # noqa: PLC0415 - not for the help

        kind, _, name = self.of.partition(".")
        listed = columns(own_data("report/tables")[kind][name]["columns"])
        return {column.name: KINDS[column.kind] for column in listed}

    def rows(self, result: Result) -> Iterable[Row]:
        rows: Iterable[Row] = _writer(self.place)(result)
        return rows


VIEWS: Mapping[str, View] = {name: View(**view) for name, view in own_data("report/job/views")["views"].items()}
TABLES: Mapping[str, Table] = {name: Table(**table) for name, table in own_data("report/job/views")["tables"].items()}


def _writer(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"topodiag.report.job.{module}"), name)
