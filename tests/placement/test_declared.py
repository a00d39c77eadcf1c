"""A declared layout beside the one that ran: ranks by host and GPU, and the room that a hostfile declares."""

from typing import Any

import numpy as np

from tests.tables import examples
from topodiag.evidence.layout.rank_files import ranks_on
from topodiag.model.cluster import RankHosts
from topodiag.placement.declared import compare_layouts


def on(hosts: str, gpus: list[int] | None = None, *, whole: bool = False) -> RankHosts:
    return ranks_on("hosts", hosts.split(), gpus, whole=whole)


@examples("declared", "ran", "wanted")
def test_what_is_declared_beside_what_ran(declared: list[Any], ran: list[Any], wanted: dict[str, Any]) -> None:
    """Hosts of the ranks in their order, perhaps with their GPUs; `whole` hosts are declared without numbers. Ranks
    that ran `elsewhere` have both hosts."""
    *parts, whole = declared if declared[-1] == "whole" else [*declared, ""]
    ranks = compare_layouts(on(*parts, whole=bool(whole)), on(*ran))
    shown = {
        "differs": ranks.differs, "difference": ranks.difference, "compared": ranks.compared,
        "elsewhere": [[rank.rank, rank.declared, rank.ran] for rank in ranks.elsewhere], "hosts": list(ranks.hosts),
        "undeclared": ranks.undeclared,
    }  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted


def test_no_ranks_are_no_difference() -> None:
    empty = RankHosts("hosts", (), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert not compare_layouts(on("a"), empty).differs
