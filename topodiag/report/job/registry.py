"""Every view and table of a job, one line each: options, help and completion of `topodiag logs` are made from them.

A view is a function of (page, job) in its own file; `unread` is one of (page, result). A table is a function of the
result that yields rows. Both are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from topodiag.lazy import dataclass

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
    """Where the rows of a table come from, and the table of tables.toml that has its columns; or their types by name,
    as `job rank:int time_s:float`."""

    place: str
    of: str = ""
    columns_text: str = ""

    @property
    def columns(self) -> Mapping[str, type]:
        if self.of:
            from topodiag.report.columns import KINDS, columns  # noqa: PLC0415 - not for the help
            from topodiag.words.own_data import own_data  # noqa: PLC0415

            listed = columns(own_data("report/tables")["diagnosis"][self.of]["columns"])
            return {column.name: KINDS[column.kind] for column in listed}
        kinds: dict[str, type] = {"int": int, "float": float, "": str}
        return {name: kinds[kind] for name, _, kind in (word.partition(":") for word in self.columns_text.split())}

    def rows(self, result: Result) -> Iterable[Row]:
        rows: Iterable[Row] = _writer(self.place)(result)
        return rows


VIEWS: Mapping[str, View] = {
    "ranks": View("which rank ran where", "Which rank ran where: host, process, GPU, NICs.", "ranks:draw_ranks"),
    "comms": View(
        "communicators", "Every communicator: members, role, channels, connections.", "ranks:draw_comms"
    ),
    "rings": View("rings", "The ring of each channel, with the transport of each hop.", "rings:draw_rings"),
    "trees": View("trees", "The tree of each channel: each parent with its children.", "trees:draw_trees"),
    "printed": View(
        "machines as NCCL printed them", "Tree, paths and graphs of each machine, as NCCL printed them.",
        "system:draw_system",
    ),
    "transports": View(
        "transports between nodes", "Transport between each pair of nodes.", "transports:draw_transports"
    ),
    "errors": View("errors, in order", "Errors in the order of time.", "errors:draw_errors"),
    "unread": View("", "Log lines that were not understood, by shape.", "unread:draw_unread"),
}  # fmt: skip

TABLES: Mapping[str, Table] = {
    "ranks": Table("rows:rank_rows", "ranks"),
    "comms": Table("rows:comm_rows", "communicators"),
    "connections": Table("rows:connection_rows", "connections"),
    "rings": Table("rows:ring_rows", "rings"),
    "events": Table("rows:event_rows", "events"),
    "settings": Table("rows:setting_rows", "settings"),
    "choices": Table("rows:choice_rows", "choices"),
    "steps": Table("rows:step_rows", "steps"),
    "findings": Table(
        "rows:finding_rows",
        columns_text="id severity confidence message nodes ranks observed expected gbs_lost:float share:float cost fix"
        " source line:int jobs",
    ),
    "unread": Table("rows:unread_rows", "unread"),
}


def _writer(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"topodiag.report.job.{module}"), name)
