"""NET002 by the interfaces that carry data over sockets: NCCL takes each that it finds for a network of its own, among
them ends of containers and links to a board controller, and a peer that is given such an address finds nobody."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.network.interfaces.bootstrap import ADDRESS, place_of
from topodiag.checks.shared.interfaces import NOT_FOR_JOBS
from topodiag.checks.words import hosts_word, quoted
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Event, Job, Process

_SYSTEM = regex(r"unhandled system error|\bncclSystemError\b")
"""NCCL's result where a call of sockets fails; other causes of it are named by a line of their own."""
_OWN_LINES = ("ib completion", "cuda", "memory", "version", "duplicate gpu", "port", "plugin", "device", "ended")


def by_data(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """Of a process that takes sockets, lists such interfaces beside one that leads to others, and fails in a call of
    the system that no line explains."""
    error = _unexplained(job)
    if error is None:
        return
    for process in job.processes:
        if process.network.lower() != "socket":
            continue
        good, useless = _parted(process)
        if not good or not useless:
            continue
        listed = ", ".join(f"{name} ({address})" for name, address in useless[:3])
        yield check.finding(
            Severity.WARNING,
            f"{hosts_word([process.host]) or 'a node'} gives its peers addresses that only it reaches: {listed}",
            observed=f"{listed} beside {good[0][0]} ({good[0][1]}) for data; {quoted(error.text, 200)}",
            expected="for data only interfaces whose networks lead to the other nodes",
            fix=(
                f"NCCL_SOCKET_IFNAME={good[0][0]} on every node, or `^` and the names to leave out",
                "the log of the other node shows whether it connects to such an address: NCCL_DEBUG=INFO on all ranks",
            ),
            nodes=[process.host] if process.host else [],
            nics=[name for name, _ in useless[:3]],
            cost=Cost(share=1.0, text="ranks on other nodes cannot connect to them: init fails"),
            evidence=[place_of(process), error.origin],
            confidence=Confidence.MEDIUM,
            settings=(("NCCL_SOCKET_IFNAME", good[0][0]),),
        )
        return


def _unexplained(job: Job) -> Event | None:
    """The error of a system call, where nothing else in the job says what failed."""
    if any(event.kind in _OWN_LINES or event.details.get("fault") for event in job.events):
        return None
    return next((event for event in job.events if _SYSTEM.search(event.text) is not None), None)


def _parted(process: Process) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Interface and address of those for data that may lead to other nodes, and of those that do not."""
    listed = [(match[1], match[2]) for message in process.said("sockets") for match in ADDRESS.finditer(message.text)]
    useless = [each for each in listed if NOT_FOR_JOBS.match(each[0]) or _is_link_local(each[1])]
    return [each for each in listed if each not in useless], useless


def _is_link_local(text: str) -> bool:
    """Whether an address is of an IPv4 link without a network, as of a board controller on USB."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.version == 4 and address.is_link_local
