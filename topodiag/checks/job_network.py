"""What NCCL chose between nodes: sockets instead of RDMA, and the wrong interface."""

from __future__ import annotations

import re

from topodiag.checks.common import plural
from topodiag.checks.interface import JobCheck
from topodiag.checks.job_evidence import (
    between_nodes,
    by_host,
    hcas_by_host,
    kind_of,
    multi_node,
    nic_host,
    piece,
    said_by,
    settings_of,
    world_ranks,
)
from topodiag.checks.job_text import NET, ask_for, hosts_word
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Job, Process
from topodiag.model.provenance import Origin

SOCKET_SETTINGS = {"NCCL_IB_DISABLE": None, "NCCL_NET": "socket"}
"""Settings that keep NCCL from RDMA: by name the value that does, None for any but 0."""

RDMA_VARIABLES = ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_IB_TC", "NCCL_IB_SL", "NCCL_IB_QPS_PER_CONNECTION")

NOT_FOR_JOBS = re.compile(
    r"^(?:lo|docker\d*|br-[0-9a-f]+|virbr\d*|veth\w*|cali\w*|vxlan\.calico|flannel[.\w]*|cni\d*|cbr\d*|lxcbr\d*"
    r"|lxdbr\d*|podman\d*|kube-\w+|nodelocaldns|dummy\d*|tunl\d*|usb\d*)$"
)
"""Interfaces that exist on every node with the same address, or lead to this node only."""

INTERFACE = re.compile(r"(?:\[\d{1,4}\]|OOB |\bUsing )\s*([A-Za-z][\w.\-]{0,30}):")
LINK_LOCAL = re.compile(r":\[?fe[89ab][0-9a-f]:", re.I)
UNREACHED = re.compile(r"[Cc]onnect.{0,120}(?:No route to host|[Nn]etwork is unreachable|timed out)")
NO_INTERFACE = ("no socket interface found", "no usable listening interface", "no interface found")


