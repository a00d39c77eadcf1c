"""What NCCL's Inspector measured beside what NCCL's model expects of the job's machines: the price that `bench` has.

A job is no benchmark: other communicators share its wires, and kernels that compute share its GPUs. What is compared is
therefore the best of a kind in its best calls, with the part of the expectation that it has where all that share its
GPUs are busy; and only where the calls are alike. What lacks on a machine is lacking in each call, what others take
comes and goes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum

from topodiag.expect.expect import LOW, UNKNOWN, verdict_of
from topodiag.expect.machine import expected_of, lacking
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing
from topodiag.model.inspector import CallsOfOneSize, Inspection, InspectorCommunicator, MadeOf, ModelComparison
from topodiag.model.job import GivenSetting, Job
from topodiag.model.nccl_enums import BY_WEIGHT, SHARDED
from topodiag.model.node import Node
from topodiag.model.result import Case
from topodiag.words.hosts import short_name
from topodiag.words.units import spell_us

FEWEST_CALLS = 100
MOST_KINDS = 8
"""Kinds of communicators that are compared, those that take most time: each is a replay of NCCL's search."""
LEAST_US = 2000.0
"""Microseconds that a call should take at least: the blocks of a kernel wait for those of a computing one, which keeps
its multiprocessors as long as a large product of matrices takes."""
ALIKE = 1.4
"""Times by which the median of the calls may exceed the best of them. The sizes of a bucket differ by 1.19."""
IN_USE = 0.05
"""Share of a communicator's time from which another one on its GPUs may share its wires."""
OPERATIONS: Mapping[str, str] = {collective.value: collective.tested for collective in BY_WEIGHT}

LIMITS = ("Max CTAs", "CTA policy", "nvlsCTAs", "CGA cluster size", "Net name")
"""What an application gives to a communicator of its choice (ncclConfig_t), as NCCL prints it: with few CTAs it leaves
the multiprocessors to the computing, and is slow by intent."""

UNLOGGED = (
    "no log of NCCL shows these communicators, its version and settings: a limit on channels would look like a fault"
)
ANOTHER = "the captures lack GPUs that the job used: they are of other machines"
UNLIKE = "no communicator that holds all GPUs of its nodes, with single calls of all ranks, 100 or more of one size"
SHORT = f"no calls that should take {spell_us(LEAST_US)} or more: of shorter ones kernels that compute take much"

_Measured = tuple[InspectorCommunicator, CallsOfOneSize]


def beside_model(job: Job) -> Inspection | None:
    """The job's inspection with its kinds of communicators beside the model, or with why they are not."""
    inspection = job.inspection
    if inspection is None or not job.machines:
        return inspection
    logged = {
        communicator.comm_id
        for communicator in job.communicators
        if communicator.comm_id and communicator.channels.coll > 0
    }
    if not any(comm.hash in logged for comm in inspection.communicators):
        return replace(inspection, not_beside=UNLOGGED)
    limited = next((given for process in job.processes for given in process.settings.values() if _limits(given)), None)
    if limited is not None:
        why = f"the application limits a communicator: {limited.name} {limited.value}"
        return replace(inspection, not_beside=why)
    machines = {short_name(host): node for host, node in job.machines.items() if _is_of_job(host, node, job)}
    if not machines:
        return replace(inspection, not_beside=ANOTHER)
    kinds = _kinds(inspection, machines)
    if not kinds:
        return replace(inspection, not_beside=UNLIKE)
    comparisons, why = [], ""
    for several in kinds[:MOST_KINDS]:
        beside = _comparison(several, job, machines)
        if isinstance(beside, ModelComparison):
            comparisons.append(beside)
        else:
            why = why or beside
    return replace(inspection, beside_model=tuple(comparisons), not_beside=why)


def _is_of_job(host: str, node: Node, job: Job) -> bool:
    """Whether the capture can be of the machine that the job ran on: the GPUs that it used are there."""
    used = {rank.bus_id for rank in job.ranks if rank.host == host and rank.bus_id}
    there = {gpu.bus_id for gpu in node.gpus if gpu.bus_id}
    return not used or not there or used <= there


def _limits(given: GivenSetting) -> bool:
    return given.how == "application" and given.name in LIMITS


def _kinds(inspection: Inspection, machines: Mapping[str, Node]) -> list[list[_Measured]]:
    """Communicators with the greatest size of each collective, those of one kind together, by the time that they
    take."""
    pairs: dict[tuple[str, int, int], list[_Measured]] = defaultdict(list)
    for comm in inspection.communicators:
        if comm.made_of is not MadeOf.CALLS:
            continue  # a mean holds the waiting for whoever came last, another rank each time
        if len(comm.members) < max(comm.nranks, 2) or not _fills(comm, machines):
            continue
        sizes: dict[str, CallsOfOneSize] = {}
        for size in comm.sizes:
            timed = size.best_us > 0 and size.busbw_gbs > 0
            if timed and size.calls >= FEWEST_CALLS and size.collective in OPERATIONS:
                sizes[size.collective] = max(sizes.get(size.collective, size), size, key=lambda size: size.bytes)
        for collective, size in sizes.items():
            pairs[collective, comm.nranks, comm.nnodes].append((comm, size))
    return sorted(pairs.values(), key=lambda several: -fsum(size.calls * size.clean_us for _, size in several))


