from tests.tables import examples
from topodiag.nccl.rccl.models import all_to_all, orders_of, rome_models


def test_every_known_set_is_whole() -> None:
    models = rome_models()
    assert [model.index for model in models] == list(range(44))
    for model in models:
        assert {len(row) for row in model.links} == {model.gpus} == {len(model.links)}
        assert len(model.numa) == model.gpus
        assert len(model.distance) == model.nics
        assert all(len(row) == model.gpus for row in model.distance)
        assert len(model.pattern) == 2 * model.cpus
        assert orders_of(model.rings, model.gpus, model.nics), model.name


def test_the_rings_of_mi300x_ask_for_a_link_between_every_two() -> None:
    assert all_to_all(rome_models()[38]) == 1
    assert all_to_all(rome_models()[0]) == 0


@examples("ring", "gpus", "nics", "found")
def test_a_ring_counts_where_it_fits(ring: str, gpus: int, nics: int, found: list[list[int]]) -> None:
    assert orders_of((ring,), gpus, nics) == found
