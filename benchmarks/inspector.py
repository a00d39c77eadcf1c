"""NCCL's Inspector over a month: a synthetic job of 512 ranks, with what is wrong with it known.

python -m benchmarks.inspector [--seeds N] [--faulty N] [--records N]

The job runs with TP 8, CP 8 and DP 8 on 64 nodes. Each rank has a clock: it computes, and enters the collectives of its
groups; a collective begins when its last rank arrives, so that lateness travels from group to group as in life.
`--seeds` counts healthy jobs, of which none may have a finding, and `--faulty` those with one late rank, with one slow
NIC and with one hour of congestion, each of which must be named (`--only` one of the four). `--records` writes files of
that many records and reads them: MB/s. `--memory` reads that many from lines made on the way: how memory grows.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from topodiag.checks.job.slow.inspector import SlowHoursOfJob
from topodiag.checks.job.slow.late_ranks import LateArriver
from topodiag.checks.job.slow.slow_phase import SlowPartOfJob
from topodiag.evidence.live.inspector import RECORDS, InspectorReader
from topodiag.model.connections import no_connections
from topodiag.model.finding import Finding
from topodiag.model.job import Job

GPUS = 8
FIRST_HOUR = 485_000  # April 2025
CHECKS = (LateArriver(), SlowPartOfJob(), SlowHoursOfJob())

Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fault:
    """What is wrong: `late_us` by which a rank comes late to each step, `slow` times that operations over the NIC of a
    rank take, the hour of congestion and the times that operations between nodes take in it."""

    late_rank: int = -1
    late_us: float = 0.0
    nic_rank: int = -1
    slow: float = 1.0
    hour: int = -1
    congestion: float = 1.0


@dataclass(frozen=True)
class Shape:
    """`width` ranks in each CP and DP group; GPUS in each TP group, which is a node."""

    width: int = 8
    hours: int = 30
    steps_an_hour: int = 12

    @property
    def ranks(self) -> int:
        return GPUS * self.width**2

    @property
    def steps(self) -> int:
        return self.hours * self.steps_an_hour


@dataclass(frozen=True)
class Group:
    name: str
    ranks: npt.NDArray[np.int64]
    collective: str
    bytes: int
    usual_us: float
    nodes: int
    factor: float


def groups_of(shape: Shape) -> list[list[Group]]:
    """The kinds of groups in the order in which a step enters them."""
    numbers = np.arange(shape.ranks).reshape(shape.width, shape.width, GPUS)
    kinds = [
        [Group(f"tp_{i}", g, "AllReduce", 32 << 20, 180.0, 1, 1.75) for i, g in enumerate(numbers.reshape(-1, GPUS))],
        [
            Group(f"cp_{i}", g, "AllGather", 64 << 20, 1300.0, shape.width, (shape.width - 1) / shape.width)
            for i, g in enumerate(numbers.transpose(0, 2, 1).reshape(-1, shape.width))
        ],
        [
            Group(f"dp_{i}", g, "ReduceScatter", 256 << 20, 5200.0, shape.width, (shape.width - 1) / shape.width)
            for i, g in enumerate(numbers.transpose(1, 2, 0).reshape(-1, shape.width))
        ],
        [Group("world", numbers.reshape(-1), "AllReduce", 16 << 10, 90.0, shape.width**2, 2.0)],
    ]
    return kinds


def simulated(shape: Shape, fault: Fault, seed: int) -> Iterator[tuple[Group, Times]]:
    """Each group with the kernel times of its members in microseconds, one row a step."""
    random = np.random.default_rng(seed)
    kinds = groups_of(shape)
    made = [np.zeros((shape.steps, len(kind), len(kind[0].ranks))) for kind in kinds]
    clock = np.zeros(shape.ranks)
    for step in range(shape.steps):
        clock += 20_000 + random.exponential(60.0, shape.ranks)
        if random.random() < 0.01:  # a collection of garbage, somewhere
            clock[random.integers(shape.ranks)] += 20_000
        if fault.late_rank >= 0:
            clock[fault.late_rank] += fault.late_us
        for number, kind in enumerate(kinds):
            members = np.stack([group.ranks for group in kind])
            took = kind[0].usual_us * random.lognormal(0.0, 0.05, len(kind))
            if kind[0].nodes > 1:
                took *= np.where((members == fault.nic_rank).any(1), fault.slow if number < 3 else 1.0, 1.0)
                took *= fault.congestion if step // shape.steps_an_hour == fault.hour and number < 3 else 1.0
            arrived = clock[members] + random.exponential(8.0, members.shape)
            end = arrived.max(1) + took
            made[number][step] = end[:, None] - arrived
            clock[members] = end[:, None]
    for number, kind in enumerate(kinds):
        for at, group in enumerate(kind):
            yield group, made[number][:, at, :]


def lines_of(group: Group, times: Times, member: int, shape: Shape) -> Iterator[str]:
    """What the Inspector of one rank writes of one group."""
    rank = int(group.ranks[member])
    head = (
        f'{{"header":{{"id":"{hash_of(group):#x}","comm_name":"{group.name}","rank":{member},"n_ranks":'
        f'{len(group.ranks)},"nnodes":{group.nodes}}},"metadata":{{"inspector_output_format_version":"v4.0","git_rev":'
        f'"9019a1912","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":'
    )
    shares = len(group.ranks) if group.collective in ("AllGather", "ReduceScatter") else 1
    where = f'"hostname":"node{rank // GPUS:03d}","pid":{4000 + rank % GPUS}'
    tail = f',{where}}},"coll_perf":{{"coll":"{group.collective}",'
    for step, us in enumerate(times[:, member].tolist()):
        stamp = (FIRST_HOUR * 3600 + 3600 * step // shape.steps_an_hour) * 1_000_000
        rate = group.bytes / max(us, 1) / 1e3 * shares
        yield (
            f'{head}{stamp}{tail}"coll_sn":{step},"coll_msg_size_bytes":{group.bytes},"coll_exec_time_us":{us:.0f},'
            f'"coll_timing_source":"kernel_gpu","coll_algobw_gbs":{rate:.6f},"coll_busbw_gbs":'
            f"{rate * group.factor:.6f}}}}}\n"
        )


def hash_of(group: Group) -> int:
    return (0x1F00 << 32) + sum(ord(letter) << (at * 4) for at, letter in enumerate(group.name))


def take(reader: InspectorReader, first: bytes, source: str, times: Times, shape: Shape) -> None:
    """The calls of one rank, as the reader has them of lines, without the lines but the `first`."""
    record = RECORDS.decode(first)
    assert record.coll_perf is not None
    steps = np.arange(shape.steps)
    stamps = (FIRST_HOUR * 3600 + 3600 * steps // shape.steps_an_hour) * 1_000_000
    reader.meet(record, source, 1, first)
    calls = np.stack([steps, np.full_like(steps, record.coll_perf.coll_msg_size_bytes), times, stamps], axis=1)
    reader.take(record.header, record.coll_perf, calls.astype(np.float64))


def read(shape: Shape, fault: Fault, seed: int) -> Job:
    """The job as its records show it."""
    reader = InspectorReader()
    for group, times in simulated(shape, fault, seed):
        for member in range(len(group.ranks)):
            first = next(lines_of(group, times, member, shape)).encode()
            take(reader, first, f"{group.name}-{member}.log", times[:, member], shape)
    return Job("Inspector", shape.ranks, (), (), (), no_connections(), (), inspection=reader.found())


def findings(job: Job) -> list[Finding]:
    return [finding for check in CHECKS for finding in check.judge(job).findings]


def faults(shape: Shape, seed: int) -> dict[str, Fault]:
    """One of each, at a place of its own for each seed."""
    random = np.random.default_rng(seed + 1_000_000)
    where = int(random.integers(shape.ranks))
    return {
        "healthy": Fault(),
        "late rank": Fault(late_rank=where, late_us=2500.0),
        "slow NIC": Fault(nic_rank=where, slow=2.0),
        "hour of congestion": Fault(hour=int(random.integers(1, shape.hours - 1)), congestion=1.6),
    }


def is_named(name: str, fault: Fault, found: Sequence[Finding], shape: Shape) -> bool:
    """Whether the first cause that is told is the fault, and nothing is told of a healthy job."""
    ids = [finding.id for finding in found]
    if name == "healthy":
        return not found
    if name == "late rank":
        return ids == ["JOB008"] and found[0].where.ranks == (fault.late_rank,)
    if name == "slow NIC":
        own = [finding for finding in found if finding.id == "JOB011"]
        return len(own) == 1 and own[0].where.ranks == (fault.nic_rank,)
    from datetime import UTC, datetime  # noqa: PLC0415

    start = datetime.fromtimestamp((FIRST_HOUR + fault.hour) * 3600, UTC)
    return ids == ["JOB012"] and found[0].message.startswith(f"from {start:%Y-%m-%d %H:%M}")


def score(shape: Shape, healthy: range, faulty: range, only: str) -> None:
    right: Counter[str] = Counter()
    names = [name for name in faults(shape, 0) if only in ("", name)]
    for name in names:
        seeds = healthy if name == "healthy" else faulty
        for seed in seeds:
            fault = faults(shape, seed)[name]
            found = findings(read(shape, fault, seed))
            right[name] += is_named(name, fault, found, shape)
            if not is_named(name, fault, found, shape):
                print(f"  seed {seed}, {name}, {fault}: {[(each.id, each.message) for each in found]}")
        print(f"{name}: {right[name]} of {len(seeds)} right", flush=True)


def speed(records: int) -> None:
    """Files of a job of 512 ranks with this many records, written, read, measured."""
    shape = replace(Shape(), hours=720)
    each_step = shape.ranks * 4
    shape = replace(shape, steps_an_hour=max(1, records // each_step // shape.hours))
    fault = Fault(late_rank=37, late_us=2500.0)
    reader = InspectorReader()
    size = spent = 0.0
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "one.log")
        for group, times in simulated(shape, fault, 1):
            for member in range(len(group.ranks)):
                with open(place, "w", encoding="ascii") as stream:
                    stream.writelines(lines_of(group, times, member, shape))
                size += os.path.getsize(place)
                start = time.process_time()
                with open(place, "rb") as stream:
                    reader.read(iter(functools.partial(stream.read, 1 << 20), b""), place)
                spent += time.process_time() - start
    start = time.process_time()
    job = Job("Inspector", shape.ranks, (), (), (), no_connections(), (), inspection=reader.found())
    found = findings(job)
    judged = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{reader.found().records} records, {size / 1e6:.0f} MB in {spent:.1f} s of CPU: {size / 1e6 / spent:.0f} MB/s"
    )
    print(f"judged in {judged:.1f} s; most memory, the simulation included: {memory:.0f} MB")
    for each in found:
        print(f"  {each.id} {each.message}")


def memory(records: int) -> None:
    """As many records as a month of a large job has, as lines that are read like files, without the files: the lines of
    one rank stand for those of all ranks of its kind of groups, with their own names."""
    shape = Shape(hours=720)
    steps = max(1, records // (shape.ranks * 4))
    shape = replace(shape, steps_an_hour=max(1, -(-steps // shape.hours)))
    random = np.random.default_rng(1)
    reader = InspectorReader()
    size = spent = 0.0
    read, told = 0, 1_000_000
    for kind in groups_of(shape):
        took = kind[0].usual_us * random.lognormal(0.0, 0.05, (steps, 1))
        lines = "".join(lines_of(kind[0], took, 0, shape)).encode()
        names = _names_of(kind[0], 0)
        for group in kind:
            for member in range(len(group.ranks)):
                own = lines
                for old, new in zip(names, _names_of(group, member), strict=True):
                    own = own.replace(old, new)
                start = time.process_time()
                blocks = (own[at : at + (1 << 20)] for at in range(0, len(own), 1 << 20))
                read += reader.read(blocks, f"{group.name}-{member}.log")
                spent += time.process_time() - start
                size += len(own)
                if read >= told:
                    _told(read, size, spent)
                    told *= 10
    start = time.process_time()
    found = reader.found()
    calls = sum(each.calls for each in found.communicators)
    _told(read, size, spent)
    print(f"{calls} calls, one in {found.one_in} kept, summed up in {time.process_time() - start:.1f} s of CPU")


def _names_of(group: Group, member: int) -> tuple[bytes, bytes]:
    """What the lines of a rank have of their own."""
    rank = int(group.ranks[member])
    return (
        f'"id":"{hash_of(group):#x}","comm_name":"{group.name}","rank":{member},'.encode(),
        f'"hostname":"node{rank // GPUS:03d}","pid":{4000 + rank % GPUS}}}'.encode(),
    )


def _told(read: int, size: float, spent: float) -> None:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{read} records, {size / 1e9:.1f} GB, {size / 1e6 / spent:.0f} MB/s of CPU: {most:.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--faulty", type=int, default=50)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="healthy, late rank, slow NIC or hour of congestion")
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--width", type=int, default=8, help="ranks of a CP and a DP group")
    chosen = parser.parse_args()
    if chosen.memory:
        memory(chosen.memory)
    healthy, faulty = (range(chosen.first, chosen.first + count) for count in (chosen.seeds, chosen.faulty))
    score(replace(Shape(), width=chosen.width), healthy, faulty, chosen.only)
    if chosen.records:
        speed(chosen.records)


if __name__ == "__main__":
    main()
