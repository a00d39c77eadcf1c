"""What NCCL chose between nodes: sockets instead of RDMA, and the wrong interface."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Never

from topodiag.checks.interface import JobCheck, OneStep
from topodiag.checks.job.evidence import (
    by_host,
    hcas_by_host,
    multi_node,
    net_uses,
    piece,
    said_by,
    settings_of,
    transport_kind,
    world_ranks,
)
from topodiag.checks.job.text import NET, ask_for
from topodiag.checks.shared.words import hosts_word
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.words.fold import plural

SOCKET_SETTINGS = {"NCCL_IB_DISABLE": None, "NCCL_NET": "socket"}
"""Settings that keep NCCL from RDMA: by name the value that does, None for any but 0."""

IPOIB = re.compile(r"\b(ib(?:\d{1,3}|[psP]\d[\w]{0,12})):")
"""Ports of InfiniBand devices, as the kernel and udev name their interfaces: ib0, ibp12s0, ibs3 (IPoIB)."""

RDMA_VARIABLES = ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_IB_TC", "NCCL_IB_SL", "NCCL_IB_QPS_PER_CONNECTION")


class SocketsInsteadOfRdma(OneStep[Job], JobCheck[Never]):
    """NET001: NCCL uses sockets between nodes

    What it finds
        Traffic between nodes over NET/Socket: on all nodes although RDMA devices are listed somewhere, by a setting,
        or on some nodes only. Without a trace of RDMA hardware it is told as information, with what it costs.

    Why it matters
        TCP through the kernel brings 1 to 3 GB/s for each interface, copied through host memory by a CPU thread, where
        a 400 Gb/s NIC brings 48 GB/s; NCCL falls back to it without an error. The ring of a job with one such node is
        as slow as that node.

    Evidence it reads
        `Using network`, `NET/IB : Using` or `No device found`, `via NET/Socket/`, NCCL_IB_DISABLE and NCCL_NET, the
        names of interfaces, and the system print.

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

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
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
        elif ports := _ipoib(job, sockets):
            severity = Severity.WARNING if multi_node(job) else Severity.INFO
            sure = Confidence.MEDIUM
            message = (
                f"{hosts_word(sockets)}: NCCL found no RDMA device and took sockets, although {ports[0]} is a port of"
                " an InfiniBand device"
            )
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
    for use in net_uses(job.connections):
        if use.host and use.host not in made:
            made[use.host] = {transport_kind(use.via).partition("/")[2].lower()}
    return made


def _ipoib(job: Job, hosts: list[str]) -> list[str]:
    """Interfaces of InfiniBand devices (IPoIB) that processes of these hosts name."""
    made: dict[str, None] = {}
    for host in hosts:
        for _, process in by_host(job).get(host, []):
            for text in (process.bootstrap, *(message.text for message in process.said("sockets"))):
                made.update(dict.fromkeys(IPOIB.findall(text)))
    return list(made)


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
    first = next((use.first for use in net_uses(job.connections) if transport_kind(use.via) == "NET/Socket"), None)
    if first is not None:
        places.append(job.connections.origin(first))
    return places[:4]
