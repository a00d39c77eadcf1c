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
    to_nics = [each for each in pairs if each.b.startswith("NET/")]
    assert [each for each in to_nics if not (each.same_type and each.same_width)] == []


def test_every_way_between_gpus_is_nccls_but_where_nccl_prefers_the_network(pairs: list[Comparison]) -> None:
    between = [each for each in pairs if each.b.startswith("GPU/") and each.theirs[0] != "NET"]
    assert [each for each in between if not each.same_type] == []
    assert [each for each in between if not each.same_width and each.file != ONE_WAY_NVLINKS] == []
