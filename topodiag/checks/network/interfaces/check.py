"""The interfaces that a job meets over: none at all, or such with names or addresses that lead to no other node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word
from topodiag.checks.network.interfaces import unreached
from topodiag.checks.shared.devices import NOT_FOR_JOBS
from topodiag.checks.shared.job.logs import multi_node, named_by, piece, settings_of, world_ranks
from topodiag.checks.shared.job.text import ask_for, met
from topodiag.lazy import regex
from topodiag.model.finding import Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, GivenSetting, Job, Process
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped

LINK_LOCAL = regex(r":\[?fe[89ab][0-9a-f]:", re.I)
MET_AT = regex(r"(?:\d{1,3}\.){3}\d{1,3}:\d{1,5}")
NO_INTERFACE = own_data("checks/network/names")["no_interface"]


class WrongInterface(JobCheck, id="NET002"):
    """NET002: the wrong interface is used for bootstrap or data

    What it finds
        A job of several nodes that meets over loopback, docker0, a bridge or an overlay's own interface; or no
        interface at all that fits NCCL_SOCKET_IFNAME; nodes that meet over IPv6 link-local here and another network
        there; Gloo's errors of an interface that is not there, and of loopback between nodes; and, before init was
        complete, connects to a node without a route or an answer, loopback addresses, and one address of a bridge
        (Docker, Podman, libvirt) or link-local on two nodes. Of other programs of the job (torch, MPI, launchers) what
        they say in the system's words of a peer that they do not reach, or whose name has no address or is a number;
        and one address for several nodes. A log that ends with connects that get no answer and are tried
        again. In a piece of a log, a bootstrap over loopback beside a setting that means another interface
        (NCCL_COMM_ID, or a list to pass over that lacks lo).

    Why it matters
        docker0 and virbr0 have the same address on every node: ranks connect to themselves and init hangs or fails
        with `connection refused`. An overlay works and carries all data of NET/Socket through the host's CPU.

    Evidence it reads
        `Bootstrap: Using`, `NET/Socket : Using`, `OOB` behind `NET/IB : Using`, NCCL_SOCKET_IFNAME, and warnings of the
        bootstrap.

    When it stays silent
        One node: any interface does. Addresses are judged only where init did not complete, and only those that cannot
        be right: clouds number their networks as they like, 172.17.0.0/16 among them. Gloo over loopback with no more
        ranks than one node holds. Attempts that are tried again, where the log goes on, the ranks meet, or the peer
        refuses (it was reached); refused ones; servers of the web; no answer, where a process found its port taken and
        did not listen. An interface without a line that shows that ranks
        met over it: unknown.

    How to confirm
        ip -brief addr; ip route get ADDRESS_OF_ANOTHER_NODE       the interface that leads there
        grep -h 'Bootstrap' LOGS | sort | uniq -c

    How to fix
        NCCL_SOCKET_IFNAME=eth0 (a prefix), =eth0 with `=` before it (exact), or ^docker,lo,virbr (all but these), the
        same on every node.

    References
        NCCL src/misc/socket.cc (ncclFindInterfaces), src/bootstrap.cc v2.30; NCCL environment, NCCL_SOCKET_IFNAME.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        findings = [*self._none(job), *by_gloo(self, job)]
        several = len(job.hosts) > 1 or piece(job) or multi_node(job)
        if len(job.hosts) > 1 or multi_node(job):
            findings += self._unfit_interfaces(job)
            findings += self._link_local(job)
        world = job.world
        if several and not (world is not None and world.init_complete):
            findings += self._of_one_node(job)
            findings += unreached.by_connects(self, job)
            findings += unreached.by_own_bridge(self, job) if not findings else []
            findings += self._of_this_node(job) if not findings else []
        if not findings and not several:
            return self.not_applicable(job, "one node: any interface does")
        count = sum(bool(process.bootstrap) for process in job.processes)
        unseen = "" if met(job) else "no line shows that ranks connected over the named interface"
        unseen = unseen if count else f"no line names the interface of the bootstrap; {ask_for(job)}"
        return self.any_of(job, findings, Coverage(count, len(job.processes), "processes"), unknown=unseen)

    def _none(self, job: Job) -> Iterator[Finding]:
        wanted = settings_of(job, "NCCL_SOCKET_IFNAME").get("NCCL_SOCKET_IFNAME", [])
        events = _without_interface(job, named=bool(wanted))
        if events:
            value = f" that fits NCCL_SOCKET_IFNAME={wanted[0][1].value}" if wanted else ""
            hosts = hosts_in(events)
            yield self.of_events(
                events,
                "no interface",
                f"NCCL found no interface{value}{f' on {hosts_word(hosts)}' if hosts else ''}",
                evidence=[*events, *(given for _, given in wanted[:2])],
                coverage=Coverage(len({(e.host, e.pid) for e in events}), len(job.processes), "processes"),
                settings=(("NCCL_SOCKET_IFNAME", None),) if wanted else (),
            )

    def _link_local(self, job: Job) -> Iterator[Finding]:
        """Some processes meet at an IPv6 link-local address, which is good on one link only, and others elsewhere."""
        pairs = [(number, process) for number, process in enumerate(job.processes) if process.bootstrap]
        local = [(number, process) for number, process in pairs if LINK_LOCAL.search(process.bootstrap)]
        names = {process.bootstrap.partition(":")[0] for _, process in pairs}
        if not local or len(local) == len(pairs) or len(names) < 2:
            return
        other = next(process for _, process in pairs if not LINK_LOCAL.search(process.bootstrap))
        hosts = list(dict.fromkeys(process.host for _, process in local))
        yield self.finding(
            self.where(hosts, ranks=world_ranks(job, [number for number, _ in local])),
            "link local",
            f"{hosts_word(hosts)}: bootstrap over an IPv6 link-local address of"
            f" {local[0][1].bootstrap.partition(':')[0]}, others use {other.bootstrap.partition(':')[0]}",
            observed=f"{local[0][1].bootstrap} and {other.bootstrap}",
            evidence=[unreached.place_of(local[0][1]), unreached.place_of(other)],
            coverage=Coverage(len(local), len(pairs), "processes"),
        )

    def _of_one_node(self, job: Job) -> Iterator[Finding]:
        """Addresses that cannot lead to another node, where ranks on several nodes did not come together: loopback, or
        one address of a bridge on two nodes."""
        users = grouped(
            (place, (number, process))
            for number, process in enumerate(job.processes)
            for place in unreached.addresses_of(process)
        )
        for (name, address), group in users.items():
            hosts = list(dict.fromkeys(process.host for _, process in group))
            if len(job.hosts) < 2 or NOT_FOR_JOBS.match(name) or not unreached.leads_nowhere(address, len(hosts)):
                continue
            yield self.finding(
                self.where(hosts, ranks=world_ranks(job, [number for number, _ in group]), nics=[name]),
                "address of one node",
                f"{hosts_word(hosts)}: {name} has {address}, which leads to no other node",
                observed=f"{name}:{address} on {hosts_word(hosts)}",
                evidence=[unreached.place_of(process) for _, process in group],
                coverage=Coverage(len(group), len(job.processes), "processes"),
            )

    def _unfit_interfaces(self, job: Job) -> Iterator[Finding]:
        used = grouped(
            (name, (number, process))
            for number, process in enumerate(job.processes)
            for name in unreached.interfaces_of(process)
        )
        world = job.world
        started = world is not None and world.init_complete
        for name, group in used.items():
            if not NOT_FOR_JOBS.match(name):
                continue
            hosts = list(dict.fromkeys(process.host for _, process in group))
            yield self.finding(
                self.where(hosts, ranks=world_ranks(job, [number for number, _ in group]), nics=[name]),
                self.advice("interface of one node that works" if started else "interface of one node", named=name),
                f"{name} is used between nodes by {len(group)} {'process' if len(group) == 1 else 'processes'} on"
                f" {hosts_word(hosts)}",
                severity=Severity.WARNING if started else Severity.ERROR,
                observed=f"{group[0][1].bootstrap or name}",
                evidence=[unreached.place_of(process) for _, process in group],
                coverage=Coverage(len(group), len(job.processes), "processes"),
                settings=(("NCCL_SOCKET_IFNAME", _all_but(used)),),
            )

    def _of_this_node(self, job: Job) -> Iterator[Finding]:
        """A piece of a log whose bootstrap takes an interface of its own host though another one is there. It does no
        harm where all ranks run on that host, which a piece does not say."""
        for process in job.processes:
            name = process.bootstrap.partition(":")[0].strip()
            others = sorted(name for name in unreached.interfaces_listed(process) if not NOT_FOR_JOBS.match(name))
            against = _against_lo(process) if name == "lo" else None
            if not NOT_FOR_JOBS.match(name) or not others or (name == "lo" and against is None):
                continue
            why = f" ({against.name}={against.value})" if against is not None else ""
            yield self.finding(
                self.where([process.host] if process.host else [], nics=[name]),
                self.advice("address of this node", other=others[0], passed=_all_but([name])),
                f"{hosts_word([process.host])} meets its peers over {name}, which other nodes do not reach, though"
                f" {others[0]} is there{why}",
                severity=Severity.INFO if against is None else Severity.WARNING,
                observed=process.bootstrap,
                evidence=[unreached.place_of(process), against],
            )
            return


