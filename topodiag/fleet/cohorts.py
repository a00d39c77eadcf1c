"""Which nodes may be compared: those that are the same machine by their evidence, never by their names."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence

from topodiag.fleet.digest import Digest
from topodiag.words.units import grouped

Traits = tuple[tuple[str, str], ...]
_PRODUCT, _GPU, _ROLE = "product", "GPU", "role"


def parted(nodes: Sequence[Digest]) -> list[tuple[Traits, list[int]]]:
    """The cohorts: what their nodes have in common, and the numbers of their nodes; the largest first. A node whose
    product or whose GPUs do not show (the driver is down) belongs to the one cohort that fits what it does show."""
    sizes = Tally(node.traits for node in nodes)
    home = {traits: _home(traits, sizes) for traits in sizes}
    members = grouped((home[node.traits], number) for number, node in enumerate(nodes))
    return sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))


def _home(traits: Traits, sizes: Mapping[Traits, int]) -> Traits:
    """The cohort of nodes with these traits: their own, or the only larger one that has what they lack."""
    mine = dict(traits)
    lacking = {name for name in (_PRODUCT, _GPU) if not mine[name]}
    if not lacking or lacking == {_PRODUCT, _GPU}:
        return traits
    lacking |= {_ROLE} if _GPU in lacking else set()
    fitting = [
        other
        for other in sizes
        if all(value == mine[name] for name, value in other if name not in lacking)
        and all(value for name, value in other if name in (_PRODUCT, _GPU))
    ]
    return fitting[0] if len(fitting) == 1 and sizes[fitting[0]] > sizes[traits] else traits


def name_of(traits: Traits) -> str:
    """`DGX H100, NVIDIA H100 80GB HBM3`; what is not known is left out, and `kind unknown` stands for nothing known."""
    by_name = dict(traits)
    words = [word for word in (by_name[_PRODUCT], by_name[_GPU]) if word]
    words += ["no GPU shown" if words else "kind unknown"] if not by_name[_GPU] else []
    words += [f"captured in {by_name['captured in']}"] if by_name["captured in"] else []
    return ", ".join(words)
