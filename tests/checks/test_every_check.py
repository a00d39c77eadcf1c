"""What holds for every check: no model makes it raise, and its findings are complete."""

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
from tests.checks.nic.test_nics import dgx
from tests.checks.pcie.test_pcie import h100
from tests.checks.wanted import assert_complete
from topodiag.checks import registry
from topodiag.checks.interface import BenchCheck, JobCheck, NodeCheck
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.model.bench import BenchDevice, Benchmark, BenchRow, BenchRun, Expectation, Fit, Hypothesis, Timing
from topodiag.model.connections import no_connections
from topodiag.model.finding import Confidence, Severity, Status
from topodiag.model.job import Communicator, FlightRecord, Job, Operations
from topodiag.model.layout import Role
from topodiag.model.node import ConfLine, Node, Process, Setting
from topodiag.model.provenance import Counter, Fact, Origin

CHECKS = [check for check_id in registry.ids() for check in registry.check_classes(check_id)]
OF_NODES = [check for check in CHECKS if issubclass(check, NodeCheck)]
OF_JOBS = [check for check in CHECKS if issubclass(check, JobCheck)]
GUESTS = (nodes.flat_vm, networks.efa_vm)
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
    node = dice.choice([*nodes.HEALTHY, *GUESTS, networks.ib_h100, networks.roce_h100])()
    node = replace(node, gpus=node.gpus[: dice.choice([0, 1, 4, 8])], nics=node.nics[: dice.choice([0, 1, 7, 8])])
    broken: Node = holed(_set(_busy(node), dice), dice)
    return broken


def _set(node: Node, dice: Random) -> Node:
    """The machine with settings and a conf file, ports that are down, and counters of ports that grew."""
    values = ("0", "1", "", "LOC", "mlx5_0", "^=,", "lo", "Ring", "9" * 40)
    names = ("NCCL_IB_HCA", "NCCL_IB_DISABLE", "NCCL_NET_GDR_LEVEL", "NCCL_ALGO", "NCCL_SOCKET_IFNAME", "NCCL_ODD")
    given_as = [(dice.choice(names), dice.choice(values)) for _ in range(3)]
    scopes = [dice.choice(["environment", "etc/nccl.conf"]) for _ in given_as]
    grown = [networks.counter(name, dice.randrange(9), dice.choice([None, 0, 70_000])) for name in networks.IB_COUNTERS]
    node = networks.with_counters(node, dice.choice([None, 0]), *grown)
    for at in range(dice.randrange(3)):
        node = networks.with_port(node, at, **networks.DOWN)
    return replace(
        node,
        system=nodes.read(dice.choice(["DGX H100", "p5.48xlarge", "a box"])),
        settings=(
            *node.settings,
            *(Setting(*pair, scope, Origin("settings.tree", 1)) for pair, scope in zip(given_as, scopes, strict=True)),
        ),
        conf_lines=tuple(ConfLine("etc/nccl.conf", 1, f"{name} ={value}", Origin("made")) for name, value in given_as),
    )


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
    node, peers = broken_node(seed), [replace(broken_node(seed + at), host=f"gpu-{at}") for at in range(1, seed % 4)]
    for check in OF_NODES:
        outcome = check().judge(node, peers)
        assert outcome.check == check.id
        for finding in outcome.findings:
            assert_complete(finding)
            assert finding.where.nodes == (node.host,)
            if check.id[:3] in ("NIC", "PCI", "ENV"):  # an absurd rate of another link is a cost beyond all of it
                assert (finding.cost.gbs_lost or 0) >= 0
                assert 0 <= (finding.cost.share or 0) <= 1
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


# --- what holds for every check of benchmarks: no run makes it raise, and a finding is complete


OF_BENCHES = [
    cls for id_name in registry.ids() for cls in registry.check_classes(id_name) if issubclass(cls, BenchCheck)
]

numbers = st.one_of(st.none(), st.sampled_from([0.0, -1.0, 1e-9, 1e300]), st.floats(0, 1000))
sizes = st.one_of(st.integers(-1, 1 << 70), st.sampled_from([8, 1 << 20, 1 << 24, 1 << 28, 1 << 30, 1 << 33]))
timings = st.builds(Timing, numbers, numbers, numbers, numbers)
rows = st.builds(BenchRow, sizes, out_of_place=timings, in_place=timings, cut=st.booleans())
runs = st.builds(
    BenchRun,
    st.sampled_from(["all_reduce", ""]),
    st.lists(rows, max_size=9).map(tuple),
    st.lists(st.builds(BenchDevice, st.integers(0, 3), st.sampled_from(["a", "b"]), st.just(0)), max_size=4).map(tuple),
    st.one_of(st.none(), st.integers(-1, 4)),
    parameters=st.dictionaries(st.sampled_from(["graph", "aggIters", "validation"]), st.sampled_from(["0", "1", "x"])),
    out_of_bounds=st.one_of(st.none(), st.integers(0, 3)),
    placement=st.sampled_from(["", "a", "b"]),
)
expectations = st.builds(
    Expectation,
    st.just("a machine"),
    st.floats(1, 900),
    st.floats(1, 900),
    st.floats(1, 900),
    st.sampled_from(Confidence),
    busbw=st.dictionaries(sizes, st.floats(0.001, 900), max_size=3),
    latency_us=numbers,
    terms=st.just((("NCCL runs", "Ring/Simple", "from 16777216 B"), ("NCCL runs", "", "odd"))),
)
benchmarks = st.builds(
    Benchmark,
    runs,
    st.builds(Fit, latency_us=numbers),
    st.one_of(st.none(), expectations),
    st.sampled_from(["normal", "low", "impossible", "unknown", ""]),
    hypotheses=st.sampled_from([(), (Hypothesis("a cause", 1.0, 0.9),)]),
)


def test_there_are_eight() -> None:
    shown = sorted(check.id for check in OF_BENCHES)
    assert shown == ["BEN001", "BEN002", "BEN003", "BEN004", "BEN005", "BEN006", "BEN007", "ENV001"]


@given(st.lists(benchmarks, max_size=3))
def test_no_benchmark_makes_a_check_fail_and_findings_are_complete(made: list[Benchmark]) -> None:
    outcomes = run(Subject.BENCH, made)
    assert len(outcomes) == len(OF_BENCHES) * len(made)
    for outcome in outcomes:
        assert not outcome.why.startswith("the check failed"), outcome.why
        assert outcome.findings if outcome.status is Status.FINDING else outcome.why
    for finding in fold(outcomes):
        assert finding.message
        assert finding.observed
        assert finding.expected
        assert finding.fix
        assert finding.cost.share is None or 0 <= finding.cost.share <= 1
