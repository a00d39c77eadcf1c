"""Fleets of digests, built by hand: alike but for what a test changes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from tests.checks.nodes import hgx_h100
from topodiag.fleet.digest import Digest, Facts, Reading, digest_of

Change = Callable[[Digest], Digest]


@cache
def plain() -> Digest:
    return digest_of(hgx_h100(), "captures/n.tar.gz")


def fleet(count: int, changes: Mapping[int, Change] | None = None) -> list[Digest]:
    """So many nodes; `changes` are made to some by number."""
    digests = [replace(plain(), host=f"n{at:04d}", path=f"captures/n{at:04d}.tar.gz") for at in range(count)]
    for at, change in (changes or {}).items():
        digests[at] = change(digests[at])
    return digests


def with_fact(family: str, key: str, value: str | None, part: str = "") -> Change:
    """Another value of one fact; None takes it away."""

    def change(digest: Digest) -> Digest:
        return replace(digest, facts=tuple(_changed(fact) if fact.family == family else fact for fact in digest.facts))

    def _changed(facts: Facts) -> Facts:
        values = tuple(
            (at, old if at[:2] != (part, key) else value)
            for at, old in facts.values
            if at[:2] != (part, key) or value is not None
        )
        return replace(facts, values=tuple((at, str(text)) for at, text in values))

    return change


def with_number(value: float, unit: str = "GB/s", key: str = "measured") -> Change:
    return lambda digest: replace(digest, numbers=(Reading("bench", ("", key, unit), value),))


def with_errors(count: float, hours: float = 100.0, key: str = "symbol_error", carried: float | None = None) -> Change:
    """A counter of one port; the node shows it also where it is zero. `carried` are the port's bytes."""
    at = ("mlx5_0/1", key, "errors")
    return lambda digest: replace(
        digest,
        counters=(Reading("nic", at, count),) if count else (),
        counted=Facts("counters", ((at, "nic"),)),
        carried=() if carried is None else (("mlx5_0/1", carried),),
        uptime_s=hours * 3600,
    )


def standing(attribute: str, value: str) -> Change:
    return lambda digest: replace(digest, places=((attribute, value),))


def both(*changes: Change) -> Change:
    def change(digest: Digest) -> Digest:
        for change in changes:
            digest = change(digest)
        return digest

    return change
