"""What runs of one kind share: the set-up of all that tell the same of ranks and devices, and its rates.

A sweep is a hundred runs of one placement. What is reckoned for it depends on nothing that was measured, so that it is
reckoned once. Of the last few kinds alone: what is kept holds the node it was made of.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, Generic, TypeVar

from topodiag.expect.rates import Rates, rates_of
from topodiag.expect.setup import GivenSetup, NoSetupError, Setup, setup_of
from topodiag.model.bench import BenchDevice, BenchRun
from topodiag.model.node import Node

_KEPT = 16
"""Kinds of runs that are remembered."""

T = TypeVar("T")


class IdentityKey(Generic[T]):
    """A key that only the same object equals, and that keeps it."""

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.it is self.it

    def __hash__(self) -> int:
        return id(self.it)


def shared_setup(run: BenchRun, machine: Node | None, given: GivenSetup) -> Setup:
    """setup_of, the same object for runs that tell the same. Raises NoSetupError."""
    devices = tuple(replace(device, pid=0) for device in run.devices)
    known = frozenset({**given, "env": tuple((given.get("env") or {}).items())}.items())
    return _setup(devices, run.nranks, run.nccl, tuple(run.env.items()), IdentityKey(machine), known)


@lru_cache(maxsize=_KEPT)
def _setup(  # noqa: PLR0917 - all that a set-up depends on
    devices: tuple[BenchDevice, ...], nranks: int | None, nccl: str, env: tuple[tuple[str, str], ...],
    machine: IdentityKey[Node | None], known: frozenset[tuple[str, Any]],
) -> Setup:  # fmt: skip
    """The set-up of a run without what was measured."""
    given = dict(known)
    run = BenchRun("", (), devices, nranks, nccl=nccl, env=dict(env))
    return setup_of(run, machine.it, **{**given, "env": dict(given["env"])})


@lru_cache(maxsize=_KEPT)
def versions_of(setup: Setup, collective: str, sizes: tuple[int, ...]) -> tuple[tuple[Rates, Setup], ...]:
    """The rates by the version of a set-up, and by all that it could be as well. Raises NoSetupError for the first."""
    pairs = [(rates_of(setup, collective, sizes), setup)]
    for version in setup.versions:
        other = replace(setup, version=version)
        with suppress(NoSetupError):
            pairs.append((rates_of(other, collective, sizes), other))
    return tuple(pairs)


@lru_cache(maxsize=_KEPT)
def variants_of(setup: Setup, collective: str) -> tuple[tuple[str, Rates], ...]:
    """The rates of the other machines that a set-up may be of, by name."""
    pairs = []
    for variant in setup.others:
        with suppress(NoSetupError):
            pairs.append((variant.name, rates_of(replace(setup, tree=variant.tree, others=()), collective, ())))
    return tuple(pairs)


@lru_cache(maxsize=_KEPT)
def known_shares(setup: Setup, collective: str, raw: float) -> dict[str, float | None]:
    """The shares that causes leave of the bandwidth of a whole machine, whose figure is `raw`, by the causes' words, to
    be looked up and added to; None for one that cannot be."""
    return {}
