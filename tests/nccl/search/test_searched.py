"""Whether a search can make NCCL give up is seen in the systems: where every way is there, it starts. What a search is
remembered by holds every setting that a system or a search asks for."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.nccl.small_machines import machines
from tests.nccl.small_trees import cpu, gpu, host, nic, nvlink, pci
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import NEWEST, OLDEST, spell_version
from topodiag.nccl import search
from topodiag.nccl.graph.attach import count_gpus
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.search.searched import _NAMES, _asked, surely_searched
from topodiag.nccl.settings import Settings, read_settings


def _surely(tree: Element, minor: int) -> bool:
    try:
        return surely_searched(tree, count_gpus(tree), minor=minor, settings=read_settings({}, minor))
    except RejectedError:
        return False


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
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


ROOM = Path(search.__file__).parents[1]


def read_by_searches() -> str:
    """The source of the rooms that build systems and search them, without the key's own."""
    files = [*(ROOM / "search").glob("*.py"), *(ROOM / "graph").glob("*.py")]
    return "\n".join(path.read_text() for path in files if path.name != "searched.py")


def test_a_setting_that_a_search_asks_for_is_part_of_its_key() -> None:
    other = {bool: lambda value: not value, int: lambda value: value + 1, type(None): lambda value: 1}
    for each in fields(Settings):
        if each.name == "values" or not re.search(rf"\bsettings\.{each.name}\b", read_by_searches()):
            continue
        plain = Settings()
        value = getattr(plain, each.name)
        changed = Settings(**{each.name: other[type(value)](value)})
        assert _asked(plain) != _asked(changed), each.name


def test_so_is_each_variable_that_it_asks_for_by_name() -> None:
    asked = set(re.findall(r"(?:settings\.values|\benv)\.get\(\"(\w+)\"", read_by_searches()))
    assert asked == set(_NAMES)
    for name in asked:
        assert _asked(Settings()) != _asked(Settings(values={name: "1"}))
