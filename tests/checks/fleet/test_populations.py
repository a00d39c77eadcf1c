"""FLT002: nodes of one kind fall into two populations."""

from dataclasses import replace

from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.fleet.populations import TwoPopulations
from topodiag.model.fleet import Association, Cohort, Population, Populations

OLD, NEW = tuple(f"n{at}" for at in range(8)), tuple(f"n{at}" for at in range(8, 20))
SPLIT = Populations(
    (("driver", "NVIDIA driver", ("",)), ("os", "kernel", ("",))),
    (Population(("570", "5.15"), NEW), Population(("550", "5.4"), OLD)),
    20,
)
SPLITS = {
    "two facts": SPLIT,
    "two facts, as racks": replace(SPLIT, association=Association("rack", ("r1", "r2"), 0.9)),
    "MTU": replace(SPLIT, facts=(("mtu", "MTU", ("mlx5_0/1",)),)),
}


@examples("nodes", "splits", "wanted")
def test_populations_of_nodes(nodes: list[str] | None, splits: list[str], wanted: Wanted) -> None:
    cohort = Cohort("DGX H100", (), tuple(nodes or OLD + NEW), compared=100, populations=tuple(map(SPLITS.get, splits)))
    assert shown(TwoPopulations().judge(cohort), wanted) == wanted
