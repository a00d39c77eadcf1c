"""Captures and jobs for the tests of who is who and what happened when: small, and alike unless a test says not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.checks import jobs, nodes
from tests.checks.nodes import read
from topodiag.model.events import Event
from topodiag.model.job import Communicator, Job
from topodiag.model.node import Node
from topodiag.model.provenance import Origin, Topic

NOON = 1_760_000_000.0


def capture(host: str, *, serial: int = 0, **changes: Any) -> Node:
    """A bundle of a machine that sits like the hosts of `jobs.job`; `serial` makes its GUIDs, 0 for none."""
    node = nodes.hgx_h100()
    gpus = tuple(replace(gpu, bus_id=jobs.bus_id(at)) for at, gpu in enumerate(node.gpus))
    nics = node.nics
    if serial:
        nics = tuple(replace(nic, node_guid=read(f"0x08c0eb0300{serial:02x}{at:04x}")) for at, nic in enumerate(nics))
    fields: dict[str, Any] = {
        "host": host,
        "gpus": gpus,
        "nics": nics,
        "time": read("2025-10-09T09:00:00Z"),
        "events": (),
    }
    return replace(node, **(fields | changes))


def kernel_log(host: str, *events: Event) -> Node:
    return Node(host, events=events, topics=frozenset({Topic.KERNEL_LOG}))


def xid(time: float | None, code: int = 79, bus: str = "0000:10:00.0", text: str = "") -> Event:
    text = text or f"NVRM: Xid (PCI:{bus[:-2]}): {code}, pid=1"
    return Event("xid", "", text, Origin("kern.log", 1, text), {"bus_id": bus, "code": code}, time_s=time)


def on(job: Job, *hosts: str) -> Job:
    """The job with its hosts called so, n0 first."""
    named = dict(zip(job.hosts, hosts, strict=True))
    return replace(
        job,
        hosts=hosts,
        ranks=tuple(replace(rank, host=named[rank.host]) for rank in job.ranks),
        processes=tuple(replace(process, host=named[process.host]) for process in job.processes),
        events=tuple(replace(event, host=named.get(event.host, event.host)) for event in job.events),
        communicators=tuple(
            replace(communicator, hosts=hosts,
                    systems={named[host]: system for host, system in communicator.systems.items()},
                    graphs={named[host]: graphs for host, graphs in communicator.graphs.items()})
            for communicator in job.communicators
        ),
    )  # fmt: skip


def inited(*host_times: float) -> Any:
    """A hook for `jobs.job`: Init COMPLETE of the world by the clock of each host, all ranks of it at once."""

    def world(communicator: Communicator) -> Communicator:
        number = communicator.nranks // len(host_times)
        return replace(communicator, completed_ts=np.repeat(np.array(host_times, np.float64), number))

    return world


def bare(names: Sequence[str]) -> Job:
    """A job of one GPU a host whose log names its hosts and nothing else of them."""
    job = jobs.job(
        len(names), 1, process=lambda _, __, process: replace(process, bootstrap=""), systems=lambda *_: None
    )
    return on(job, *names)
