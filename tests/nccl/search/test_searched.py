"""Whether a search can make NCCL give up is seen in the systems: where every way is there, it starts."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.nccl.small_machines import machines
from tests.nccl.small_trees import cpu, gpu, host, nic, nvlink, pci
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import NEWEST, OLDEST, spell_version
from topodiag.nccl.graph.attach import count_gpus
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.search.searched import surely_searched
from topodiag.nccl.settings import read_settings


def _surely(tree: Element, minor: int) -> bool:
    try:
        return surely_searched(tree, count_gpus(tree), minor=minor, settings=read_settings({}, minor))
    except RejectedError:
        return False


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(machines(gpus=2, nics=2), st.sampled_from(range(OLDEST, NEWEST + 1)))
def test_what_surely_starts_is_never_refused_by_the_search(tree: Element, minor: int) -> None:
    prediction = predict_tree(tree, version=spell_version(minor), sizes=(1,))
    assert prediction.accepted or not _surely(tree, minor)


@pytest.mark.parametrize("minor", range(OLDEST, NEWEST + 1))
def test_an_ordinary_machine_surely_starts(minor: int) -> None:
    switched = [gpu(f"1{at}", nvlink("0000:ff:00.0", 4), dev=at, sm=90) for at in range(2)]
    assert _surely(host(cpu(0, pci("80", *switched, nic("40")))), minor)


@pytest.mark.parametrize("minor", [20, 30])
def test_a_machine_without_a_processor_for_its_gpus_does_not(minor: int) -> None:
    assert not _surely(host(pci("80", gpu("10", dev=0))), minor)


@pytest.mark.parametrize("minor", [28, 29, 30])
def test_a_machine_without_nets_surely_starts_too(minor: int) -> None:
    assert _surely(host(cpu(0, pci("80", gpu("10", dev=0), gpu("11", dev=1)))), minor)