def _without_interface(job: Job, *, named: bool) -> list[Event]:
    """The lines by which NCCL, or a program of the job, has no interface. NCCL before 2.8 counts them, or goes on into
    a socket of no family; 2.27 fails on an address of no family, which a name that was given explains."""
    words = (*NO_INTERFACE, "is neither af_inet") if named else NO_INTERFACE
    events = [
        event
        for event in job.events
        if event.details.get("fault") == "interface" or any(word in event.text.lower() for word in words)
    ]
    if not events and not settings_of(job, "NCCL_SOCKET_FAMILY"):
        events = [event for event in job.events if event.level == "WARN" and "no family" in event.details]
    return events or [line for line in named_by(job, "no interfaces", "socket note") if line.process >= 0]


def _against_lo(process: Process) -> GivenSetting | None:
    """The setting beside which loopback is nobody's wish: NCCL_COMM_ID at an address of the network, or a list of
    interfaces to pass over, which replaces NCCL's own (`^docker,lo`), without lo. None where somebody may want it: on
    one node, or with `NCCL_SOCKET_IFNAME=lo`."""
    root, names = (process.settings.get(name) for name in ("NCCL_COMM_ID", "NCCL_SOCKET_IFNAME"))
    if root is not None and MET_AT.match(root.value.strip()) and not root.value.strip().startswith(("127.", "0.")):
        return root
    if names is not None and names.value.strip().startswith("^"):
        passed = [part.strip() for part in names.value.strip()[1:].lstrip("=").split(",")]
        return names if not any(name and "lo".startswith(name) for name in passed) else None
    return None


