"""Nodes beside their siblings: equal, odd, populations, and the price of what differs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.checks.nodes import hgx_h100, links, read, with_gpu
from tests.fleet.fleets import Change, both, fleet, standing, with_errors, with_fact, with_number
from tests.tables import examples, parts
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.fleet.compare import compared
from topodiag.fleet.digest import Digest, digest_of
from topodiag.fleet.priced import price_of
from topodiag.model.fleet import Cohort, How, Outlier
from topodiag.model.node import Node

OLD = with_fact("driver", "NVIDIA driver", "550.54.15")


def only(nodes: list[Digest]) -> Cohort:
    [cohort] = compared(nodes)[0]
    return cohort


def shown(cohort: Cohort, wanted: dict[str, Any]) -> dict[str, Any]:
    """What a cohort has of what a row wants, with the sizes of the groups of each population, and their values, and the
    facts that are the `same` by their family and key."""
    have = {
        "sizes": [[len(group.nodes) for group in split.groups] for split in cohort.populations],
        "values": [[list(group.values) for group in split.groups] for split in cohort.populations],
        "split_facts": [sorted(key for _, key, _ in split.facts) for split in cohort.populations],
        "associations": [
            [split.association.attribute, list(split.association.values), split.association.jaccard]
            if split.association
            else []
            for split in cohort.populations
        ],
        "odd_nodes": [len(outlier.nodes) for outlier in cohort.outliers],
        "varying": [list(fact) for fact in cohort.varying],
        "same": [
            {"fact": [fact.family, fact.key], "values": list(fact.values), "parts": list(fact.parts)}
            for fact in cohort.same
            if [fact.family, fact.key] in [own["fact"] for own in wanted.get("same", ())]
        ],
        "equal": sum(len(fact.parts) for fact in cohort.same) == cohort.compared > 100,
    }
    return {name: have[name] if name in have else parts(getattr(cohort, name), own) for name, own in wanted.items()}


@examples("count", "changes", "racks", "wanted")
def test_nodes_beside_their_siblings(
    count: int, changes: list[list[Any]] | None, racks: bool | None, wanted: dict[str, Any]
) -> None:
    """A change has the numbers of its nodes, first and last, perhaps each so manieth, and other facts; with `racks` ten
    nodes stand in each."""
    made: dict[int, Change] = {}
    for (first, last, *step), *facts in changes or ():
        for at in range(first, last + 1, *step):
            made[at] = both(*(with_fact(*(None if each == "null" else each for each in fact)) for fact in facts))
    nodes = fleet(count, made)
    if racks:
        nodes = [standing("rack", f"r{at // 10}")(each) for at, each in enumerate(nodes)]
    cohort = only(nodes)
    assert shown(cohort, wanted) == wanted


def test_nodes_of_another_product_are_no_siblings() -> None:
    def other(digest: Digest) -> Digest:
        return replace(digest, traits=(("product", "DGX A100"), *digest.traits[1:]))

    cohorts, home = compared(fleet(6, {5: both(other, OLD)}))
    assert [len(cohort.nodes) for cohort in cohorts] == [5, 1]
    assert home == (0, 0, 0, 0, 0, 1)
    assert all(not cohort.outliers for cohort in cohorts)


def test_a_node_whose_driver_is_down_stays_among_its_siblings() -> None:
    def named(digest: Digest) -> Digest:
        return replace(digest, traits=(("product", "DGX H100"), *digest.traits[1:]))

    def blind(digest: Digest) -> Digest:
        return replace(digest, traits=(("product", "DGX H100"), ("GPU", ""), ("role", "no GPU"), digest.traits[3]))

    nodes = [named(each) for each in fleet(6)]
    nodes[2] = blind(nodes[2])
    assert len(compared(nodes)[0]) == 1


def test_a_parameter_of_the_kernel_that_one_node_lacks_is_a_difference() -> None:
    with_line = [
        replace(each, facts=(*each.facts, replace(each.facts[0], family="kernel command line", sources=(),
                values=((("", "iommu", ""), "pt"), (("", "ro", ""), "set")))))
        for each in fleet(20)
    ]  # fmt: skip
    with_line[4] = with_fact("kernel command line", "iommu", None)(with_line[4])
    [outlier] = only(with_line).outliers
    assert (outlier.key, outlier.value, outlier.usual) == ("iommu", "not set", "pt")


@examples("count", "value", "odd")
def test_numbers_are_odd_beyond_deviation_and_noise(count: int, value: float, odd: bool) -> None:
    changes = {at: with_number(370.0 + at % 4) for at in range(count)} | {2: with_number(value)}
    outliers = [outlier for outlier in only(fleet(count, changes)).outliers if outlier.key == "measured"]
    assert bool(outliers) is odd


def test_a_counter_is_compared_as_a_rate() -> None:
    changes = {at: with_errors(100 * (at + 1), hours=100 * (at + 1)) for at in range(10)}
    assert only(fleet(10, changes)).outliers == ()
    [outlier] = only(fleet(10, changes | {4: with_errors(9000, hours=100)})).outliers
    assert (outlier.how, outlier.nodes, outlier.key) == (How.RATE, ("n0004",), "symbol_error")


@examples("usual", "odd", "outliers")
def test_a_counter_of_one_node_beside_nine(
    usual: dict[str, float], odd: dict[str, float], outliers: list[list[Any]]
) -> None:
    """Errors in 100 hours and the bytes that a port carried, usual and odd; an outlier by its node and its value."""
    changes = {at: with_errors(**usual) for at in range(10)} | {4: with_errors(**odd)}
    found = [[*outlier.nodes, outlier.value] for outlier in only(fleet(10, changes)).outliers]
    assert [outlier[: len(wanted)] for outlier, wanted in zip(found, outliers, strict=True)] == outliers


def test_the_order_of_the_nodes_does_not_matter() -> None:
    nodes = fleet(40, {3: OLD, 9: with_fact("os", "kernel", "5.4")})
    forward, backward = (
        {(outlier.key, outlier.nodes) for outlier in only(order).outliers} for order in (nodes, nodes[::-1])
    )
    assert forward == backward


def test_a_card_that_is_gone_does_not_shift_the_facts_of_those_behind_it() -> None:
    """mlx5_3 is gone: the kernel calls the fifth card mlx5_3, and so on. Card 6 has its own firmware on all nodes."""
    whole = hgx_h100()
    whole = replace(
        whole, nics=tuple(replace(nic, firmware=read(f"28.{at == 6:d}")) for at, nic in enumerate(whole.nics))
    )
    left = [nic for at, nic in enumerate(whole.nics) if at != 3]
    renamed = tuple(replace(nic, name=f"mlx5_{at}", rdma_name=f"mlx5_{at}") for at, nic in enumerate(left))
    names = {nic.name: new.name for nic, new in zip(left, renamed, strict=True)}
    paths = {
        tuple(names.get(label, label) for label in pair): path
        for pair, path in whole.paths.items()
        if "mlx5_3" not in pair
    }
    fleet_of_eight = [digest_of(whole, "") for _ in range(7)]
    fleet_of_eight.append(digest_of(replace(whole, nics=renamed, paths=paths), ""))
    nodes = [replace(each, host=f"n{at}") for at, each in enumerate(fleet_of_eight)]
    rows = {(outlier.family, outlier.key, outlier.parts) for outlier in only(nodes).outliers}
    assert ("nic", "compute network cards", ("",)) in rows
    assert {row[:2] for row in rows} <= {
        ("nic", "compute network cards"), ("pairing", "nearest network cards"),
        ("pairing", "widest path to a network card"),
    }  # fmt: skip
    assert all(row[2] == ("gpu3",) for row in rows if row[0] == "pairing")


def test_a_node_that_shows_no_gpu_does_not_pass_for_one_of_its_siblings() -> None:
    def of_a_dgx(node: Node) -> Node:
        return replace(node, system=read("DGX H100"))

    whole = digest_of(of_a_dgx(hgx_h100()), "")
    blind = digest_of(of_a_dgx(replace(hgx_h100(), gpus=(), paths={}, smi_matrix={}, p2p={})), "")
    nodes = [replace(whole, host=f"n{at}") for at in range(9)] + [replace(blind, host="n9")]
    outlier = next(outlier for outlier in only(nodes).outliers if outlier.key == "GPUs")
    assert (outlier.nodes, outlier.value, outlier.usual) == (("n9",), "not shown", "8")


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


@examples("family", "key", "parts", "gbs", "why_not")
def test_what_a_difference_costs_or_why_topology_cannot_price_it(
    family: str, key: str, parts: list[tuple[str, str, str]], gbs: float | None, why_not: str | None
) -> None:
    price = price_of(family, key, parts, plain())
    assert price.gbs == gbs
    assert why_not in price.why_not if why_not else not price.why_not


def test_links_that_still_train_after_a_boot_are_no_difference() -> None:
    def booted(fault: Fault) -> Fault:
        return lambda node: replace(fault(node), os=replace(node.os, uptime_s=read(120.0)))

    assert not [sibling for sibling in among_siblings(booted(fewer_nvlinks), judged=True) if sibling.family == "nvlink"]
    assert [sibling for sibling in among_siblings(booted(narrow_gpu), judged=False) if sibling.key == "width"]
