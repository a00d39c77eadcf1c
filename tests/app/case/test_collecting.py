"""What is read and judged leaves memory when nobody holds it, without a search for cycles, which are seldom."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.scanned import node_at
from topodiag.app.case.collecting import OBJECTS, few_collections
from topodiag.app.scan import scan
from topodiag.evidence.draft import NodeDraft
from topodiag.model.provenance import Origin
from topodiag.nccl.search import attempt, search
from topodiag.nccl.search.searched import first_system
from topodiag.nccl.settings import read_settings
from topodiag.nccl.topo.detect import tree_of


@contextmanager
def no_search() -> Iterator[None]:
    """Python searches for no garbage inside, and afterwards where it did before."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def test_searches_are_seldom_inside_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with few_collections():
        assert gc.get_threshold()[0] >= OBJECTS
    assert gc.get_threshold() == before


def test_a_draft_is_gone_with_its_last_user() -> None:
    draft = NodeDraft()
    gpu = draft.gpu(index=0, bus_id="00000000:1B:00.0")
    gpu.child("nvlink", 4).offer("speed", 26.562, Origin("made"))
    draft.gpu(bus_id="00000000:1B:00.0", uuid="GPU-made").absorb(draft.gpu(index=1))
    draft.pair("smi", gpu, draft.nic(rdma="mlx5_0"), "PIX", Origin("made"))
    gone = weakref.ref(draft)
    with no_search():
        del draft, gpu
        assert gone() is None


def test_a_scan_leaves_nothing_to_search_for() -> None:
    scan(["fixture:dgx-h100-gpu3-12of18-nvlink"])  # what is kept between runs is there
    gc.freeze()  # what other tests made: seconds to search, and nothing of this scan
    with no_search():
        scan(["fixture:dgx-h100-gpu3-12of18-nvlink"])
        assert gc.collect() < 500  # the draft of a node alone is thousands


def test_attempts_of_nccls_search_are_gone_when_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[object]] = []

    class Watched(attempt._Attempt):
        __slots__ = ("__weakref__",)

        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            made.append(weakref.ref(self))

    monkeypatch.setattr(attempt, "_Attempt", Watched)
    settings = read_settings({}, minor=28)
    system = first_system(tree_of(node_at("fixture:hgx-a100")).tree, 8, minor=28, settings=settings)
    with no_search():
        search.search_graphs(system, settings)
        assert made
        assert all(each() is None for each in made)
