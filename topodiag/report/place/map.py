"""The canonical map of a placement, as every `topodiag place --format json` prints it."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.emit.place_map import rows
from topodiag.model.cluster import Assignment, Cluster, Ints
from topodiag.model.place_map import map_of
from topodiag.report.documents.from_model import Document, from_model


def map_json(cluster: Cluster, assignment: Assignment, groups: Mapping[str, Ints]) -> list[Document]:
    """One row per rank. `groups[dimension][rank]` is the number of its group, -1 for none. `nic` is the rail of the
    rank's GPU, null where the fabric has none."""
    return [from_model("place.MappedRank", None, **row) for row in rows(map_of(cluster, assignment, groups))]
