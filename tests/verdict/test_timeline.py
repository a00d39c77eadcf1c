"""Who is who, and what happened when: names of machines, one axis, clocks' zones and skews."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.checks import jobs
from tests.checks.nodes import read
from tests.checks.wanted import matches
from tests.tables import examples
from tests.verdict.machines import NOON, bare, capture, inited, kernel_log, on, xid
from topodiag.model.bench import BenchDevice, BenchRun
from topodiag.model.cluster import RankHosts
from topodiag.model.devices import NetDev
from topodiag.model.job import FlightRecord, Job, Process
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.ras import RasAnswer, RasProcess
from topodiag.model.result import Case, Clock, Identity, Tie, Timeline
from topodiag.verdict.identity import identify
from topodiag.verdict.timeline import MOST_MOMENTS, timeline


def made(**parts: object) -> Timeline:
    return timeline(Case(**parts), Identity())  # type: ignore[arg-type]


def clock(line: Timeline, source: str, host: str) -> Clock:
    (times,) = [times for times in line.clocks if (times.source, times.host) == (source, host)]
    return times


def failing(ahead_s: float = 0.0) -> Timeline:
    """n0 fails a minute before n1; the clock of n1 is ahead."""
    events = [
        jobs.event("ib async", "port error", "n0", ts=NOON + 60, rank=0),
        jobs.event("ib completion", "got completion with error 12", "n1", ts=NOON + 120 + ahead_s, rank=8),
    ]
    return made(jobs=(jobs.job(events=events, world=inited(NOON, NOON + ahead_s)),))


@pytest.mark.parametrize("ahead_s", [0.0, 600.0, -600.0])
def test_a_clock_that_is_ten_minutes_off_changes_no_order(ahead_s: float) -> None:
    line = failing(ahead_s)
    shown = [moment.what for moment in line.moments if moment.rank >= 0]
    assert shown == ["port error", "got completion with error 12"]
    first, second = [moment.time or 0.0 for moment in line.moments if moment.rank >= 0]
    assert second - first == 60


def test_the_skew_of_a_clock_is_said_with_its_uncertainty_and_what_it_rests_on() -> None:
    times = clock(failing(600.0), "NCCL log", "n1")
    assert (times.skew_s, times.within_s) == (600.0, 2.0)
    assert "Init COMPLETE" in times.how


def test_a_wait_counts_from_its_start_not_from_when_the_watchdog_printed_it() -> None:
    late = {"ran_ms": "600000", "seq": "7", "op": "ALLREDUCE"}
    early = {"ran_ms": "630000", "seq": "7", "op": "ALLREDUCE"}
    events = [
        jobs.event("watchdog", "Watchdog caught", "n0", ts=NOON + 700, rank=0, details=late),
        jobs.event("watchdog", "Watchdog caught", "n1", ts=NOON + 710, rank=8, details=early),
    ]
    line = made(jobs=(jobs.job(events=events),))
    assert [(moment.rank, moment.time) for moment in line.moments] == [(8, NOON + 80), (0, NOON + 100)]
    assert line.moments[0].what == "waits in ALLREDUCE number 7, until the watchdog gives up after 630 s"


def test_a_zone_comes_from_one_event_told_by_two_clocks_rounded_to_a_quarter_of_an_hour() -> None:
    node = capture("n0", events=(xid(359_000.0),))  # booted 100 h before 2025-10-09T09:00:00Z
    boot = 1_760_000_400.0 - 360_000.0
    event = jobs.event("cuda", "unspecified launch failure", "n0", ts=boot + 359_000 + 5.5 * 3600 + 2, rank=0)
    line = made(nodes=(node,), jobs=(jobs.job(events=[event]),))
    assert clock(line, "NCCL log", "n0").zone == "+05:30"
    assert [moment.what[:10] for moment in line.moments if moment.time and moment.time > boot + 1] == [
        "NVRM: Xid ", "unspecifie", "the node i",
    ]  # fmt: skip


def test_two_events_that_are_not_whole_quarters_apart_show_no_zone() -> None:
    node = capture("n0", events=(xid(359_000.0),))
    event = jobs.event("cuda", "launch failure", "n0", ts=1_760_000_400.0 - 1000 + 700, rank=0)
    assert clock(made(nodes=(node,), jobs=(jobs.job(events=[event]),)), "NCCL log", "n0").zone == ""


def test_seconds_since_boot_are_counted_from_the_boot_that_the_capture_shows() -> None:
    line = made(nodes=(capture("n0", events=(xid(359_940.0),)),))
    (lost,) = [moment for moment in line.moments if moment.what.startswith("NVRM")]
    assert lost.time == 1_760_000_400.0 - 60.0
    assert lost.stamp == "359940 s after boot"


def test_an_event_without_a_time_stands_last_and_keeps_what_its_source_wrote() -> None:
    line = made(nodes=(kernel_log("n0", xid(12.5)), capture("n1")))
    assert (line.moments[-1].time, line.moments[-1].stamp) == (None, "12.5 s after boot")


def test_a_time_with_its_zone_needs_none_guessed() -> None:
    event = jobs.event("other", "x", "n0", ts=NOON, origin=Origin("a", 1, "2025-10-09T08:53:20.000000Z n0:1:1 x"))
    assert clock(made(jobs=(jobs.job(events=[event]),)), "NCCL log", "n0").zone == "+00:00"


def test_what_nothing_ties_is_said_so() -> None:
    event = jobs.event("other", "x", "n0", ts=NOON)
    times = clock(made(jobs=(jobs.job(events=[event]),)), "NCCL log", "n0")
    assert (times.zone, times.skew_s, times.how) == ("", None, "no event links it to other clocks")


def test_the_flight_recorder_tells_when_a_rank_enqueued_what_did_not_complete() -> None:
    entries = (("0", 6, "all_reduce", "completed"), ("0", 7, "all_reduce", "started"))
    record = FlightRecord(3, entries, descriptions={"0": "default_pg"}, created_s=(NOON, NOON + 5))
    line = made(jobs=(replace(jobs.job(), flight=(record,)),))
    (moment,) = line.moments
    assert (moment.rank, moment.host, moment.time) == (3, "n0", NOON + 5)
    assert moment.what == "enqueues all_reduce number 7 of default_pg, which does not complete"


def test_bursts_are_one_moment_with_their_number() -> None:
    events = tuple(xid(359_000.0 + at, 13, text="NVRM: Xid 13") for at in (0, 1, 2, 3, 4, 900))
    line = made(nodes=(capture("n0", events=events),))
    assert [moment.count for moment in line.moments if moment.what == "NVRM: Xid 13"] == [5, 1]


def test_ranks_of_a_host_that_say_the_same_are_one_moment_and_two_gpus_are_two() -> None:
    events = [
        jobs.event("ib completion", f"completion from peer 10.0.0.{at}<5{at}>", ts=NOON, rank=at) for at in range(8)
    ]
    line = made(jobs=(jobs.job(events=events),), nodes=(kernel_log("n0", xid(NOON), xid(NOON, bus="0000:20:00.0")),))
    assert sorted(moment.count for moment in line.moments) == [1, 1, 8]


def test_the_moments_kept_are_bounded_and_hold_each_kind_once() -> None:
    events = [jobs.event("other", "noise", ts=NOON + 200 * at, rank=0) for at in range(MOST_MOMENTS + 500)]
    events.append(jobs.event("cuda", "the fault", "n1", ts=NOON + 1e6, rank=9))
    line = made(jobs=(jobs.job(events=events),))
    assert len(line.moments) == MOST_MOMENTS
    assert "the fault" in {moment.what for moment in line.moments}


@pytest.mark.parametrize("ts", [float("nan"), float("inf"), -5.0, 1e18])
def test_a_time_that_no_calendar_has_is_none(ts: float) -> None:
    line = made(jobs=(jobs.job(events=[jobs.event("other", "x", ts=ts)]),), nodes=(capture("n0", time=read("never")),))
    assert [moment.time for moment in line.moments] == [None]


def test_the_order_of_the_evidence_changes_no_timeline() -> None:
    events = [jobs.event("other", f"line {at % 3}", ts=NOON + at % 4, rank=at) for at in range(12)]
    one, other = (jobs.job(events=events) for events in (events, events[::-1]))
    assert [(m.time, m.what, m.count) for m in made(jobs=(one,)).moments] == [
        (m.time, m.what, m.count) for m in made(jobs=(other,)).moments
    ]


def who(*evidence: Node | Job | BenchRun | RankHosts | Tie) -> Identity:
    """The identities that these parts of one case give."""
    fields = {"nodes": Node, "jobs": Job, "runs": BenchRun, "layouts": RankHosts, "ties": Tie}
    return identify(Case(**{name: tuple(part for part in evidence if isinstance(part, kind))
                            for name, kind in fields.items()}))  # type: ignore[arg-type]  # fmt: skip


def at(address: str) -> Job:
    """A job of two containers, the first with this address."""

    def process(rank: int, host: str, process: Process) -> Process:
        return replace(process, bootstrap=f"eth0:{address if rank < 8 else '10.9.9.9'}<0>")

    return on(jobs.job(process=process, systems=lambda *_: None), "3f2a77c1", "77aa01bc")  # type: ignore[arg-type]


def layout(*hosts: str) -> RankHosts:
    return RankHosts("hostfile", hosts, np.arange(len(hosts)), np.full(len(hosts), -1))


def with_gids(name: str, *gids: str) -> Node:
    """A capture whose first port has these GIDs."""
    node = capture(name)
    port = replace(node.nics[0].ports[0], gids=read(gids))
    return replace(node, nics=(replace(node.nics[0], ports=(port,)), *node.nics[1:]))


def with_addresses(node: Node, **interfaces: str) -> Node:
    """The node with interfaces that have these addresses, `eth0="10.0.0.5 fd00::5"`."""
    net_devs = (NetDev(name, addresses=read(tuple(told.split()))) for name, told in interfaces.items())
    return replace(node, netdevs=tuple(net_devs))


def tool(name: str, **interfaces: str) -> Node:
    """`ip addr` of a host, and nothing else of it."""
    return with_addresses(Node(name), **interfaces)


def bridged() -> Job:
    """A job of two containers whose first meets over a bridge of its host."""

    def process(rank: int, _: str, process: Process) -> Process:
        bridge = "br-5f00aa00aa01:172.18.0.1<0>" if rank < 8 else "eth0:10.9.9.9<0>"
        return replace(process, bootstrap=bridge, addresses=("172.18.0.1",) if rank < 8 else ())

    return on(jobs.job(process=process, systems=lambda *_: None), "c1", "c2")  # type: ignore[arg-type]


def translated() -> Job:
    """A job of two containers behind one address."""
    return on(jobs.job(process=lambda _, __, process: replace(process, bootstrap="eth0:10.5.0.1<0>")), "c1", "c2")


def printing(*guids: str) -> Job:
    """A job of two hosts whose system dumps print these GUIDs of their first adapter."""

    def systems(number: int, system: object) -> object:
        nets = {name: replace(each, guid=guids[number]) if each.kind == "NET" and each.id == "0-0" else each
                for name, each in system.devices.items()}  # type: ignore[attr-defined]  # fmt: skip
        return replace(system, devices=nets)  # type: ignore[type-var]

    job = jobs.job(systems=systems, process=lambda _, __, process: replace(process, bootstrap=""))  # type: ignore[arg-type]
    return on(job, "pod-a", "pod-b")


def up(host: str, seconds: float, boot: str = "") -> Node:
    """A capture that was taken so long after the boot of its machine, perhaps with the id of that boot."""
    node = capture(host, serial=1)
    node = replace(node, os=replace(node.os, uptime_s=read(seconds)))
    return replace(node, boot=read(boot)) if boot else node


def in_pod(name: str, boot: str) -> Node:
    """A capture from inside a pod, which shows the boot and nothing else of the machine."""
    return Node(name, time=read("2025-10-09T09:00:00Z"), boot=read(boot))


def asked_by_ras(job: Job, **pids: Sequence[int]) -> Job:
    """The job with an answer of RAS from hosts that it knows by address: `a1=[..]` is 10.0.0.1 with these processes."""
    silent = tuple(RasProcess(f"10.0.0.{name[1:]}", pid) for name, several in pids.items() for pid in several)
    return replace(job, ras=(RasAnswer("ras.txt", silent=silent),))


def in_containers(job: Job) -> Job:
    """The log of the first process of a job, which is the first in its container."""
    return replace(job, processes=(replace(job.processes[0], pid=1),))


def bench(host: str) -> BenchRun:
    return BenchRun("all_reduce", (), devices=(BenchDevice(0, host, 0, bus_id="0000:10:00.0"),))


EVIDENCE: dict[str, Callable[..., Node | Job | BenchRun | RankHosts | Tie]] = {
    "capture": capture,
    "addresses": lambda name, **interfaces: with_addresses(capture(name), **interfaces),
    "gids": with_gids,
    "tool": tool,
    "log": lambda *hosts: bare(list(hosts)),
    "other log": lambda *hosts: replace(bare(list(hosts)), name="other"),
    "job": lambda *hosts: on(jobs.job(len(hosts)), *hosts),
    "at": at,
    "other at": lambda address: replace(on(at(address), "x0", "x1"), name="other"),
    "asked": lambda *hosts, **pids: asked_by_ras(bare(list(hosts)), **pids),
    "asked containers": lambda *hosts, **pids: asked_by_ras(in_containers(bare(list(hosts))), **pids),
    "ras": lambda **pids: asked_by_ras(replace(bare([]), processes=(), hosts=()), **pids),
    "bench": bench,
    "up": up,
    "in pod": in_pod,
    "bridged": bridged,
    "translated": translated,
    "printing": printing,
    "kernel log": lambda host: kernel_log(host, xid(12.0)),
    "hostfile": layout,
    "tie": lambda names, why="": Tie(tuple(names), why),
}


def part_of(told: list[Any]) -> Node | Job | BenchRun | RankHosts | Tie:
    kind, *arguments = told
    named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    return EVIDENCE[kind](*arguments, **named)


def is_one(identity: Identity, one: str, other: str) -> bool:
    """Whether both names are known to be of one machine."""
    return identity.name(one).lower() == identity.name(other).lower()


@examples("evidence", "wanted")
def test_who_is_who(evidence: list[list[Any]], wanted: dict[str, Any]) -> None:
    """By the `names` to which others lead, names of the `same` machine and of `other` ones; all `hosts`, the `sources`
    of each, why it is tied to a name, when it was booted; what is said of `conflicts`."""
    identity = who(*map(part_of, evidence))
    hosts = {node.name: node for node in identity.hosts}
    shown = {
        "names": {name: identity.name(name) for name in wanted.get("names", ())},
        "same": [pair for pair in wanted.get("same", ()) if is_one(identity, *pair)],
        "other": [pair for pair in wanted.get("other", ()) if not is_one(identity, *pair)],
        "hosts": [node.name for node in identity.hosts],
        "sources": {name: list(hosts[name].sources) for name in wanted.get("sources", ())},
        "ties": [tie for tie in wanted.get("ties", ()) if matches(hosts[tie[0]].ties[tie[1]], tie[2])],
        "boots": {name: hosts[name].boot for name in wanted.get("boots", ())},
        "conflicts": [conflict.text for conflict in identity.conflicts],
        "conflicts of": [conflict.subject for conflict in identity.conflicts],
    }
    assert {name: value if matches(shown[name], value) else shown[name] for name, value in wanted.items()} == wanted


def test_the_order_of_the_evidence_changes_no_identity() -> None:
    parts = (capture("n1", serial=1), capture("n2", serial=2), capture("host-5fd2a9c07b"))
    job = printing("0x08c0eb0300010000", "0x08c0eb0300020000")
    assert who(*parts, job) == who(*parts[::-1], job)
