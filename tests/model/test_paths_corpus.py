"""The model's paths are NCCL's: types and widths on every machine of the corpus."""

import pytest

from benchmarks.path_agreement import CORPUS, Comparison, compare

pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus of NCCL's own decisions is not beside this checkout"
)

ONE_WAY_NVLINKS = "gen011.xml"
"""More NVLinks are listed in one direction than in the other."""


@pytest.fixture(scope="module")
def pairs() -> list[Comparison]:
    return list(compare())


def test_there_is_something_to_agree_with(pairs: list[Comparison]) -> None:
    assert len(pairs) > 5000


def test_every_way_from_a_gpu_to_a_nic_is_nccls(pairs: list[Comparison]) -> None:
    to_nics = [pair for pair in pairs if pair.b.startswith("NET/")]
    assert [nic for nic in to_nics if not (nic.same_type and nic.same_width)] == []


def test_every_way_between_gpus_is_nccls_but_where_nccl_prefers_the_network(pairs: list[Comparison]) -> None:
    between = [pair for pair in pairs if pair.b.startswith("GPU/") and pair.theirs[0] != "NET"]
    assert [comparison for comparison in between if not comparison.same_type] == []
    assert [
        comparison for comparison in between if not comparison.same_width and comparison.file != ONE_WAY_NVLINKS
    ] == []