def _fills(comm: InspectorCommunicator, machines: Mapping[str, Node]) -> bool:
    """Whether it holds all GPUs of those of its nodes that were captured, and of as many on the others: else other
    communicators use the NICs and the links of the same nodes."""
    counts = Counter(short_name(member.host) for member in comm.members.values())
    gpus = {len(machines[host].gpus) for host in counts if host in machines}
    return len(gpus) == 1 and set(counts.values()) == gpus


def _bytes(size: CallsOfOneSize, nranks: int) -> int:
    # The Inspector tells the size of a sharded operation as that of one rank, nccl-tests as that of all.
    return size.bytes * (nranks if size.collective in SHARDED else 1)


def _best(measured: _Measured) -> float:
    """Bus bandwidth of the best calls, in GB/s."""
    _, size = measured
    return size.busbw_gbs * size.clean_us / size.best_us


def _comparison(several: Sequence[_Measured], job: Job, machines: Mapping[str, Node]) -> ModelComparison | str:
    """The fastest of a kind beside the model, or why there is none."""
    comm, size = best = max(several, key=_best)
    hosts = list(dict.fromkeys(short_name(member.host) for member in comm.members.values()))
    nodes = tuple(machines[host] for host in hosts if host in machines)
    why = next((short for node in nodes if (short := lacking(node))), "")
    if why:
        return why
    gbs, sharing = _best(best), _sharing(comm, job)
    expected = expected_of(_run(comm, size, gbs, job), Case(nodes, (job,)))
    if expected.expectation is None:
        return expected.why
    verdict = verdict_of(_run(comm, size, gbs * sharing, job), expected.expectation, expected.why)
    if verdict.expected_gbs is None or verdict.word == UNKNOWN:
        return verdict.why
    is_low = verdict.word == LOW and verdict.severe
    if is_low and (why := _not_of_machine(size, size.best_us * gbs / verdict.expected_gbs)):
        return why
    return ModelComparison(
        comm, len(several), size, gbs, verdict.expected_gbs, sharing, is_low,
        expected.expectation.machine, len(nodes), len(hosts),
    )  # fmt: skip


def _not_of_machine(size: CallsOfOneSize, expected_us: float) -> str:
    """Why slow calls say nothing of the machine; "" where they do."""
    if expected_us < LEAST_US:
        return SHORT
    if size.clean_us > ALIKE * size.best_us:
        took = f"{spell_us(size.best_us)} at best and {spell_us(size.clean_us)} as a rule"
        note = "others use the links or the GPUs at times, and what the machine allows is not seen"
        return f"{size.collective} of one size takes {took}: {note}"
    return ""


def _sharing(comm: InspectorCommunicator, job: Job) -> int:
    """How many communicators may use its wires at the same time: itself, the others that are busy on the process of
    its that has most of them, and one more where there are sends and receives, whose times are not judged."""
    inspection = job.inspection
    if inspection is None:
        return 1
    own = {(member.host, member.pid) for member in comm.members.values()}
    busy: Counter[tuple[str, int]] = Counter()
    for other in inspection.communicators:
        if other.hash != comm.hash and other.time_us >= IN_USE * comm.time_us:
            busy.update({(member.host, member.pid) for member in other.members.values()} & own)
    sends = inspection.transfers > 0 or any(bool((batch.conn == 1).any()) for batch in job.connections.batches())
    return 1 + max(busy.values(), default=0) + sends


def _run(comm: InspectorCommunicator, size: CallsOfOneSize, gbs: float, job: Job) -> BenchRun:
    """The calls as a run of a benchmark."""
    local: Counter[str] = Counter()
    devices = []
    for rank, member in sorted(comm.members.items()):
        devices.append(BenchDevice(rank, member.host, local[member.host], pid=max(member.pid, 0)))
        local[member.host] += 1
    return BenchRun(
        OPERATIONS[size.collective],
        (BenchRow(_bytes(size, comm.nranks), out_of_place=Timing(time_us=size.best_us, busbw_gbs=gbs)),),
        tuple(devices),
        comm.nranks,
        nccl=job.nccl_versions[0] if len(job.nccl_versions) == 1 else "",
        env={name: next(iter(values)) for name, values in job.settings().items() if len(values) == 1},
    )
