"""Picks one value per field from all offers, most trusted first, and records the others that differ."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from functools import cache
from typing import Any

from topodiag.evidence.draft import Entity, Offer
from topodiag.model.provenance import NOT_SEEN, Counter, Disagreement, Fact
from topodiag.words.own_data import own_data

_VARIES = frozenset(own_data("evidence/words")["varies"])


_NO_READING: Fact[Any] = Fact(why=NOT_SEEN)


@cache
def fact_fields(model: type) -> dict[str, type]:
    """The `Fact[...]` fields of a model class and the plain type of each (`tuple` for `tuple[str, ...]`)."""
    fields: dict[str, type] = {}
    hints = typing.get_type_hints(model)
    for field in dataclasses.fields(model):
        hint = hints[field.name]
        if typing.get_origin(hint) is Fact:
            inner = typing.get_args(hint)[0]
            fields[field.name] = typing.get_origin(inner) or inner
    return fields


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return bool(abs(one - other) <= 0.02 * max(abs(one), abs(other)))
    if isinstance(one, str) and isinstance(other, str):
        a, b = one.lower(), other.lower()
        # Firmware is `28.41.1000` to one tool and `28.41.1000 (MT_0000000838)` to another; GUIDs differ in colons.
        return a.startswith(b) or b.startswith(a) or _hex(a) == _hex(b)
    return bool(one == other)


def _hex(text: str) -> str:
    return text.replace(":", "").removeprefix("0x")


def pick(offers: Iterable[Offer], kind: type) -> Fact[Any]:
    """The most trusted value of a field, the earliest among equals; without one, the first reason for having none."""
    reasons = _NO_READING
    best: Offer | None = None
    for offer in offers:
        if offer.value is None or not _fits(offer.value, kind):
            if reasons.origin is None:
                reasons = Fact(None, offer.origin, offer.why or "unreadable")
        elif best is None or (offer.trust, -offer.sample) > (best.trust, -best.sample):
            best = offer
    return Fact(best.value, best.origin) if best else reasons


def facts(model: type, entity: Entity, subject: str, disagreements: list[Disagreement]) -> dict[str, Any]:
    """Every `Fact` field of a model class from an entity's offers; differing readings are added to `apart`."""
    values: dict[str, Any] = {}
    offered = entity.offers
    for name, kind in fact_fields(model).items():
        offers = offered.get(name)
        if offers is None:
            values[name] = _NO_READING
            continue
        values[name] = fact = pick(offers, kind)
        if len(offers) == 1 or name in _VARIES or fact.origin is None or fact.value is None:
            continue
        for offer in offers:
            if offer.sample == 0 and _fits(offer.value, kind) and not _equal(fact.value, offer.value):
                disagreements.append(
                    Disagreement(subject, name, str(fact.value), fact.origin, str(offer.value), offer.origin)
                )
                break
    return values


def counters(entity: Entity, interval_s: float) -> dict[str, Counter]:
    """Counters by name. Both readings of one counter come from one source, or their difference would mean nothing."""
    by_name: dict[str, Counter] = {}
    for name, offers in entity.counters.items():
        if len(offers) == 1 and offers[0].sample == 0 and _fits(offers[0].value, int):
            by_name[name] = Counter(name, Fact(offers[0].value, offers[0].origin), _NO_READING, 0.0)
            continue
        firsts: dict[int, Offer] = {}
        laters: dict[int, Offer] = {}
        for offer in offers:
            readings = firsts if offer.sample == 0 else laters if offer.sample == 1 else None
            if readings is not None and _fits(offer.value, int):
                readings.setdefault(offer.trust, offer)
        both = firsts.keys() & laters.keys()
        trust = max(both or firsts.keys() or laters.keys(), default=None)
        if trust is None:
            continue
        first, later = firsts.get(trust), laters.get(trust)
        by_name[name] = Counter(
            name,
            Fact(first.value, first.origin) if first else _NO_READING,
            Fact(later.value, later.origin) if later else _NO_READING,
            interval_s if later else 0.0,
        )
    return by_name
