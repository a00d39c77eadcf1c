"""What each communicator of a training job is for: tensor, context, expert, data or pipeline parallelism.

In this order: its name, where NCCL (`Comm name set to`, 2.27+) or torch (the description of a process group) gives one;
the declared layout; sizes and strides, which are a guess and say so. What fits nothing stays OTHER.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence
from topodiag.model.job import Communicator, FlightRecord
from topodiag.model.layout import DIMENSIONS, ROLE_WORDS, Layout, LayoutError, Role
from topodiag.model.layout_groups import LayoutGroups
from topodiag.words.units import most_of

_MOST_TENSOR = 8
"""Tensor groups larger than this are taken for such only when they are one whole host."""

_WORDS: Mapping[str, Role] = {**ROLE_WORDS, "world": Role.WORLD, "default": Role.WORLD}
_COPIES = frozenset(dimension.role for dimension in DIMENSIONS if dimension.repeats_weights)
_POINT_TO_POINT = frozenset(("Send", "Recv"))


@dataclass(frozen=True, slots=True)
class _RoleGuess:
    role: Role
    sure: Confidence
    why: str


_UNKNOWN = _RoleGuess(Role.OTHER, Confidence.LOW, "its members fit no pattern that is known")


def assign_roles(
    communicators: Sequence[Communicator],
    world_size: int,
    rank_hosts: Mapping[int, str],
    layout: Layout | None = None,
    described: Mapping[tuple[int, ...], str] | None = None,
) -> tuple[Communicator, ...]:
    """The communicators with their roles. `rank_hosts`: world rank to host; `described`: torch's description of a
    process group by its world ranks, ascending. Raises LayoutError for a layout that does not make `world_size`."""
    # A log that never says how many ranks there are can contradict no layout, nor confirm one.
    groups = LayoutGroups(layout, world_size) if layout is not None and world_size > 0 else None
    guesses = _guess(communicators, world_size, rank_hosts)
    assigned = []
    for number, communicator in enumerate(communicators):
        name = communicator.name or _description(communicator, described)
        role = _by_name(name) or _by_world(communicator, number, world_size, groups)
        if role is None and groups is not None:
            role = _by_layout(communicator, groups)
        role = role or guesses.get(number, _UNKNOWN)
        assigned.append(replace(communicator, role=role.role, role_sure=role.sure, role_why=role.why))
    return tuple(assigned)


class RolesOfJobs:
    """Roles for the jobs of one run with one declared layout. A job that the layout does not fit gets its roles without
    it and says so; only a layout that fits no job is an error."""

    def __init__(self, layout: Layout | None, described: Mapping[tuple[int, ...], str]) -> None:
        self.layout, self.described = layout, described
        self._misfits: list[tuple[int, LayoutError]] = []
        self._fits = False

    def assign(
        self, communicators: Sequence[Communicator], world_size: int, rank_hosts: Mapping[int, str], *, complete: bool
    ) -> tuple[tuple[Communicator, ...], str]:
        """The communicators of one job with their roles, and why the layout was left out, "" where it was not.
        `complete`: the logs say the world size; one that was counted from the ranks seen refutes no layout."""
        try:
            assigned = assign_roles(communicators, world_size, rank_hosts, self.layout, self.described)
            self._fits |= complete
        except LayoutError as error:
            if complete:
                self._misfits.append((world_size, error))
            roles = assign_roles(communicators, world_size, rank_hosts, None, self.described)
            return roles, f"{error.message}: roles are told without it"
        return assigned, ""

    def check(self) -> None:
        """After all jobs: raises the LayoutError of the largest job where no job fits."""
        if self._misfits and not self._fits:
            raise max(self._misfits, key=lambda pair: pair[0])[1]


def descriptions(flight: Iterable[FlightRecord]) -> dict[tuple[int, ...], str]:
    """torch's descriptions by members, where each set of members has one description only."""
    by_members: dict[tuple[int, ...], set[str]] = defaultdict(set)
    for record in flight:
        for group, members in record.groups.items():
            if text := record.descriptions.get(group, ""):
                by_members[tuple(sorted(members))].add(text)
    return {members: next(iter(texts)) for members, texts in by_members.items() if len(texts) == 1}


