"""What holds for every check of the registry: no model makes it raise, and its findings are complete."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs, networks, nodes
from tests.checks.nic.test_count import dgx
from tests.checks.pcie.test_hops import h100
from tests.checks.wanted import assert_complete
from topodiag.checks import registry
from topodiag.checks.interface import JobCheck, NodeCheck
from topodiag.model.connections import no_connections
from topodiag.model.finding import Confidence, Severity, Status
from topodiag.model.job import Communicator, FlightRecord, Job, Operations
from topodiag.model.layout import Role
from topodiag.model.node import Node
from topodiag.model.provenance import Counter, Fact, Origin
from topodiag.model.system import Process, Setting

CHECKS = [check for check_id in registry.ids() for check in registry.check_classes(check_id)]
OF_NODES = [check for check in CHECKS if issubclass(check, NodeCheck)]
OF_JOBS = [check for check in CHECKS if issubclass(check, JobCheck)]
ODD_VALUES = (None, -1, 0, 1, 2**63, "", "N/A", "NV", "NV999", "failed", "-5-", "9" * 50, 0.0, -2.5)


def holed(value: Any, dice: Random, depth: int = 0, *, words: bool = False) -> Any:
    """The value with parts left out, unknown or absurd (of the same type), at random; `words` and numbers that are no
    facts as well. Arrays stay as long as their fellows, and rows of a fixed length too."""
    inner = partial(holed, dice=dice, depth=depth + 1, words=words)
    if isinstance(value, Fact):
        return _holed_fact(value, dice)
    if isinstance(value, Counter):
        return replace(value, first=_holed_fact(value.first, dice), later=_holed_fact(value.first, dice))
    if isinstance(value, tuple) and depth < 5:
        kept = list(map(inner, value))
        cut = dice.random() < 0.1 and (not words or all(map(is_dataclass, kept)))
        return tuple(kept[: dice.randrange(len(kept) + 1)] if cut else kept)
    if isinstance(value, Mapping) and depth < 5:
        return {key: inner(item) for key, item in value.items() if dice.random() > 0.05}
    if isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size and dice.random() < 0.1:
        ndarray = value.copy()
        ndarray[dice.randrange(len(ndarray))] = -1
        return ndarray
    if is_dataclass(value) and not isinstance(value, type) and depth < 5:
        return replace(value, **{f.name: inner(getattr(value, f.name)) for f in fields(value)})
    if words and type(value) in {str, int} and dice.random() < 0.02:
        return "?" if isinstance(value, str) else -1
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


GUESTS = (nodes.flat_vm, networks.efa_vm)
SEEN = {"NVL001", "NVL002", "NVL004", "NIC001", "NIC002", "NIC004", "NUM001", "GDR001", "GDR002"}
"""Checks whose evidence all healthy machines have, but for where devices are in a guest: of NUM001 and GDR002."""


@pytest.mark.parametrize("build", [*nodes.HEALTHY, *GUESTS, networks.ib_h100, networks.roce_h100, h100, dgx])
def test_a_healthy_machine_has_no_finding(build: Callable[[], Node]) -> None:
    outcomes = [(check.id, check().judge(build(), ()).status) for check in OF_NODES]
    found = {check for check, status in outcomes if status is Status.FINDING}
    unknown = {check for check, status in outcomes if status is Status.UNKNOWN}
    assert found == ({"TOP003"} if build is nodes.flat_vm else set())
    assert unknown & SEEN == ({"NUM001", "GDR002"} if build in GUESTS else set())


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


# --- checks of jobs: an empty one is no fault, nor is a healthy one ------------------------------------------------

KINDS = (
    "ib completion", "ib async", "port", "peer closed", "connect", "timeout", "cuda", "memory", "bootstrap", "version",
    "duplicate gpu", "topology", "plugin", "mismatch", "watchdog", "unwind", "other",
)  # fmt: skip


def test_checks_of_jobs_are_those_of_the_modules_that_are_named_for_them() -> None:
    job = registry.Subject.JOB
    assert [registry.check_of(job, text) for text in registry.ids_of(job)] == OF_JOBS


def busy(dice: Random) -> Job:
    """A job with groups, operations, dumps and errors."""
    groups = [
        Communicator(1 + at, 4, np.array(dice.sample(range(16), 4), np.int64), role=dice.choice(list(Role)),
                     role_sure=dice.choice(list(Confidence)), parent=0, color=at, hosts=("n0", "n1"),
                     started=np.ones(4, bool), completed=np.array([True, True, dice.random() > 0.5, True]),
                     rings={0: (0, 2, 1, 3)},
                     operations={rank: Operations(dice.randrange(5), dice.randrange(5), tail=(
                         (rank, "AllReduce", dice.randrange(3), 7, 0, 0),)) for rank in range(3)})
        for at in range(3)
    ]  # fmt: skip
    events = [
        jobs.event(kind, "a < b [3] peer 10.0.0.1<5> {", f"n{dice.randrange(3)}", rank=dice.randrange(-1, 40),
                   ts=dice.choice([None, 0.0, 1e9, float("nan"), 1e300]), secondary=dice.random() > 0.6,
                   level=dice.choice(["WARN", "UNWIND", "APP"]))
        for kind in KINDS if dice.random() > 0.5
    ]  # fmt: skip
    flight = tuple(FlightRecord(rank, (("0", dice.randrange(4), "all_reduce", "started"),), {"0": (0, 1, 2, 9)})
                   for rank in range(3))  # fmt: skip
    values = {"NCCL_P2P_DISABLE": "1", "NCCL_MAX_NCHANNELS": "9" * 40, "NCCL_NET_GDR_LEVEL": "", "NCCL_IB_HCA": '"'}
    return jobs.job(communicators=groups, events=events, flight=flight, settings=values)


def broken_job(seed: int) -> Job:
    dice = Random(seed)
    job = busy(dice)
    connections = job.connections if dice.random() > 0.2 else no_connections()
    run: Job = holed(replace(job, connections=no_connections()), dice, words=True)
    return replace(run, connections=connections)


@pytest.mark.parametrize("check", OF_JOBS, ids=lambda check: check.id)
def test_an_empty_job_has_no_finding(check: type[JobCheck]) -> None:
    outcome = check().judge(Job("empty", -1, (), (), (), no_connections(), ()))
    assert outcome.status is not Status.FINDING
    assert outcome.why or outcome.status is Status.CLEAN


@pytest.mark.parametrize("check", OF_JOBS, ids=lambda check: check.id)
def test_a_healthy_job_has_no_finding(check: type[JobCheck]) -> None:
    assert check().judge(jobs.job()).status is not Status.FINDING


@given(seed=st.integers(0, 10**6))
def test_no_job_makes_a_check_raise_and_every_finding_is_complete(seed: int) -> None:
    job = broken_job(seed)
    for check in OF_JOBS:
        outcome = check().judge(job)
        assert outcome.check == check.id
        findings: Sequence[Any] = outcome.findings
        for finding in findings:
            assert_complete(finding)
        if outcome.status in (Status.UNKNOWN, Status.NOT_APPLICABLE):
            assert outcome.why


# --- checks of jobs on evidence with holes: no exception, and a part of a healthy job makes no fault ----------

WHOLE = jobs.job()
HOLES = {
    "whole": WHOLE,
    "one node": jobs.job(1),
    "one rank": jobs.job(1, 1),
    "no connections": replace(WHOLE, connections=no_connections()),
    "no communicators": replace(WHOLE, communicators=(), connections=no_connections()),
    "communicators lost": replace(WHOLE, communicators=()),
    "half of the processes silent": jobs.job(
        process=lambda rank, host, process: replace(process, hcas=(), network="", bootstrap="") if host else process
    ),
    "no systems": jobs.job(systems=lambda host, system: None),
    "systems of one node": jobs.job(systems=lambda host, system: None if host else system),
    "no ranks": replace(WHOLE, ranks=()),
    "no processes": replace(WHOLE, processes=(), ranks=()),
    "nothing": Job("job", -1, (), (), (), no_connections(), ()),
    "one rank per node": jobs.job(4, 1, nics=1),
    "no NVLink": jobs.job(systems=lambda host, system: jobs.system(host, nvlink_gbs=0)),
}
OF_LINKS = [check for check in OF_JOBS if check.id[:3] in {"NET", "NIC", "GDR", "P2P", "NUM", "TOP"}]


@pytest.mark.parametrize("name", HOLES)
@pytest.mark.parametrize("cls", OF_LINKS, ids=lambda cls: cls.__name__)
def test_a_part_of_a_healthy_job_makes_no_fault(cls: type[JobCheck], name: str) -> None:
    outcome = cls().judge(HOLES[name])
    assert outcome.check == cls.id
    assert all(finding.severity is Severity.INFO for finding in outcome.findings), outcome.findings
