"""What differs between siblings has the price that `topodiag scan` has for it, or says why there is none."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.nodes import hgx_h100, links, read, with_gpu
from tests.tables import examples
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.fleet.compare import compared
from topodiag.fleet.digest import Digest, digest_of
from topodiag.fleet.priced import price_of
from topodiag.model.fleet import Outlier
from topodiag.model.node import Node

Fault = Callable[[Node], Node]


def with_link(node: Node, bus_id: str, **changes: object) -> Node:
    return replace(node, pci=node.pci | {bus_id: replace(node.pci[bus_id], **changes)})  # type: ignore[arg-type]


def narrow_gpu(node: Node) -> Node:
    return with_link(node, node.gpus[5].bus_id or "", width=read(4))


def narrow_card(node: Node) -> Node:
    return with_link(node, node.nics[2].bus_id or "", width=read(8))


def fewer_nvlinks(node: Node) -> Node:
    return with_gpu(node, 3, nvlinks=links(18, 26.562, down=(1, 4, 7, 9, 12, 15)))


def slow_nvlinks(node: Node) -> Node:
    return with_gpu(node, 3, nvlinks=links(18, 13.281))


def slow_port(node: Node) -> Node:
    return with_port(node, rate_gbps=read(200.0))


def port_down(node: Node) -> Node:
    return with_port(node, state=read("DOWN"), phys_state=read("Polling"))


def with_port(node: Node, **changes: object) -> Node:
    nics = list(node.nics)
    port = replace(nics[4].ports[0], **changes)  # type: ignore[arg-type]
    nics[4] = replace(nics[4], ports=(port, *nics[4].ports[1:]))
    return replace(node, nics=tuple(nics))


def card_gone(node: Node) -> Node:
    name = node.nics[-1].name
    paths = {pair: path for pair, path in node.paths.items() if name not in pair}
    words = {pair: word for pair, word in node.smi_matrix.items() if name not in pair}
    return replace(node, nics=node.nics[:-1], paths=paths, smi_matrix=words)


def among_siblings(fault: Fault, *, judged: bool) -> tuple[Outlier, ...]:
    """The outliers of one such node among nine healthy ones. Not `judged`: without what its own checks found."""
    whole = digest_of(hgx_h100(), "")
    odd = digest_of(fault(hgx_h100()), "")
    odd = odd if judged else replace(odd, findings=())
    [cohort] = compared([*(replace(whole, host=f"n{at}") for at in range(9)), replace(odd, host="n9")])[0]
    return cohort.outliers


FAULTS = [
    (narrow_gpu, "PCI001", "width"),
    (narrow_card, "PCI001", "width"),
    (fewer_nvlinks, "NVL001", "links"),
    (slow_nvlinks, "NVL002", "line rate"),
    (slow_port, "NIC002", "rate"),
    (port_down, "NIC001", "state"),
    (card_gone, "NIC005", "compute network cards"),
]


@pytest.mark.parametrize(
    ("fault", "check", "key"), FAULTS, ids=lambda document: getattr(document, "__name__", str(document))
)
def test_the_price_of_a_fleet_is_the_price_of_scan(fault: Fault, check: str, key: str) -> None:
    findings = [finding for outcome in run(Subject.NODE, [fault(hgx_h100())], (check,)) for finding in outcome.findings]
    [of_scan] = [finding.cost.gbs_lost for finding in findings]
    outlier = next(sibling for sibling in among_siblings(fault, judged=False) if sibling.key == key)
    assert outlier.gbs_lost == pytest.approx(of_scan)
    assert of_scan
    assert not outlier.unpriced


@pytest.mark.parametrize(
    ("fault", "check", "key"), FAULTS, ids=lambda document: getattr(document, "__name__", str(document))
)
def test_what_a_check_of_the_node_told_has_its_price(fault: Fault, check: str, key: str) -> None:
    outlier = next(sibling for sibling in among_siblings(fault, judged=True) if sibling.key == key)
    assert outlier.explained_by
    assert outlier.gbs_lost


def plain() -> Digest:
    return digest_of(hgx_h100(), "")


def test_a_slot_of_an_older_generation_costs_half_of_the_link_although_no_check_speaks() -> None:
    price = price_of("pci", "slot's highest generation", [("gpu0", "4", "5")], plain())
    assert (price.gbs, price.why_not) == (24.0, "")


def test_of_several_parts_the_narrowest_counts_and_cards_add_up() -> None:
    gpus = [("gpu0", "8", "16"), ("gpu1", "4", "16")]
    assert price_of("pci", "width", gpus, plain()).gbs == 36.0
    ports = [("mlx5_0/1", "200", "400"), ("mlx5_1/1", "200", "400")]
    assert price_of("nic", "rate", ports, plain()).gbs == 50.0


def test_a_card_that_needs_less_than_its_link_loses_only_what_it_needs() -> None:
    assert price_of("pci", "width", [("mlx5_0", "8", "16")], plain()).gbs == 24.0


@examples("family", "key", "difference", "why_not")
def test_what_topology_cannot_price_says_why(
    family: str, key: str, difference: tuple[str, str, str], why_not: str
) -> None:
    price = price_of(family, key, [difference], plain())
    assert price.gbs is None
    assert why_not in price.why_not


def test_links_that_still_train_after_a_boot_are_no_difference() -> None:
    def booted(fault: Fault) -> Fault:
        return lambda node: replace(fault(node), os=replace(node.os, uptime_s=read(120.0)))

    assert not [sibling for sibling in among_siblings(booted(fewer_nvlinks), judged=True) if sibling.family == "nvlink"]
    assert [sibling for sibling in among_siblings(booted(narrow_gpu), judged=False) if sibling.key == "width"]
