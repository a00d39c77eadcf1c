"""What holds for every check of the registry: no model makes it raise, and its findings are complete."""

from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import nodes
from tests.checks.wanted import assert_complete
from topodiag.checks import registry
from topodiag.checks.interface import Check, NodeCheck
from topodiag.model.finding import Status
from topodiag.model.node import Node
from topodiag.model.provenance import Counter, Fact, Origin
from topodiag.model.system import Process, Setting


def registered() -> list[type[Check]]:
    made = []
    for check_id in registry.ids():
        cls = registry.check_class(check_id)
        assert cls is not None
        made.append(cls)
    return made


CHECKS = registered()
OF_NODES = [check for check in CHECKS if issubclass(check, NodeCheck)]
ODD_VALUES = (None, -1, 0, 1, 2**63, "", "N/A", "NV", "NV999", "failed", "-5-", "9" * 50, 0.0, -2.5)


def holed(value: Any, dice: Random, depth: int = 0) -> Any:
    """The value with facts emptied or made absurd (of the same type), and collections shortened, at random."""
    if isinstance(value, Fact):
        return _holed_fact(value, dice)
    if isinstance(value, Counter):
        return replace(value, first=_holed_fact(value.first, dice), later=_holed_fact(value.first, dice))
    if isinstance(value, tuple) and depth < 4:
        kept = [holed(item, dice, depth + 1) for item in value]
        return tuple(kept[: dice.randrange(len(kept) + 1)] if dice.random() < 0.1 else kept)
    if isinstance(value, dict) and depth < 4:
        return {key: holed(item, dice, depth + 1) for key, item in value.items() if dice.random() > 0.05}
    if hasattr(value, "__dataclass_fields__") and depth < 4:
        return replace(value, **{f.name: holed(getattr(value, f.name), dice, depth + 1) for f in fields(value)})
    return value


def _holed_fact(fact: Fact[Any], dice: Random) -> Fact[Any]:
    if dice.random() > 0.12:
        return fact
    odd = dice.choice(ODD_VALUES)
    return Fact(odd) if type(odd) is type(fact.value) else Fact(why="a hole")


def broken_node(seed: int) -> Node:
    """A machine with holes. Drawn from a seed, not by Hypothesis: it would shrink thousands of choices for minutes."""
    dice = Random(seed)
    node = dice.choice([*nodes.HEALTHY, nodes.flat_vm])()
    node = replace(node, gpus=node.gpus[: dice.choice([0, 1, 4, 8])], nics=node.nics[: dice.choice([0, 1, 8])])
    broken: Node = holed(_busy(node), dice)
    return broken


def _busy(node: Node) -> Node:
    """The machine with what the healthy ones lack: counters, processes, settings."""
    read, many = nodes.read, (0, 3, 20_000)
    counters = {
        name: Counter(name, read(first), read(later), 5.0)
        for name, first, later in zip(("replay", "crc_flit", "recovery"), many, (0, 9, 1), strict=True)
    }
    gpus = tuple(
        replace(gpu, nvlinks=tuple(replace(link, counters=counters) for link in gpu.nvlinks)) for gpu in node.gpus
    )
    processes = tuple(
        Process(at, (at,), cpus_allowed=read("32-63"), nccl_env=read({"NCCL_DEBUG": "INFO"})) for at in range(3)
    )
    level = Setting("NCCL_NET_GDR_LEVEL", "PHB", "environment", Origin("env", 1))
    return replace(node, gpus=gpus, processes=processes, settings=(level,))


@pytest.mark.parametrize("check", OF_NODES, ids=lambda check: check.id)
def test_an_empty_node_has_no_finding(check: type[NodeCheck]) -> None:
    outcome = check().judge(Node("empty"), ())
    assert outcome.status is not Status.FINDING
    assert outcome.why


@given(seed=st.integers(0, 10**6))
def test_no_node_makes_a_check_raise_and_every_finding_is_complete(seed: int) -> None:
    node = broken_node(seed)
    for check in OF_NODES:
        outcome = check().judge(node, ())
        assert outcome.check == check.id
        for finding in outcome.findings:
            assert_complete(finding)
            assert finding.where.nodes == (node.host,)
        if outcome.status in (Status.UNKNOWN, Status.NOT_APPLICABLE):
            assert outcome.why
