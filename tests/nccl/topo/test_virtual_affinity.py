"""Places of a guest's devices by what was measured between its GPUs and its NICs."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.model.links import Affinity
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.virtual import Guest, Plan, VirtualError
from topodiag.nccl.topo.virtual_affinity import STEP, plan_by_affinity

NEAR, SOCKET, FAR = 48.0, 37.0, 19.0


def guest(gpus: int = 8, nics: int = 8) -> Guest:
    def function(child: Element, bus: str) -> tuple[str, Element]:
        return bus, Element("pci", (("busid", bus),), (child,))

    def net(at: int) -> Element:
        return Element("nic", (), (Element("net", (("name", f"mlx5_{at}"),)),))

    return Guest(
        dict(function(Element("gpu", (("dev", str(at)),)), f"{at + 1:04x}:00:00.0") for at in range(gpus)),
        dict(function(net(at), f"{at + 0x101:04x}:00:00.0") for at in range(nics)),
        frozenset(),
    )


def measured(value: Callable[[int, int], float], gpus: int = 8, nics: int = 8, unit: str = "GB/s") -> Affinity:
    return Affinity(
        tuple(f"GPU{at}" for at in range(gpus)),
        tuple(f"mlx5_{at}" for at in range(nics)),
        tuple(tuple(value(gpu, nic) for nic in range(nics)) for gpu in range(gpus)),
        unit,
    )


def hgx(gpu: int, nic: int) -> float:
    return NEAR if gpu == nic else SOCKET if gpu // 4 == nic // 4 else FAR


def groups(plan: Plan) -> set[tuple[int | None, frozenset[str]]]:
    by_switch: dict[str, set[str]] = {}
    numa = {}
    for bus_id, place in plan.places.items():
        key = place.switches[0].key
        by_switch.setdefault(key, set()).add(bus_id)
        numa[key] = place.numa
    return {(numa[key], frozenset(members)) for key, members in by_switch.items()}


def pair(at: int) -> frozenset[str]:
    return frozenset({f"{at + 1:04x}:00:00.0", f"{at + 0x101:04x}:00:00.0"})


def test_a_gpu_and_the_nic_that_it_measures_best_share_a_switch_and_sockets_are_told_apart() -> None:
    assert groups(plan_by_affinity(guest(), measured(hgx))) == {(at // 4, pair(at)) for at in range(8)}


@given(st.lists(st.floats(0.97, 1.03), min_size=64, max_size=64))
def test_three_percent_of_scatter_change_nothing(noise: list[float]) -> None:
    scattered = measured(lambda gpu, nic: hgx(gpu, nic) * noise[gpu * 8 + nic])
    assert groups(plan_by_affinity(guest(), scattered)) == groups(plan_by_affinity(guest(), measured(hgx)))


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_of_latencies_the_lowest_is_the_nearest(unit: str) -> None:
    latency = measured(lambda gpu, nic: 100 / hgx(gpu, nic), unit=unit)
    assert groups(plan_by_affinity(guest(), latency)) == groups(plan_by_affinity(guest(), measured(hgx)))


def test_a_matrix_with_nics_as_its_rows_is_turned() -> None:
    upright = measured(hgx)
    turned = Affinity(upright.nics, upright.gpus, tuple(zip(*upright.values, strict=True)))
    assert groups(plan_by_affinity(guest(), turned)) == groups(plan_by_affinity(guest(), upright))


def test_several_gpus_and_nics_share_a_switch() -> None:
    plan = plan_by_affinity(guest(8, 4), measured(lambda gpu, nic: NEAR if gpu // 2 == nic else FAR, nics=4))
    assert len(groups(plan)) == 4
    assert len(plan.places) == 12
    assert {place.numa for place in plan.places.values()} == {0}
    assert any("do not tell sockets apart" in sentence for sentence in plan.done)


def test_the_guest_s_own_numa_nodes_are_kept_where_they_fit_the_sockets() -> None:
    numa = {f"{at + 1:04x}:00:00.0": (1 if at < 4 else 0) for at in range(8)}
    plan = plan_by_affinity(guest(), measured(hgx), numa)
    assert groups(plan) == {(1 - at // 4, pair(at)) for at in range(8)}
    contrary = {f"{at + 1:04x}:00:00.0": at % 2 for at in range(8)}
    assert groups(plan_by_affinity(guest(), measured(hgx), contrary)) == {(at // 4, pair(at)) for at in range(8)}


def test_a_nic_that_is_near_to_no_gpu_has_no_place() -> None:
    plan = plan_by_affinity(guest(4, 5), measured(lambda gpu, nic: NEAR if gpu == nic else FAR, 4, 5))
    assert "0105:00:00.0" not in plan.places


def test_a_matrix_without_a_step_says_nothing() -> None:
    with pytest.raises(VirtualError, match="all GPUs measure all NICs alike"):
        plan_by_affinity(guest(), measured(lambda gpu, nic: NEAR / (STEP - 0.01) if gpu == nic else NEAR))


def test_values_that_overlap_make_no_groups() -> None:
    def overlapping(gpu: int, nic: int) -> float:
        return NEAR if nic in (gpu, (gpu + 1) % 4) else FAR

    with pytest.raises(VirtualError, match=r"make no groups: GPU0 and GPU1 .* mlx5_1"):
        plan_by_affinity(guest(4, 4), measured(overlapping, 4, 4))


def test_every_gpu_of_the_guest_has_to_be_measured() -> None:
    with pytest.raises(VirtualError, match="GPU7 was not measured"):
        plan_by_affinity(guest(), measured(hgx, gpus=7))


@pytest.mark.parametrize(("gpus", "nics", "message"), [(7, 8, "no GPU GPU7"), (8, 7, "no NIC mlx5_7")])
def test_a_name_of_no_device_of_the_guest_is_told(gpus: int, nics: int, message: str) -> None:
    with pytest.raises(VirtualError, match=message):
        plan_by_affinity(guest(gpus, nics), measured(hgx))
