"""Fleets of digests, built by hand: alike but for what a test changes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from tests.checks.nodes import hgx_h100
from topodiag.fleet.digest import Digest, Facts, digest_of
from topodiag.model.finding import Finding, Severity, Where
from topodiag.model.fleet import FactKind, NodeFact

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
    return lambda digest: replace(digest, numbers=(NodeFact("bench", "", key, value, FactKind.NUMBER, unit),))


def with_errors(count: float, hours: float = 100.0, key: str = "symbol_error", carried: float | None = None) -> Change:
    """A counter of one port; the node shows it also where it is zero. `carried` are the port's bytes."""
    at = ("mlx5_0/1", key, "errors")
    return lambda digest: replace(
        digest,
        counters=(NodeFact("nic", *at[:2], count, FactKind.COUNTER, at[2]),) if count else (),
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


def found(check: str, severity: Severity, message: str = "a fault") -> Finding:
    return Finding(check, severity, message, "seen", "expected", ("mend it",))


def having(*findings: Finding) -> Change:
    """Findings on the node."""

    def change(digest: Digest) -> Digest:
        own = tuple(replace(finding, where=Where(nodes=(digest.host,))) for finding in findings)
        return replace(digest, findings=own)

    return change


def of_unknown_kind(digest: Digest) -> Digest:
    """The node, which hung before it told what it is."""
    return replace(digest, traits=(("product", ""), ("GPU", ""), ("role", "no GPU"), ("captured in", "")))


def with_limits(digest: Digest) -> Digest:
    """The node, which shows how many files may be open."""
    limits = replace(digest.facts[0], family="limits", sources=(), values=((("", "open files", ""), "1048576"),))
    return replace(digest, facts=(*digest.facts, limits))


CHANGES: dict[str, Callable[..., Change]] = {
    "fact": with_fact,
    "finding": lambda check, severity, message="a fault": having(found(check, Severity[severity], message)),
    "unknown kind": lambda: of_unknown_kind,
    "limits": lambda: with_limits,
}


def fleet_of(count: int, changes: Iterable[Sequence[Any]]) -> list[Digest]:
    """The fleet of a row: each change has the first and the last of its nodes, perhaps each so manieth, what it is and
    its arguments; `{}` in a text is the number of the node."""
    digests = fleet(count)
    for (first, last, *step), kind, *arguments in changes:
        for at in range(first, last + 1, *step):
            own = (each.format(at) if isinstance(each, str) else each for each in arguments)
            digests[at] = CHANGES[kind](*own)(digests[at])
    return digests
