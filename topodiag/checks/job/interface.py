"""The interfaces that a job meets over: none at all, or such with names or addresses that lead to no other node."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Never

from topodiag.checks.interface import JobCheck, OneStep
from topodiag.checks.job.evidence import multi_node, piece, said_by, settings_of, world_ranks
from topodiag.checks.job.gloo import gloo_faults
from topodiag.checks.job.text import NET, ask_for
from topodiag.checks.shared.interfaces import NOT_FOR_JOBS
from topodiag.checks.shared.words import hosts_word, quoted
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Job, Process
from topodiag.model.provenance import Origin

INTERFACE = re.compile(r"(?:\[\d{1,4}\]|OOB |\bUsing )\s*([A-Za-z][\w.\-]{0,30}):")
LINK_LOCAL = re.compile(r":\[?fe[89ab][0-9a-f]:", re.I)
UNREACHED = re.compile(
    r"(?<![a-z])[Cc]onnect(?:ing|ion)?\b(?! timed out).{0,120}(?:No route to host|[Nn]etwork is unreachable|timed out)"
)
"""A connection that could not be made; one that stood and fell silent (`Call to recv .. timed out`) had the right
interface."""
TRIED = re.compile(
    r"[Cc]all to connect returned (?:No route|Network is unreach|Connection timed)"
    r"|connect to ([^\s<]{1,80})<\d{1,5}> returned (?:No route|Network is unreach|Connection timed)"
)
"""socketStartConnect and socketPollConnect, src/misc/socket.cc: what is tried again. `refused` is tried while a peer
starts, in jobs that are well."""
CONNECTED = re.compile(r"[Cc]onnect to ([0-9.]{7,15})<\d{1,5}> failed")
NO_INTERFACE = ("no socket interface found", "no usable listening interface", "no interface found")

ADDRESS = re.compile(r"([A-Za-z][\w.\-]{0,30}):\[?([0-9a-fA-F:.]{2,45})(?:%[\w.\-]{1,30})?\]?<\d{1,5}>")
"""`eth0:10.1.2.3<0>`, `ib0:fe80::1%ib0<0>` in lines of the bootstrap and of sockets (ncclSocketToString)."""

OF_ONE_NODE = tuple(
    ipaddress.ip_network(net) for net in ("172.17.0.0/16", "10.88.0.0/16", "192.168.122.0/24", "169.254.0.0/16")
)
"""Bridges of Docker, Podman and libvirt as they are installed, and IPv4 link-local: each node numbers its own."""


class WrongInterface(OneStep[Job], JobCheck[Never]):
    """NET002: the wrong interface is used for bootstrap or data

    What it finds
        A job of several nodes that meets over loopback, docker0, a bridge or an overlay's own interface; or no
        interface at all that fits NCCL_SOCKET_IFNAME; nodes that meet over IPv6 link-local here and another network
        there; Gloo's errors of an interface that is not there, and of loopback between nodes; and, before init was
        complete, connects to a node without a route or an answer, loopback addresses, and one address of a bridge
        (Docker, Podman, libvirt) or link-local on two nodes.

    Why it matters
        docker0 and virbr0 have the same address on every node: ranks connect to themselves and init hangs or fails
        with `connection refused`. An overlay works and carries all data of NET/Socket through the host's CPU.

    Evidence it reads
        `Bootstrap: Using`, `NET/Socket : Using`, `OOB` behind `NET/IB : Using`, NCCL_SOCKET_IFNAME, and warnings of the
        bootstrap.

    When it stays silent
        One node: any interface does. Addresses are judged only where init did not complete, and only those that cannot
        be right: clouds number their networks as they like, 172.17.0.0/16 among them. Gloo over loopback with no more
        ranks than one node holds.

    How to confirm
        ip -brief addr; ip route get ADDRESS_OF_ANOTHER_NODE       the interface that leads there
        grep -h 'Bootstrap' LOGS | sort | uniq -c

    How to fix
        NCCL_SOCKET_IFNAME=eth0 (a prefix), =eth0 with `=` before it (exact), or ^docker,lo,virbr (all but these), the
        same on every node.

    References
        NCCL src/misc/socket.cc (ncclFindInterfaces), src/bootstrap.cc v2.30; NCCL environment, NCCL_SOCKET_IFNAME.
    """

    id = "NET002"
    title = "the wrong interface is used for bootstrap or data"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        found = [*self._none(job), *self._of_gloo(job)]
        several = len(job.hosts) > 1 or piece(job) or multi_node(job)
        if len(job.hosts) > 1 or multi_node(job):
            found += self._wrong(job)
            found += self._link_local(job)
        world = job.world
        if several and not (world is not None and world.init_complete):
            found += self._of_one_node(job)
            found += self._unreachable(job)
            found += self._own_bridge(job) if not found else []
            found += self._of_this_node(job) if not found else []
        if found:
            return self.found(job, found)
        if not several:
            return self.not_applicable(job, "one node: any interface does")
        told = sum(bool(process.bootstrap) for process in job.processes)
        if not told:
            return self.unknown(job, f"no line names the interface of the bootstrap; {ask_for(job, *NET)}")
        return self.clean(job, "", Coverage(told, len(job.processes), "processes"))

    def _none(self, job: Job) -> list[Finding]:
        wanted = settings_of(job, "NCCL_SOCKET_IFNAME").get("NCCL_SOCKET_IFNAME", [])
        # 2.27 goes on without an interface, and fails on an address of no family: with a name given, that name is why.
        words = (*NO_INTERFACE, "is neither af_inet") if wanted else NO_INTERFACE
        events = [event for event in job.events if any(each in event.text.lower() for each in words)]
        if not events:
            return []
        value = f" that fits NCCL_SOCKET_IFNAME={wanted[0][1].value}" if wanted else ""
        hosts = list(dict.fromkeys(event.host for event in events if event.host))
        return [
            self.finding(
                Severity.ERROR,
                f"NCCL found no interface{value}{f' on {hosts_word(hosts)}' if hosts else ''}",
                observed=events[0].text.strip(),
                expected="an interface with an address that the other nodes reach",
                fix=(
                    "`ip -brief addr` on the node (in the container): the name may differ between nodes",
                    "NCCL_SOCKET_IFNAME takes prefixes, `=name` for one, `^docker,lo` for all but these",
                ),
                nodes=hosts,
                ranks=sorted({event.rank for event in events if event.rank >= 0}),
                cost=Cost(share=1.0, text="the job does not start"),
                evidence=[*(event.origin for event in events), *(given.origin for _, given in wanted[:2])],
                coverage=Coverage(len({(e.host, e.pid) for e in events}), len(job.processes), "processes"),
                settings=(("NCCL_SOCKET_IFNAME", None),) if wanted else (),
            )
        ]

    def _of_gloo(self, job: Job) -> list[Finding]:
        return [
            self.finding(
                Severity.ERROR,
                fault.message,
                observed=fault.observed,
                expected="an interface with an address that the other nodes reach",
                fix=fault.fix,
                nodes=list(dict.fromkeys(event.host for event in fault.events if event.host)),
                ranks=sorted({event.rank for event in fault.events if event.rank >= 0}),
                cost=Cost(share=1.0, text="the job does not start"),
                evidence=[event.origin for event in fault.events],
                confidence=fault.sure,
                settings=(("GLOO_SOCKET_IFNAME", None),) if fault.setting else (),
            )
            for fault in gloo_faults(job)
        ]

    def _link_local(self, job: Job) -> list[Finding]:
        """Some processes meet at an IPv6 link-local address, which is good on one link only, and others elsewhere."""
        told = [(number, process) for number, process in enumerate(job.processes) if process.bootstrap]
        local = [(number, process) for number, process in told if LINK_LOCAL.search(process.bootstrap)]
        names = {process.bootstrap.partition(":")[0] for _, process in told}
        if not local or len(local) == len(told) or len(names) < 2:
            return []
        other = next(process for _, process in told if not LINK_LOCAL.search(process.bootstrap))
        return [
            self.finding(
                Severity.ERROR,
                f"{hosts_word(list(dict.fromkeys(process.host for _, process in local)))}: bootstrap over an IPv6"
                f" link-local address of {local[0][1].bootstrap.partition(':')[0]}, others use"
                f" {other.bootstrap.partition(':')[0]}",
                observed=f"{local[0][1].bootstrap} and {other.bootstrap}",
                expected="one network that all nodes share",
                fix=("NCCL_SOCKET_IFNAME: the interface that all nodes share; NCCL_SOCKET_FAMILY=AF_INET for IPv4",),
                nodes=list(dict.fromkeys(process.host for _, process in local)),
                ranks=world_ranks(job, [number for number, _ in local]),
                cost=Cost(text="link-local addresses are not reached from other networks: init hangs"),
                evidence=[_place(local[0][1]), _place(other)],
                coverage=Coverage(len(local), len(told), "processes"),
                confidence=Confidence.MEDIUM,
            )
        ]

    def _of_one_node(self, job: Job) -> list[Finding]:
        """Addresses that cannot lead to another node, where ranks on several nodes did not come together: loopback, or
        one address of a bridge on two nodes."""
        users: dict[tuple[str, str], list[tuple[int, Process]]] = {}
        for number, process in enumerate(job.processes):
            for name, address in _addresses(process):
                users.setdefault((name, address), []).append((number, process))
        made = []
        for (name, address), group in users.items():
            hosts = list(dict.fromkeys(process.host for _, process in group))
            if len(job.hosts) < 2 or NOT_FOR_JOBS.match(name) or not _leads_nowhere(address, len(hosts)):
                continue
            ranks = world_ranks(job, [number for number, _ in group])
            made.append(
                self.finding(
                    Severity.ERROR,
                    f"{hosts_word(hosts)}: {name} has {address}, which leads to no other node",
                    observed=f"{name}:{address} on {hosts_word(hosts)}",
                    expected="an address of its own on each node, in a network that all nodes share",
                    fix=(
                        "in containers: the host's network (`--network=host`), or an overlay that spans the nodes",
                        "NCCL_SOCKET_IFNAME: the interface that `ip route get` the address of another node names",
                    ),
                    nodes=hosts,
                    ranks=ranks,
                    nics=[name],
                    cost=Cost(share=1.0, text="ranks of other nodes cannot be reached at it: init hangs or fails"),
                    evidence=[_place(process) for _, process in group],
                    coverage=Coverage(len(group), len(job.processes), "processes"),
                )
            )
        return made

    def _unreachable(self, job: Job) -> list[Finding]:
        """Connects of sockets that no answer came to; `refused` is a process that is gone, and not told here."""
        events = [
            e
            for e in job.events
            if e.kind == "connect" and e.level == "WARN" and UNREACHED.search(e.text) and "ibv_" not in e.text
        ]
        tries = [] if events else _tries(job)
        if not events and not tries:
            return []
        hosts = list(dict.fromkeys([*(e.host for e in events if e.host), *(t.host for t in tries if t.host)]))
        used = sorted({name for process in job.processes if process.host in hosts for name in _interfaces(process)})
        peers = list(dict.fromkeys(event.details["peer"] for event in events if event.details.get("peer")))
        peers += list(dict.fromkeys(each.peer for each in tries))
        return [
            self.finding(
                Severity.ERROR if events else Severity.WARNING,
                f"{hosts_word(hosts) or 'a node'} cannot reach {', '.join(peers[:3]) or 'another node'}"
                + (f" over {'/'.join(used[:3])}" if used else ""),
                observed=quoted(events[0].text if events else tries[0].text),
                expected="an interface whose network leads to all nodes, with its ports open",
                fix=(
                    "`ip route get` the address: which interface leads there, if any",
                    "open the ephemeral ports between the nodes in the firewall, or name another interface in"
                    " NCCL_SOCKET_IFNAME",
                ),
                nodes=hosts,
                ranks=sorted({event.rank for event in events if event.rank >= 0}),
                nics=used[:3],
                cost=Cost(share=1.0, text="init waits for the connection and fails"),
                evidence=[*(event.origin for event in events), *(each.origin for each in tries)],
                confidence=Confidence.MEDIUM,
            )
        ]

    def _own_bridge(self, job: Job) -> list[Finding]:
        """A connect that fails to an address of the bridge that each host has for itself, on which this one meets."""
        made = []
        for event in job.events:
            match = CONNECTED.search(event.text)
            own = {address for p in job.processes if p.host == event.host for _, address in _addresses(p)}
            if match is None or event.level == "UNWIND" or not any(_one_bridge(match[1], each) for each in own):
                continue
            made.append(
                self.finding(
                    Severity.ERROR,
                    f"{event.host or 'a node'} looks for a peer at {match[1]}: each host numbers that bridge by itself",
                    observed=quoted(event.text),
                    expected="an address of a network that all nodes share",
                    fix=("in containers: the host's network (`--network=host`), or an overlay that spans the nodes",),
                    nodes=[event.host] if event.host else [],
                    cost=Cost(share=1.0, text="ranks of other nodes cannot be reached at it: init hangs or fails"),
                    evidence=[event.origin, *(_place(p) for p in job.processes if p.host == event.host)],
                    confidence=Confidence.MEDIUM,
                )
            )
        return made[:1]

    def _wrong(self, job: Job) -> list[Finding]:
        used: dict[str, list[tuple[int, Process]]] = {}
        for number, process in enumerate(job.processes):
            for name in _interfaces(process):
                used.setdefault(name, []).append((number, process))
        world = job.world
        started = world is not None and world.init_complete
        made = []
        for name, group in used.items():
            if not NOT_FOR_JOBS.match(name):
                continue
            hosts = list(dict.fromkeys(process.host for _, process in group))
            made.append(
                self.finding(
                    Severity.WARNING if started else Severity.ERROR,
                    f"{name} is used between nodes by {len(group)} {'process' if len(group) == 1 else 'processes'} on"
                    f" {hosts_word(hosts)}",
                    observed=f"{group[0][1].bootstrap or name}",
                    expected="the interface that leads to the other nodes",
                    fix=(
                        "`ip route get` the address of another node names the interface",
                        f"NCCL_SOCKET_IFNAME=^{name},lo or the name itself, on every node",
                    ),
                    nodes=hosts,
                    ranks=world_ranks(job, [number for number, _ in group]),
                    nics=[name],
                    cost=Cost(text="data over it passes a bridge or overlay of the kernel")
                    if started
                    else Cost(text="ranks of other nodes cannot be reached over it: init hangs or fails"),
                    evidence=[_place(process) for _, process in group],
                    coverage=Coverage(len(group), len(job.processes), "processes"),
                    settings=(("NCCL_SOCKET_IFNAME", _all_but(used)),),
                )
            )
        return made

    def _of_this_node(self, job: Job) -> list[Finding]:
        """A piece of a log whose bootstrap takes an interface of its own host though another one is there. It does no
        harm where all ranks run on that host, which a piece does not say."""
        for process in job.processes:
            name = process.bootstrap.partition(":")[0].strip()
            others = sorted(each for each in _listed(process) if not NOT_FOR_JOBS.match(each))
            if not NOT_FOR_JOBS.match(name) or name == "lo" or not others:
                continue
            return [
                self.finding(
                    Severity.INFO,
                    f"{hosts_word([process.host])} meets its peers over {name}, which other nodes do not reach, though"
                    f" {others[0]} is there",
                    observed=process.bootstrap,
                    expected="with ranks on other nodes: the interface that leads to them",
                    fix=(f"NCCL_SOCKET_IFNAME={others[0]}, or {_all_but([name])}, on every node",),
                    nodes=[process.host] if process.host else [],
                    nics=[name],
                    cost=Cost(text="with ranks on other nodes init hangs or fails; on this node alone nothing"),
                    evidence=[_place(process)],
                    confidence=Confidence.MEDIUM,
                )
            ]
        return []


@dataclass(frozen=True, slots=True)
class Try:
    """A connect that was tried again: NCCL prints it at level INFO, from 2.24 on each time."""

    host: str
    peer: str
    text: str
    origin: Origin | None


def _tries(job: Job) -> list[Try]:
    made = []
    for kind in ("socket note", "retry"):
        for number, text, where in said_by(job, kind):
            match = TRIED.search(text)
            if match is not None and number >= 0:
                made.append(Try(job.processes[number].host, match[1] or "another node", text, where))
    return made


def _one_bridge(a: str, b: str) -> bool:
    try:
        both = (ipaddress.ip_address(a), ipaddress.ip_address(b))
    except ValueError:
        return False
    return any(all(each in network for each in both) for network in OF_ONE_NODE)


def _all_but(used: Iterable[str]) -> str:
    """NCCL's own list of what it passes over, with those of these interfaces that are not for jobs."""
    own = ("docker", "lo", "virbr")
    return f"^{','.join([*own, *(name for name in used if NOT_FOR_JOBS.match(name) and not name.startswith(own))])}"


def _interfaces(process: Process) -> set[str]:
    """Names of the interfaces that a process says it uses for bootstrap, sockets, or out of band."""
    names = {process.bootstrap.partition(":")[0].strip()} if ":" in process.bootstrap else set()
    if process.network.lower() == "socket":
        for message in process.said("sockets"):
            names.update(INTERFACE.findall(message.text))
    return names - {""}


def _listed(process: Process) -> set[str]:
    """Interfaces that a process lists for data, whichever network it takes."""
    return {name for message in process.said("sockets") for name in INTERFACE.findall(message.text)}


def _addresses(process: Process) -> set[tuple[str, str]]:
    """Interface and address of the bootstrap, and of the sockets that carry data."""
    texts = [process.bootstrap]
    if process.network.lower() == "socket":
        texts += [message.text for message in process.said("sockets")]
    return {(match[1], match[2]) for text in texts for match in ADDRESS.finditer(text)}


def _leads_nowhere(text: str, hosts: int) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_loopback:
        return True
    return hosts > 1 and any(address in network for network in OF_ONE_NODE)


def _place(process: Process) -> Origin | None:
    messages = process.said("bootstrap") or process.said("sockets")
    return messages[0].origin if messages else process.origin
