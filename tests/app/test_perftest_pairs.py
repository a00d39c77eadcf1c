"""A folder of tests of perftest, one a pair of nodes, is judged as a folder of nccl-tests is: by pair and by node."""

from itertools import combinations
from pathlib import Path

from tests.evidence.network.test_pair_runs import TEST
from tests.tables import examples
from topodiag.api import diagnose
from topodiag.app.bench import bench

NODES = ("g01", "g02", "g03", "g04", "g05")


def folder(tmp_path: Path, slow: set[tuple[str, str]]) -> str:
    for pair in combinations(NODES, 2):
        rate = "98.10" if pair in slow else "391.84"
        tmp_path.joinpath(f"{'-'.join(pair)}.txt").write_text(TEST.format(a="", b="", rate=rate))
    return str(tmp_path)


@examples("slow", "named")
def test_what_slow_pairs_share_is_named(
    tmp_path: Path, slow: set[tuple[str, str]], named: set[tuple[str, ...]]
) -> None:
    path = folder(tmp_path, slow)
    verdict = diagnose(path).verdict
    texts = {finding.where.nodes for finding in bench([path]).findings if finding.id == "BEN005"}
    assert texts == named == {cause.finding.where.nodes for cause in verdict.causes}
