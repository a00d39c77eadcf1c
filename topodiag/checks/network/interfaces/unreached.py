"""The interfaces and addresses at which a process meets its peers. NET002 by connects that fail: nobody answers at the
address, or it is a bridge that each host has for itself."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word, ranks_in
from topodiag.checks.shared.job.logs import named_by
from topodiag.checks.shared.job.text import MET
from topodiag.lazy import regex
from topodiag.model.finding import Finding, Severity
from topodiag.model.job import Event, Job, Process
from topodiag.model.provenance import Origin
from topodiag.words.hosts import ADDRESS
from topodiag.words.own_data import own_data

INTERFACE = regex(r"(?:\[\d{1,4}\]|OOB |\bUsing )\s*([A-Za-z][\w.\-]{0,30}):")

OF_ONE_NODE = tuple(map(ipaddress.ip_network, own_data("checks/network/names")["of_one_node"]))
"""Bridges of Docker, Podman and libvirt as they are installed, and IPv4 link-local: each node numbers its own."""


def interfaces_of(process: Process) -> set[str]:
    """Names of the interfaces that a process says it uses for bootstrap, sockets, or out of band."""
    names = {process.bootstrap.partition(":")[0].strip()} if ":" in process.bootstrap else set()
    if process.network.lower() == "socket":
        for message in process.said("sockets"):
            names.update(INTERFACE.findall(message.text))
    return names - {""}


def interfaces_listed(process: Process) -> set[str]:
    """Interfaces that a process lists for data, whichever network it takes."""
    return {name for message in process.said("sockets") for name in INTERFACE.findall(message.text)}


def addresses_of(process: Process) -> set[tuple[str, str]]:
    """Interface and address of the bootstrap, and of the sockets that carry data."""
    texts = [process.bootstrap]
    if process.network.lower() == "socket":
        texts += [message.text for message in process.said("sockets")]
    return {(match[1], match[2]) for text in texts for match in ADDRESS.finditer(text)}


def leads_nowhere(text: str, hosts: int) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.is_loopback or (hosts > 1 and any(address in network for network in OF_ONE_NODE))


def one_bridge(a: str, b: str) -> bool:
    try:
        both = (ipaddress.ip_address(a), ipaddress.ip_address(b))
    except ValueError:
        return False
    return any(all(address in network for address in both) for network in OF_ONE_NODE)


def place_of(process: Process) -> Origin | None:
    messages = process.said("bootstrap") or process.said("sockets")
    return messages[0].origin if messages else process.origin


_NO_WAY = frozenset({"name", "number", "shared", "route", "aborted", "silent"})
"""Why others than NCCL reached nobody. Of grammar/job_lines.py: `refused` comes from a peer that was reached, `own`
from the host itself."""
TRIED_AGAIN = "tried"
"""Kind of a connect of others than NCCL that is tried again (evidence/nccl_log/grammar/job_lines.py)."""
OWN_NAME = "127.0.1.1"
"""What Debian's /etc/hosts has for the host's own name."""


def by_connects(check: JobCheck, job: Job) -> Iterator[Finding]:
    """Connects of sockets that failed, else those that were tried again. `refused` is a process that is gone, and not
    told here."""
    failed = _failed(job)
    unreached = failed or _tried(job)
    if not unreached:
        return
    hosts = hosts_in(unreached)
    peers = list(dict.fromkeys(peer for connect in unreached if (peer := connect.details.get("peer"))))
    used = sorted({name for process in job.processes if process.host in hosts for name in interfaces_of(process)})
    who, peer_words = hosts_word(hosts) or "a node", ", ".join(peers[:3]) or "another node"
    what = f"{who} cannot reach {peer_words}" + (f" over {'/'.join(used[:3])}" if used else "")
    first = unreached[0]
    why = TRIED_AGAIN if first.kind == TRIED_AGAIN else first.details.get("why", "")
    by_reason = own_data("checks/network/interfaces/unreached")
    words = by_reason.get(why, by_reason["other"])
    if "what" in words:
        what = words["what"].format(who=who, whom=peer_words)
    yield check.of_events(
        unreached,
        "unreached",
        what,
        check.where(hosts, ranks=ranks_in(unreached), nics=used[:3]),
        severity=Severity.ERROR if failed else Severity.WARNING,
        expected=words["expected"],
        fix=words["fix"],
    )


def _failed(job: Job) -> list[Event]:
    """Connects that failed; not that nobody answered where a process found its port taken: it did not listen."""
    is_taken = any(event.details.get("how") == "port taken" for event in job.events)
    return [
        event
        for event in job.events
        if event.kind == "connect" and "ibv_" not in event.text and _is_unreached(event)
        if not (is_taken and event.details.get("why") == "silent")
    ]


def _is_unreached(event: Event) -> bool:
    if event.level == "WARN" or "by sockets" in event.details:
        return "unreached" in event.details
    return event.details.get("why") in _NO_WAY and not _is_loopback(event.details["peer"])


def _is_loopback(peer: str) -> bool:
    return peer in ("localhost", "::1") or peer.startswith("127.")


def _tried(job: Job) -> list[Event]:
    """Connects that were tried again: NCCL prints them at level INFO, from 2.24 on each time."""
    tried = [line for line in named_by(job, "no way", "socket note", "retry") if line.process >= 0]
    return [*tried] or _still_tried(job)


def _still_tried(job: Job) -> list[Event]:
    """Connects of others than NCCL that their program tries again, where a log ends with them: no rank goes on."""
    events = [event for event in job.events if event.kind == TRIED_AGAIN]
    tried = [event for event in events if "peer" in event.details and not _is_loopback(event.details["peer"])]
    unlike = len({"reached" in event.details for event in events}) > 1
    came_together = job.steps or job.communicators or any(event.kind == MET for event in job.events)
    return tried if any("last" in connect.details for connect in tried) and not unlike and not came_together else []


def _is_gone(job: Job, refused: Event) -> bool:
    """Whether a process had ended above a connect that was refused: ranks of one host meet at such an address, too, and
    then it is that process which no longer listens."""
    at = refused.origin
    if at is None or at.line is None or "refused connect" not in refused.details:
        return False
    above = (event.origin for event in job.events if event.kind == "ended" and event.details.get("how") != "context")
    return any(w is not None and w.source == at.source and w.line is not None and w.line < at.line for w in above)


def by_own_bridge(check: JobCheck, job: Job) -> Iterator[Finding]:
    """A connect that fails to an address of the bridge that each host has for itself, on which this one meets."""
    addresses: dict[str, set[str]] = {}
    for process in job.processes if job.events else ():
        addresses.setdefault(process.host, set()).update(address for _, address in addresses_of(process))
    for event in job.events:
        own = addresses.get(event.host, set())
        tried = event.details.get("failed_connect", "") if event.level != "UNWIND" else ""
        if event.details.get("why") == "own" and not _is_gone(job, event):
            tried, own = event.details["peer"], {event.details["peer"]}
        if not tried or not (tried == OWN_NAME or any(one_bridge(tried, name) for name in own)):
            continue
        why = "each host gives it to its own name" if tried == OWN_NAME else "each host numbers that bridge by itself"
        yield check.finding(
            check.where([event.host] if event.host else []),
            "own name" if tried == OWN_NAME else "own bridge",
            f"{event.host or 'a node'} looks for a peer at {tried}: {why}",
            evidence=[event, *(place_of(p) for p in job.processes if p.host == event.host)],
        )
        return