class SocketsInsteadOfRdma(JobCheck):
    """NET001: NCCL uses sockets between nodes

    What it finds
        Traffic between nodes over NET/Socket: on all nodes although RDMA devices are listed somewhere, by a setting,
        or on some nodes only. Without a trace of RDMA hardware it is told as information, with what it costs.

    Why it matters
        TCP through the kernel brings 1 to 3 GB/s for each interface, copied through host memory by a CPU thread, where
        a 400 Gb/s NIC brings 48 GB/s; NCCL falls back to it without an error. The ring of a job with one such node is
        as slow as that node.

    Evidence it reads
        `Using network`, `NET/IB : Using` or `No device found`, `via NET/Socket/`, NCCL_IB_DISABLE and NCCL_NET, and the
        system print.

    When it stays silent
        One node (or one NVLink domain): nothing crosses the network. A plugin (OFI, SHARP) carries the traffic. No
        line says which network was taken: unknown.

    How to confirm
        grep -h 'Using network' LOGS | sort | uniq -c
        ibv_devinfo | grep -E 'hca_id|state'              in the container of the job
        ls /dev/infiniband                                missing in a container that was not given the devices

    How to fix
        Unset NCCL_IB_DISABLE and NCCL_NET. In containers: pass /dev/infiniband in, allow locked memory (ulimit -l
        unlimited), install libibverbs with the provider (rdma-core). On cloud instances with EFA: the OFI plugin.

    References
        NCCL src/transport/net_socket.cc, src/plugin/net.cc v2.30; nccl issues 229 and 489; NCCL environment variables.
    """

    id = "NET001"
    title = "NCCL uses sockets between nodes"

    def judge(self, job: Job) -> Outcome:
        if not multi_node(job) and not (piece(job) and any(process.said("no hca") for process in job.processes)):
            return self.not_applicable(job, "no traffic between nodes")
        networks = _networks(job)
        if not networks:
            return self.unknown(job, f"no line says which network NCCL took; {ask_for(job, *NET)}")
        coverage = Coverage(len(networks), len(job.hosts), "nodes")
        sockets = [host for host, used in networks.items() if used == {"socket"}]
        if not sockets:
            return self.clean(job, "", coverage)
        return self.found(job, [self._report(job, networks, sockets, coverage)], coverage)

    def _report(self, job: Job, networks: dict[str, set[str]], sockets: list[str], coverage: Coverage) -> Finding:
        listed = hcas_by_host(job)
        rate = max((sum(hca.speed_mbps or 0 for hca in hcas.values()) / 8000 for hcas in listed.values()), default=0.0)
        with_rdma = [host for host, hcas in listed.items() if hcas]
        others = [host for host in networks if host not in sockets]
        settings = [
            given
            for name, value in SOCKET_SETTINGS.items()
            for _, given in settings_of(job, name).get(name, [])
            if (given.value.strip() not in ("", "0") if value is None else given.value.strip().lower() == value)
        ]
        meant = bool(settings_of(job, *RDMA_VARIABLES))
        speed = _socket_gbs(job)
        cost = Cost(text="TCP through the kernel: 1 to 3 GB/s for each interface, and no GPUDirect RDMA")
        if 0 < speed < rate:
            text = f"NCCL reckons {speed:g} GB/s for a node's interface, and {rate:g} GB/s for its RDMA devices"
            cost = Cost(rate - speed, 1 - speed / rate, text)
        elif speed:
            cost = Cost(text=f"NCCL reckons {speed:g} GB/s for the interface of a node, and no GPUDirect RDMA")
        severity, sure = Severity.INFO, Confidence.HIGH
        message = (
            f"sockets carry the traffic between {plural(len(job.hosts), 'node')}: no RDMA device is in the evidence"
        )
        if not multi_node(job):
            sure = Confidence.MEDIUM
            message = f"{hosts_word(sockets)} has sockets only for other nodes: NCCL found no RDMA device"
        if others:
            severity = Severity.ERROR
            theirs = sorted({value for host in others for value in networks[host]})
            message = f"sockets on {hosts_word(sockets)}, {'/'.join(theirs)} elsewhere"
        elif with_rdma:
            severity = Severity.ERROR
            message = f"sockets carry the traffic although {hosts_word(with_rdma)} list RDMA devices"
        elif settings:
            severity, sure = Severity.WARNING, Confidence.MEDIUM
            message = f"{settings[0].name}={settings[0].value} keeps NCCL on sockets between nodes"
        elif meant:
            severity, sure = Severity.WARNING, Confidence.MEDIUM
            message = "sockets carry the traffic although the settings are for RDMA devices"
        numbers = [number for host in sockets for number, _ in by_host(job).get(host, [])]
        return self.finding(
            severity,
            message,
            observed=f"NET/Socket on {hosts_word(sockets)}" + "".join(f"; {s.name}={s.value}" for s in settings[:2]),
            expected="NET/IB, or the plugin of the site's fabric, on every node",
            fix=(
                *(f"unset {name}" for name in dict.fromkeys(s.name for s in settings)),
                "`ibv_devinfo` in the job's container: pass /dev/infiniband in, and rdma-core with the NIC's provider",
                "on cloud instances with their own fabric: load its NCCL plugin",
            ),
            nodes=sockets,
            ranks=world_ranks(job, numbers),
            cost=cost,
            evidence=[*(s.origin for s in settings[:2]), *_socket_places(job)],
            coverage=coverage,
            confidence=sure,
        )


def _networks(job: Job) -> dict[str, set[str]]:
    """What each host used between nodes, in lower case: from its processes, else from its connections."""
    made: dict[str, set[str]] = {}
    for host, group in by_host(job).items():
        said = {process.network.lower() for _, process in group if process.network}
        if said:
            made[host] = said
    conns = job.connections
    for at in between_nodes(job):
        host = nic_host(conns, at)
        if host and host not in made:
            made[host] = {kind_of(conns, at).partition("/")[2].lower()}
    return made


def _socket_gbs(job: Job) -> float:
    """GB/s that NCCL reckons for one node's interfaces, 0 if it did not print them."""
    best = 0.0
    for system in (system for communicator in job.communicators[:1] for system in communicator.systems.values()):
        best = max(best, sum(net.speed_gbs or 0.0 for net in system.of_kind("NET") if not net.guid.strip("0x")))
    return best