def _description(communicator: Communicator, described: Mapping[tuple[int, ...], str] | None) -> str:
    if not described or not _complete(communicator):
        return ""
    return described.get(tuple(np.sort(communicator.ranks).tolist()), "")


def role_of_name(name: str) -> Role | None:
    """The role that a name says; OTHER for one that names several or another use, None when it says nothing."""
    words = re.findall("[a-z]+", name.lower()[:200])
    roles = {_WORDS[word] for word in words if word in _WORDS}
    if any(word.startswith("emb") for word in words):
        return Role.OTHER
    if len(roles) > 1 and "and" not in words:
        if roles == {Role.EP, Role.TP} and {"expert", "tensor"} <= set(words):
            return Role.TP
        if Role.DP in roles and (roles <= _COPIES or roles == {Role.DP, Role.EP}):
            return Role.DP  # DATA_PARALLEL_GROUP_WITH_CP, EXPERT_DATA_PARALLEL_GROUP
    return Role.OTHER if len(roles) > 1 else next(iter(roles), None)


def _by_name(name: str) -> _RoleGuess | None:
    role = role_of_name(name)
    return _RoleGuess(role, Confidence.HIGH, f"its name is {name}") if role is not None else None


def _by_world(
    communicator: Communicator, number: int, world_size: int, groups: LayoutGroups | None
) -> _RoleGuess | None:
    """A communicator of all ranks. Beside the first one there may be a data-parallel group of all ranks."""
    if communicator.nranks != world_size or world_size < 1:
        return None
    if number > 0 and groups is not None and (role := groups.role_of_all) is not None:
        return _RoleGuess(role, Confidence.MEDIUM, f"it holds all ranks, and so does {role.value} in the layout")
    return _RoleGuess(Role.WORLD, Confidence.HIGH, "it holds all ranks")


def _by_layout(communicator: Communicator, groups: LayoutGroups) -> _RoleGuess | None:
    names = groups.matching(communicator.ranks)
    if not names:
        return None
    roles = {groups.role(name) for name in names}
    words = " and ".join(name.upper() for name in names)
    if not _complete(communicator):
        if len(roles) > 1:
            return _RoleGuess(Role.OTHER, Confidence.LOW, f"the members that are known could be {words} in the layout")
        role = roles.pop()
        return _RoleGuess(role, Confidence.MEDIUM, f"the members that are known are those of {words} in the layout")
    if len(roles) == 1:
        return _RoleGuess(roles.pop(), Confidence.HIGH, f"its members are those of {words} in the layout")
    return _RoleGuess(groups.role(names[0]), Confidence.MEDIUM, f"{words} have the same members in the layout")


def _complete(communicator: Communicator) -> bool:
    ranks = communicator.ranks
    return 0 < len(ranks) == communicator.nranks and bool(ranks.min() >= 0)


def _progression(communicator: Communicator) -> tuple[int, int] | None:
    """The first world rank and the even spacing that the members have; two known ones of an incomplete group are enough
    to tell."""
    if communicator.nranks < 2 or len(communicator.ranks) != communicator.nranks:
        return None
    ranks = np.sort(communicator.ranks) if _complete(communicator) else communicator.ranks
    at = np.flatnonzero(ranks >= 0)
    if at.size < 2:
        return None
    stride = int(ranks[at[1]] - ranks[at[0]]) // int(at[1] - at[0])
    base = int(ranks[at[0]]) - stride * int(at[0])
    is_even = stride > 0 and base >= 0 and bool((ranks[at] == base + stride * at).all())
    return (base, stride) if is_even else None


@dataclass(frozen=True, slots=True)
class _Family:
    """Communicators of one size and stride; `whole` when their members are all ranks, each once.

    `sends` when their operations were seen and are sends and receives only, `collects` when there were others.
    """

    stride: int
    size: int
    numbers: tuple[int, ...]
    whole: bool
    sends: bool
    collects: bool

    @property
    def end(self) -> int:
        """Stride of the dimension outside this one."""
        return self.stride * self.size