def _all_but(used: Iterable[str]) -> str:
    """NCCL's own list of what it passes over, with those of these interfaces that are not for jobs."""
    own = ("docker", "lo", "virbr")
    return f"^{','.join([*own, *(name for name in used if NOT_FOR_JOBS.match(name) and not name.startswith(own))])}"


# What Gloo says of the interface by which ranks meet: none that has the name, or loopback for several nodes.


ONE_NODE = 8
"""As many ranks may share a node, and meet over loopback."""
OWN = "own"
"""In place of an address: torch says that it took loopback, for want of an address of the host."""


def by_gloo(check: JobCheck, job: Job) -> Iterator[Finding]:
    """An interface that Gloo does not find, and loopback addresses that ranks of other nodes were sent to."""
    unnamed = [event for event in job.events if "gloo" in event.details]
    if unnamed:
        yield _unnamed(check, unnamed)
        return
    mesh = [event for event in job.events if "mesh" in event.details]
    own = [event for event in job.events if event.details.get("loopback") == OWN]
    looped = [event for event in mesh if event.details.get("loopback")] or (own if mesh else [])
    if looped and _on_several_nodes(job, (*mesh, *own)):
        yield _looped(check, looped)


def _on_several_nodes(job: Job, events: tuple[Event, ...]) -> bool:
    """Whether the ranks of a job are on more than one node, by hosts or by more ranks than one holds."""
    hosts = {event.details.get("host") or event.host for event in events} - {""}
    most = max(max(int(event.details.get("size") or 0), event.rank + 1) for event in events)
    return len(hosts | set(job.hosts)) > 1 or most > ONE_NODE


def _unnamed(check: JobCheck, events: Sequence[Event]) -> Finding:
    value = events[0].details["gloo"]
    why = "it has to be the name of one interface of this node"
    if value.startswith("^"):
        why = "Gloo takes the name of one interface; a list of what to leave out is NCCL_SOCKET_IFNAME's"
    elif value.replace(".", "").isdigit() or value.count(":") > 1:
        why = "Gloo takes the name of an interface, and this is an address"
    return check.of_events(
        events,
        "gloo",
        f"{_at(events)}Gloo finds no interface {value} (GLOO_SOCKET_IFNAME): {why}",
        settings=(("GLOO_SOCKET_IFNAME", None),),
    )


def _looped(check: JobCheck, events: Sequence[Event]) -> Finding:
    address, size = events[0].details["loopback"], events[0].details.get("size")
    what = f"looks for a peer{f' of {size} ranks' if size else ''} at {address}"
    if address == OWN:
        what = "finds no address of this host by its own name, and takes loopback"
    return check.of_events(events, "gloo over loopback", f"{_at(events)}Gloo {what}: loopback leads to no other node")


def _at(events: Sequence[Event]) -> str:
    hosts = hosts_in(events)
    return f"{hosts_word(hosts)}: " if hosts else ""