def _socket_places(job: Job) -> list[Origin | None]:
    places: list[Origin | None] = [
        where
        for kind in ("network", "no hca")
        for _, text, where in said_by(job, kind)
        if "Using network IB" not in text
    ]
    for at in between_nodes(job):
        if kind_of(job.connections, at) == "NET/Socket":
            places.append(job.connections.origin(at))
            break
    return places[:4]


class WrongInterface(JobCheck):
    """NET002: the wrong interface is used for bootstrap or data

    What it finds
        A job of several nodes that meets over loopback, docker0, a bridge or an overlay's own interface; or no
        interface at all that fits NCCL_SOCKET_IFNAME; nodes that meet over IPv6 link-local here and another network
        there; and, before init was complete, connects to a node without a route or an answer.

    Why it matters
        docker0 and virbr0 have the same address on every node: ranks connect to themselves and init hangs or fails
        with `connection refused`. An overlay works and carries all data of NET/Socket through the host's CPU.

    Evidence it reads
        `Bootstrap: Using`, `NET/Socket : Using`, `OOB` behind `NET/IB : Using`, NCCL_SOCKET_IFNAME, and warnings of the
        bootstrap.

    When it stays silent
        One node: any interface does. Addresses are not judged, only names: clouds number theirs as they like.

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

    def judge(self, job: Job) -> Outcome:
        found = [*self._none(job)]
        several = len(job.hosts) > 1 or piece(job)
        if len(job.hosts) > 1:
            found += self._wrong(job)
            found += self._link_local(job)
        world = job.world
        if several and not (world is not None and world.init_complete):
            found += self._unreachable(job)
        if found:
            return self.found(job, found)
        if not several:
            return self.not_applicable(job, "one node: any interface does")
        told = sum(bool(process.bootstrap) for process in job.processes)
        if not told:
            return self.unknown(job, f"no line names the interface of the bootstrap; {ask_for(job, *NET)}")
        return self.clean(job, "", Coverage(told, len(job.processes), "processes"))

    def _none(self, job: Job) -> list[Finding]:
        events = [event for event in job.events if any(words in event.text.lower() for words in NO_INTERFACE)]
        if not events:
            return []
        wanted = settings_of(job, "NCCL_SOCKET_IFNAME").get("NCCL_SOCKET_IFNAME", [])
        value = f" that fits NCCL_SOCKET_IFNAME={wanted[0][1].value}" if wanted else ""
        hosts = list(dict.fromkeys(event.host for event in events))
        return [
            self.finding(
                Severity.ERROR,
                f"NCCL found no interface{value} on {hosts_word(hosts)}",
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
            )
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

    def _unreachable(self, job: Job) -> list[Finding]:
        """Connects of sockets that no answer came to; `refused` is a process that is gone, and not told here."""
        events = [e for e in job.events if e.kind == "connect" and e.level == "WARN" and UNREACHED.search(e.text)]
        if not events:
            return []
        hosts = list(dict.fromkeys(event.host for event in events if event.host))
        used = sorted({name for process in job.processes if process.host in hosts for name in _interfaces(process)})
        peers = list(dict.fromkeys(event.details["peer"] for event in events if event.details.get("peer")))
        return [
            self.finding(
                Severity.ERROR,
                f"{hosts_word(hosts) or 'a node'} cannot reach {', '.join(peers[:3]) or 'another node'}"
                + (f" over {'/'.join(used[:3])}" if used else ""),
                observed=events[0].text.strip()[:160],
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
                evidence=[event.origin for event in events],
                confidence=Confidence.MEDIUM,
            )
        ]

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
                    f"{name} is used between nodes by {len(group)} processes on {hosts_word(hosts)}",
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
                )
            )
        return made


def _interfaces(process: Process) -> set[str]:
    """Names of the interfaces that a process says it uses for bootstrap, sockets, or out of band."""
    names = {process.bootstrap.partition(":")[0].strip()} if ":" in process.bootstrap else set()
    if process.network.lower() == "socket":
        for message in process.said("sockets"):
            names.update(INTERFACE.findall(message.text))
    return names - {""}


def _place(process: Process) -> Origin | None:
    messages = process.said("bootstrap") or process.said("sockets")
    return messages[0].origin if messages else process.origin
