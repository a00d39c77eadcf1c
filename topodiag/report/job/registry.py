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
        draw: Callable[..., None] = _named(self.place)
        return draw


@dataclass(frozen=True, slots=True)
class Table:
    """The type of each column by its name, as `job rank:int time_s:float`, and where its rows come from."""

    columns_text: str
    place: str

    @property
    def columns(self) -> Mapping[str, type]:
        kinds: dict[str, type] = {"int": int, "float": float, "bool": bool, "": str}
        return {name: kinds[kind] for name, _, kind in (word.partition(":") for word in self.columns_text.split())}

    def rows(self, result: Result) -> Iterable[Row]:
        rows: Iterable[Row] = _named(self.place)(result)
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
    "ranks": Table("job rank:int host pid:int cuda_dev:int nvml_dev:int bus_id nics", "rows:rank_rows"),
    "comms": Table(
        "job comm:int name role role_confidence nranks:int nodes:int parent:int color:int ranks hosts coll:int "
        "collnet:int nvls:int p2p:int gdr:bool transports algorithms init_complete:bool init_max_s:float",
        "rows:comm_rows",
    ),
    "connections": Table(
        "job comm:int rank:int peer:int world_rank:int world_peer:int host peer_host channels_mask use direction "
        "transport net_dev:int proxy:int count:int source line:int", "rows:connection_rows",
    ),
    "rings": Table("job comm:int channel:int place:int rank:int world_rank:int", "rows:ring_rows"),
    "events": Table(
        "job time_s:float host pid:int rank:int level kind secondary:bool count:int text place source line:int",
        "rows:event_rows",
    ),
    "settings": Table("job host pid:int rank:int name value how", "rows:setting_rows"),
    "choices": Table("job comm:int collective bytes:int algorithm protocol count:int", "rows:choice_rows"),
    "steps": Table(
        "job rank:int host start:int step:int value:float unit time_s:float work:float source line:int",
        "rows:step_rows",
    ),
    "findings": Table(
        "id severity confidence message nodes ranks observed expected gbs_lost:float share:float cost fix source "
        "line:int jobs", "rows:finding_rows",
    ),
    "unread": Table("source line:int text why", "rows:unread_rows"),
}  # fmt: skip


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"topodiag.report.job.{module}"), name)