def _guess(
    communicators: Sequence[Communicator], world_size: int, rank_hosts: Mapping[int, str]
) -> Mapping[int, _RoleGuess]:
    """Roles from sizes and strides, by position in `communicators`."""
    by_shape: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for number, communicator in enumerate(communicators):
        base, stride = _progression(communicator) or (world_size, 0)
        if communicator.nranks < world_size and base + stride * (communicator.nranks - 1) < world_size:
            by_shape[stride, communicator.nranks][number] = base
    families = []
    for (stride, size), base_of in sorted(by_shape.items()):
        bases, block = set(base_of.values()), stride * size
        # Blocks of one size and stride are disjoint where they start within their own stride.
        if world_size % block == 0 and all(base % block < stride for base in bases):
            calls = [held for number in base_of for held in communicators[number].operations.values()]
            used = {name for held in calls for name in held.bytes_by_collective}
            families.append(_Family(
                stride, size, tuple(base_of), len(bases) * size == world_size,
                bool(used) and used <= _POINT_TO_POINT, bool(used - _POINT_TO_POINT),
            ))  # fmt: skip
    per_host = most_of(Counter(rank_hosts.values()).values(), 0)
    return {number: guess for family, guess in _chain(families, world_size, per_host) for number in family.numbers}


def _chain(families: Sequence[_Family], world_size: int, per_host: int) -> Iterator[tuple[_Family, _RoleGuess]]:
    """Families whose strides follow from each other: neighbours, then blocks of those, up to all ranks."""
    start = 1
    inner = next((family for family in families if family.stride == 1), None)
    if inner is not None and (inner.size <= _MOST_TENSOR or inner.size == per_host) and not inner.sends:
        outer = [family for family in families if family.stride == inner.size]
        confidence = Confidence.MEDIUM if inner.whole and any(family.whole for family in outer) else Confidence.LOW
        why = f"inferred: blocks of {inner.size} neighbouring ranks"
        yield inner, _RoleGuess(Role.TP, confidence, f"{why}, and groups across them" if outer else why)
        start = inner.size
    yield from _outside(families, start, world_size)


def _outside(families: Sequence[_Family], start: int, world_size: int) -> Iterator[tuple[_Family, _RoleGuess]]:
    """The families outside the tensor groups of size `start` (1: there are none)."""
    level = [family for family in families if family.stride == start]
    if not level:
        return
    first, last = level[0], level[-1]
    if len(level) == 1 and first.end != world_size:
        across = [family for family in families if family.stride == first.end and family.end == world_size]
        yield from _two_dimensions(first, across[0]) if across else ()
    elif last.end == world_size and not last.sends:
        # The largest spans everything outside the tensor groups; smaller ones divide it in a way that sizes do not
        # tell: context, expert or shard groups.
        why = f"inferred: ranks {start} apart, all that share a place in their block"
        confidence = Confidence.MEDIUM if last.whole and last.stride > 1 else Confidence.LOW
        yield last, _RoleGuess(Role.DP, confidence, why)
        note = "inferred: a part of the data-parallel group, for context, experts or shards"
        yield from ((family, _RoleGuess(Role.OTHER, Confidence.LOW, note)) for family in level[:-1])


def _two_dimensions(first: _Family, across: _Family) -> list[tuple[_Family, _RoleGuess]]:
    """Data and pipeline groups, one of them outside the other."""
    if first.sends and across.collects:  # order tp-pp-dp
        pipeline, data = first, across
    elif first.sends or across.collects:
        return []  # context parallelism sends too, or both are collectives: no way to tell
    else:
        data, pipeline = first, across
    # Without operations seen, tensor-context-data has the same sizes and strides as tensor-data-pipeline.
    two = data.collects and pipeline.sends
    confidence = Confidence.MEDIUM if two and data.whole and pipeline.whole else Confidence.LOW
    stages = f"ranks {pipeline.stride} apart" + (", which only send and receive" if pipeline.sends else "")
    return [
        (data, _RoleGuess(Role.DP, confidence, f"inferred: ranks {data.stride} apart, {data.size} of them")),
        (pipeline, _RoleGuess(Role.PP, confidence, f"inferred: {pipeline.size} {stages}")),
    ]
