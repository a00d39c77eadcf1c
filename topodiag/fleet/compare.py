"""Compares the nodes of a fleet with their siblings: cohort by cohort, fact by fact."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum

import numpy as np

from topodiag.checks.shared.devices import BOOT_S
from topodiag.fleet.cohorts import Traits, aligned, name_of, parted
from topodiag.fleet.columns import (
    FEWEST,
    FEWEST_NODES,
    LEAST_EVENTS,
    Column,
    FamilyTable,
    Mask,
    Split,
    associate,
    columns,
    far,
    judge,
    rises_faster,
)
from topodiag.fleet.digest import Digest, explained, key_of
from topodiag.fleet.priced import price_of
from topodiag.lazy import regex
from topodiag.model.fleet import Cohort, How, NodeFact, Outlier, Population, Populations, SharedFact
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped, number, plural, spell_bytes

ROLLED_OUT = frozenset(own_data("fleet/families")["rolled_out"])
"""Families that an administrator changes rack by rack: a few nodes of one rack that differ are a roll-out."""
_ROLL_OUT = 3
"""Nodes of the least roll-out that shows as one."""
_COME_UP = frozenset(own_data("fleet/families")["come_up"])
"""Families and facts that come up in the minutes after a boot."""
_PART_NAME = regex(r"[0-9]{1,12}")


def compared(nodes: Sequence[Digest], roots: Sequence[str] = ()) -> tuple[tuple[Cohort, ...], tuple[int, ...]]:
    """The cohorts of a fleet, the largest first, and by node the number of its cohort. `roots` are the paths that were
    given: a folder below one of them is a place that nodes have in common."""
    pairs = parted(nodes)
    home = [0] * len(nodes)
    cohorts = []
    for number_, (traits, members) in enumerate(pairs):
        for member in members:
            home[member] = number_
        cohorts.append(_cohort(traits, [nodes[member] for member in members], roots))
    return tuple(cohorts), tuple(home)


def _cohort(traits: Traits, nodes: Sequence[Digest], roots: Sequence[str]) -> Cohort:
    hosts = tuple(node.host for node in nodes)
    cohort = Cohort(name_of(traits), traits, hosts)
    if len(nodes) < FEWEST_NODES:
        return cohort
    nodes = aligned(nodes)
    places = _places(nodes, roots)
    young = frozenset(at for at, node in enumerate(nodes) if (node.uptime_s or BOOT_S) < BOOT_S)
    same: list[Column] = []
    by_part: list[Outlier] = []
    parted_: list[tuple[Column, Split]] = []
    varying: list[tuple[str, str]] = []
    count = 0
    for column in columns(nodes):
        count += column.known >= FEWEST_NODES
        split = judge(column)
        if split is None:
            same += [column] if column.known >= FEWEST_NODES else []
            continue
        if not split.outliers and not split.groups:
            varying.append(column.fact[:2])
        rolled = _roll_outs(column, split, places)
        known = replace(split, outliers=tuple(v for v in split.outliers if v not in rolled))
        by_part += _outliers(column, known, nodes, young if _comes_up(column) else frozenset())
        groups = (*(split.groups or (split.usual,)), *rolled)
        if len(groups) > 1:
            parted_.append((column, replace(split, groups=groups)))
    outliers = explained([*_merged(by_part, nodes), *_numbers(nodes), *_counters(nodes)], nodes)
    return replace(
        cohort,
        compared=count,
        same=tuple(_shared_facts(same)),
        outliers=tuple(outliers),
        populations=tuple(_populations(parted_, hosts, places)),
        varying=tuple(dict.fromkeys(varying)),
    )


def _roll_outs(column: Column, split: Split, places: Mapping[str, Sequence[str | None]]) -> tuple[str, ...]:
    """Odd values that are a roll-out which has just begun: three nodes and more, all those of a rack or a switch."""
    if column.table.family not in ROLLED_OUT:
        return ()
    many = (value for value in split.outliers if column.counts[value] >= _ROLL_OUT)
    return tuple(
        value for value in many if associate(column.having(value), column.table.codes >= 0, places) is not None
    )


def _comes_up(column: Column) -> bool:
    """Whether the fact takes minutes after a boot to be what it will be: links train, services start."""
    family, key, _ = column.fact
    return family in _COME_UP or f"{family}: {key}" in _COME_UP


def _outliers(column: Column, split: Split, nodes: Sequence[Digest], left_out: frozenset[int]) -> Iterator[Outlier]:
    """One for each value of a fact of one part that some nodes have otherwise."""
    part, key, unit = column.name
    usual = split.groups if len(split.groups) > 1 else (split.usual,)
    count = sum(column.counts[value] for value in usual)
    for value in split.outliers:
        members = [at for at in np.flatnonzero(column.having(value)).tolist() if at not in left_out]
        if members:
            yield Outlier(
                column.table.family, key, (part,), value, " or ".join(usual), tuple(nodes[at].host for at in members),
                count, column.known, unit=unit, source=column.source(members[0]),
            )  # fmt: skip


# --- what is equal --------------------------------------------------------------------------------------------------


def _shared_facts(columns: Iterable[Column]) -> Iterator[SharedFact]:
    """One entry for each key, with all parts that have it."""
    alike = grouped((column.fact, column) for column in columns)
    for (family, key, unit), own in alike.items():
        parts = tuple(sorted((column.name[0] for column in own), key=part_order))
        values = tuple(dict.fromkeys(next(iter(column.counts)) for column in own))
        yield SharedFact(family, key, parts, values, min(column.known for column in own), unit)


def part_order(part: str) -> tuple[object, ...]:
    """gpu2 before gpu10."""
    return _PART_NAME.sub("#", part), [int(digits) for digits in _PART_NAME.findall(part)]


# --- what is odd ----------------------------------------------------------------------------------------------------


def _merged(outliers: Iterable[Outlier], nodes: Sequence[Digest]) -> Iterator[Outlier]:
    """The same key on the same nodes is one outlier with all of its parts, and with its price."""
    by_host = {node.host: node for node in nodes}
    alike = grouped(((outlier.family, outlier.key, outlier.nodes), outlier) for outlier in outliers)
    for (family, key, hosts), own in alike.items():
        own.sort(key=lambda outlier: part_order(outlier.parts[0]))
        differences = [(outlier.parts[0], outlier.value, outlier.usual) for outlier in own]
        price = price_of(family, key, differences, by_host[hosts[0]])
        merged = replace(own[0], gbs_lost=price.gbs, unpriced=price.why_not)
        if len({(value, usual) for _, value, usual in differences}) > 1:
            permuted = sorted(value for _, value, _ in differences) == sorted(usual for _, _, usual in differences)
            merged = replace(
                merged,
                value="; ".join(f"{part} {value}" for part, value, _ in differences),
                usual="; ".join(f"{part} {usual}" for part, _, usual in differences),
                how=How.PERMUTED if permuted else How.UNLIKE,
            )
        yield replace(
            merged,
            parts=tuple(part for part, _, _ in differences),
            usual_count=min(outlier.usual_count for outlier in own),
            total=max(outlier.total for outlier in own),
        )


def _numbers(nodes: Sequence[Digest]) -> Iterator[Outlier]:
    alike = grouped(((fact.family, *key_of(fact)), (node.host, fact)) for node in nodes for fact in node.numbers)
    for (family, part, key, unit), own in sorted(alike.items()):
        values = np.array([float(fact.value) for _, fact in own])
        outliers = far(values, unit)
        if outliers is None:
            continue
        usual, usual_count = number(outliers.median), int((~outliers.mask).sum())
        for at in np.flatnonzero(outliers.mask).tolist():
            host, fact = own[at]
            yield Outlier(
                family, key, (part,), number(values[at]), usual, (host,), usual_count, len(own), outliers.how, unit,
                float(outliers.distance[at]), fact.source,
            )  # fmt: skip


def _counters(nodes: Sequence[Digest]) -> Iterator[Outlier]:
    """Counters are compared where they were read: a node that shows none of them is no sibling with zero."""
    hours = np.asarray([(node.uptime_s or 0.0) / 3600 for node in nodes])
    alike = grouped(
        ((fact.family, key_of(fact)), (at, fact)) for at, node in enumerate(nodes) for fact in node.counters
    )
    read = FamilyTable("counters", [node.counted for node in nodes])
    for family, key in sorted(alike):
        known = read.having(key, family) & (hours > 0)
        if known.sum() < FEWEST:
            continue
        counts = np.zeros(len(nodes))
        of_node = dict(alike[family, key])
        for at, fact in of_node.items():
            counts[at] = fact.value
        if not (counts >= LEAST_EVENTS).any():
            continue
        bytes_ = np.asarray([carried_by(node, key[0]) for node in nodes])
        faster, rates = rises_faster(counts[known], hours[known], bytes_[known])
        median = float(np.median(rates))
        for at in np.flatnonzero(faster).tolist():
            member = int(np.flatnonzero(known)[at])
            yield _rate(nodes[member], of_node[member], bytes_[member], usual=median, siblings=int(known.sum()))


def carried_by(node: Digest, part: str) -> float:
    """The bytes of a part, or of the ports of a card; NaN where they are not known."""
    own = [count for name, count in node.carried if name == part or name.startswith(f"{part}/")]
    return fsum(own) if own else np.nan


def _rate(node: Digest, fact: NodeFact, bytes_: float, *, usual: float, siblings: int) -> Outlier:
    and_bytes = "" if np.isnan(bytes_) else f" and {spell_bytes(int(bytes_))}"
    count, hours = float(fact.value), (node.uptime_s or 0.0) / 3600
    return Outlier(
        fact.family, fact.key, (fact.part,),
        f"{number(count)} in {plural(round(hours), 'hour')}{and_bytes}", f"{number(usual)} an hour",
        (node.host,), siblings - 1, siblings, How.RATE, fact.unit, (count / hours) / usual if usual else None,
        fact.source,
    )  # fmt: skip


# --- populations ----------------------------------------------------------------------------------------------------


def _populations(
    columns: Iterable[tuple[Column, Split]], hosts: Sequence[str], places: Mapping[str, Sequence[str | None]]
) -> Iterator[Populations]:
    """Facts that part the nodes in the same way are one split, with what else parts them so."""
    alike: dict[tuple[bytes, ...], list[tuple[Column, Split, list[Mask]]]] = {}
    for column, split in columns:
        masks = [column.having(value) for value in split.groups]
        alike.setdefault(tuple(mask.tobytes() for mask in masks), []).append((column, split, masks))
    for own in alike.values():
        masks = own[0][2]
        known = np.logical_or.reduce(masks)
        yield Populations(
            facts=_facts_of([column for column, _, _ in own]),
            groups=tuple(
                Population(_values_of(own, at), tuple(hosts[n] for n in np.flatnonzero(mask).tolist()))
                for at, mask in enumerate(masks)
            ),
            known=int(known.sum()),
            association=associate(masks[1], known, places),
        )


def _facts_of(columns: Sequence[Column]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    parts = grouped((column.fact[:2], column.name[0]) for column in columns)
    return tuple((family, key, tuple(sorted(own, key=part_order))) for (family, key), own in parts.items())


def _values_of(own: Sequence[tuple[Column, Split, list[Mask]]], at: int) -> tuple[str, ...]:
    """The value of each fact in one population; of several parts the distinct ones."""
    values = grouped((column.fact[:2], split.groups[at]) for column, split, _ in own)
    return tuple(", ".join(dict.fromkeys(value)) for value in values.values())


def _places(nodes: Sequence[Digest], roots: Sequence[str]) -> dict[str, list[str | None]]:
    """Attributes of nodes that say where they stand: switches, domains, folders, and last the words of their names."""
    places: dict[str, list[str | None]] = {}
    for at, node in enumerate(nodes):
        for name, value in node.places:
            places.setdefault(name, [None] * len(nodes))[at] = value
    places["folder"] = [_folder(node.path, roots) for node in nodes]
    places["name"] = [_stem(node.host) for node in nodes]
    return places


def _folder(path: str, roots: Sequence[str]) -> str | None:
    above = os.path.dirname(path.rstrip("/"))
    return None if not above or above in {root.rstrip("/") for root in roots} else os.path.basename(above)


def _stem(host: str) -> str | None:
    """`gpu-r07` of `gpu-r07-n03`: what stands before the last number."""
    stem = host.partition(".")[0].rstrip("0123456789").rstrip("-_n")
    return stem if any(sign.isdigit() for sign in stem) else None
