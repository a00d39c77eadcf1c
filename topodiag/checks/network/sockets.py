"""What NCCL chose between nodes: sockets instead of RDMA, and the wrong interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import chain, islice
from math import fsum

from topodiag.checks.interface import JobCheck, hosts_word
from topodiag.checks.shared.devices import has_no_adapter
from topodiag.checks.shared.job import logs
from topodiag.checks.shared.job.first_error import first_error
from topodiag.checks.shared.job.text import ask_for
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Cost, Coverage, Outcome, Severity
from topodiag.model.job import GivenSetting, Job, Message, Process
from topodiag.model.job_wires import nics_up, socket_gbs
from topodiag.model.provenance import Origin
from topodiag.words.units import in_gbs, plural

SOCKET_SETTINGS = {"NCCL_IB_DISABLE": None, "NCCL_NET": "socket"}
"""Settings that keep NCCL from RDMA: by name the value that does, None for any but 0."""

IPOIB = regex(r"\b(ib(?:\d{1,3}|[psP]\d[\w]{0,12})):")
"""Ports of InfiniBand devices, as the kernel and udev name their interfaces: ib0, ibp12s0, ibs3 (IPoIB)."""

NONE = "no network"
"""What a process has that found no RDMA device and says of nothing else that it took."""

OFI_TCP = "libfabric over tcp"
"""What a process has whose OFI plugin took a provider of libfabric that is sockets again."""


NOT_OF_NETWORKS = frozenset({"cuda", "memory", "version", "duplicate gpu", "connect"})
"""Kinds of first errors that sockets bring about no more than RDMA does."""

NAMES_DEVICES = "NCCL_IB_HCA"
"""Who sets it names RDMA devices that are there. Other settings of NET/IB are copied from script to script."""


Networks = Mapping[str, Set[str]]
"""What each host used between nodes, in lower case."""

Cause = tuple[Severity, str, Confidence]
"""Why sockets carry the traffic: how bad, in words, and how sure that is."""


class SocketsInsteadOfRdma(JobCheck, id="NET001"):
    """NET001: NCCL uses sockets between nodes

    What it finds
        Traffic between nodes over NET/Socket: on all nodes although RDMA devices are listed somewhere or named by
        NCCL_IB_HCA, on some nodes only, by an OFI plugin that found no fabric (libfabric's provider tcp), or on nodes
        whose captures show RDMA NICs that are up: then the job's container lies between. Without a trace of RDMA
        hardware, as by a setting or a library alone: info, with the cost, and the job is not called healthy before
        captures show that its machines have no adapter for RDMA.

    Why it matters
        TCP through the kernel carries 1 to 3 GB/s per interface, because a CPU thread copies through host memory. A
        400 Gb/s NIC carries 48 GB/s. NCCL falls back to TCP without an error. One node on sockets slows the ring of
        the whole job.

    Evidence it reads
        `Using network`, `NET/IB : Using` or `No device found`, `via NET/Socket/`, NCCL_IB_DISABLE and NCCL_NET, the
        names of interfaces, and the system print. In a diagnosis, captures of the same machines: NICs with active
        ports.

    When it stays silent
        One node (or one NVLink domain): nothing crosses the network. A plugin (OFI, SHARP) carries the traffic over a
        fabric. Without a trace of RDMA hardware where a log of one node ends with an error of CUDA, of memory, of
        versions or of a connection. No line says which network was taken: unknown.

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

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        shown = _without_rdma(judged) or _over_sockets(judged) or bool(_tcp_providers(judged))
        if not logs.multi_node(judged) and not (logs.piece(judged) and shown):
            return self.not_applicable(judged, "no traffic between nodes")
        networks = _networks(judged)
        if not networks:
            return self.unknown(judged, f"no line says which network NCCL took; {ask_for(judged)}")
        coverage = Coverage(len(networks), len(judged.hosts), "nodes")
        sockets = tuple(host for host, used in networks.items() if used <= {"socket", NONE, OFI_TCP})
        if not sockets:
            return self.clean(judged, "", coverage)
        settings = _against_rdma(judged)
        severity, message, confidence = _cause(judged, networks, sockets, settings)
        if severity is Severity.INFO and _ended_by_itself(judged):
            return self.clean(judged, "no trace of RDMA, and another error ended this node's processes", coverage)
        tcp = any(OFI_TCP in networks[host] for host in sockets)
        finding = self.finding(
            self.where(sockets, ranks=logs.ranks_on(judged, sockets)),
            "sockets",
            message,
            severity=severity,
            observed=f"{'NET/OFI with provider tcp' if tcp else 'NET/Socket'} on {hosts_word(sockets)}"
            + "".join(f"; {s.name}={s.value}" for s in settings[:2]),
            fix=(
                *(f"unset {name}" for name in dict.fromkeys(s.name for s in settings)),
                *self._given_to_pods(judged, sockets),
                *self.steps("devices of the container"),
            ),
            cost=_cost(judged, sockets),
            evidence=[
                *_tcp_providers(judged)[:2],
                *settings[:2],
                *(ports[0].state for ports in list(nics_up(judged, sockets).values())[:2] if ports),
                *_socket_places(judged),
            ],
            confidence=confidence,
        )
        return self.any_of(judged, [finding], coverage)

    def _given_to_pods(self, job: Job, sockets: Sequence[str]) -> tuple[str, ...]:
        """Where NICs are up on the machine and the job's processes have none, the container lies between."""
        host = next(iter(nics_up(job, sockets)), None) if _without_rdma(job) else None
        if host is None:
            return ()
        machine = job.machines[host].host
        return self.steps("devices of the pod", pod=f" ({host} runs on {machine})" if host != machine else "")


def _against_rdma(job: Job) -> tuple[GivenSetting, ...]:
    """The settings in force that keep NCCL from RDMA."""

    def keeps(value: str, wanted: str | None) -> bool:
        return value not in ("", "0") if wanted is None else value.lower() == wanted

    return tuple(
        given
        for name, wanted in SOCKET_SETTINGS.items()
        for _, given in logs.settings_of(job, name).get(name, [])
        if keeps(given.value.strip(), wanted)
    )


def _cause(job: Job, networks: Networks, sockets: Sequence[str], settings: Sequence[GivenSetting]) -> Cause:
    """Why sockets carry the traffic: beside RDMA that other nodes use, that the log lists, or that captures of the
    machines show; else by what the log says of the software."""
    given = f"{settings[0].name}={settings[0].value}" if settings else ""
    others = [host for host in networks if host not in sockets]
    with_rdma = [host for host, hcas in logs.hcas_by_host(job).items() if hcas]
    if others:
        theirs = "/".join(sorted({value.upper() for host in others for value in networks[host]}))
        text = f"TCP sockets on {hosts_word(sockets)}, {theirs} on the other nodes"
    elif with_rdma:
        text = f"sockets carry the traffic although {hosts_word(with_rdma)} list RDMA devices"
    elif captured := nics_up(job, sockets):  # which the job's processes do not see, or were told not to use
        counts = {len(ports) for ports in captured.values()}
        many = f"{max(counts)} RDMA NICs" if len(counts) == 1 and max(counts) > 1 else "RDMA NICs"
        up = f"{hosts_word(list(captured))} {'has' if len(captured) == 1 else 'have'} {many} up"
        unseen = ", and NCCL finds none of them" if _without_rdma(job) else ""
        text = f"{given}: sockets, although {up}" if given else f"sockets carry the traffic, although {up}{unseen}"
    else:
        return _without_devices(job, networks, sockets, given)
    return Severity.ERROR, text, Confidence.HIGH if logs.multi_node(job) else Confidence.MEDIUM


def _without_devices(job: Job, networks: Networks, sockets: Sequence[str], given: str) -> Cause:
    """The plugin, a setting, a library that is missing, an interface of an InfiniBand device, or no trace of one. A
    setting that keeps NCCL from RDMA and a library that is not there cost nothing on machines without RDMA devices, and
    are mostly found there."""
    named, several, severity = hosts_word(sockets), logs.multi_node(job), Severity.WARNING
    without_verbs, ports = _no_verbs(job) is not None, _ipoib(job, sockets)
    no_device = "no RDMA device is in the evidence"
    nodes = f"sockets carry the traffic between {plural(len(job.hosts), 'node')}"
    if any(OFI_TCP in networks[host] for host in sockets):
        text = f"{named}: the OFI plugin took libfabric's provider tcp, as it found no device of a fabric"
    elif given:
        severity, text = Severity.INFO, f"{given} keeps NCCL on sockets between nodes: {no_device}"
    elif logs.settings_of(job, NAMES_DEVICES):
        text = f"sockets carry the traffic although {NAMES_DEVICES} names RDMA devices"
    elif without_verbs and several:
        text = f"{nodes}: NCCL cannot load libibverbs, and whether the hosts have RDMA NICs is not seen"
    elif without_verbs:
        severity, text = Severity.INFO, f"{named}: NCCL has sockets only, as it cannot load libibverbs"
    elif ports:
        severity = Severity.WARNING if several else Severity.INFO
        text = f"{named}: NCCL found no RDMA device and took sockets, although {ports[0]} is a port of an"
        text += " InfiniBand device"
    elif several:
        severity, text = Severity.INFO, f"{nodes}: {no_device}"
    else:
        trace = "NCCL found no RDMA device" if _without_rdma(job) else "no RDMA device is in the log"
        severity, text = Severity.INFO, f"{named} has sockets only for other nodes: {trace}"
    if severity is Severity.WARNING:
        return severity, text, Confidence.MEDIUM
    bare = all(host in job.machines and has_no_adapter(job.machines[host]) for host in sockets)
    return severity, text, Confidence.HIGH if bare else Confidence.LOW


def _cost(job: Job, sockets: Sequence[str]) -> Cost:
    """What NCCL assumes of the sockets, beside the RDMA devices of the best node where some are listed or captured."""
    devices = logs.hcas_by_host(job).values()
    rate = max((sum(hca.speed_mbps or 0 for hca in hcas.values()) / 8000 for hcas in devices), default=0.0)
    captured = nics_up(job, sockets).values()
    rate = max(rate, max((fsum(port.rate_gbps.value or 0 for port in ports) / 8 for ports in captured), default=0.0))
    speed = socket_gbs(job)
    if 0 < speed < rate:
        text = f"NCCL assumes {in_gbs(speed)} for a node's interface, and {in_gbs(rate)} for its RDMA devices"
        return Cost(rate - speed, 1 - speed / rate, text)
    if speed:
        return Cost(text=f"NCCL assumes {in_gbs(speed)} for the interface of a node, and no GPUDirect RDMA")
    return Cost(text="TCP through the kernel: 1 to 3 GB/s for each interface, and no GPUDirect RDMA")


def _networks(job: Job) -> dict[str, set[str]]:
    """What each host used between nodes, in lower case: from its processes, else from its connections."""
    networks: dict[str, set[str]] = {}
    for host, group in logs.by_host(job).items():
        texts = {process.network.lower() for _, process in group if process.network}
        if any(_provider_tcp(process) is not None for _, process in group):
            networks[host] = {OFI_TCP}
        elif texts:
            networks[host] = texts
        elif any(process.said("no hca") for _, process in group):
            networks[host] = {NONE}
    for use in logs.net_uses(job.connections):
        if use.host not in networks or networks[use.host] == {NONE}:
            networks[use.host] = {logs.transport_kind(use.via).partition("/")[2].lower()}
    return networks


def _provider_tcp(process: Process) -> Message | None:
    """What a process says of an OFI plugin that goes over sockets."""
    return next((message for message in process.said("ofi") if "tcp provider" in message.details), None)


def _tcp_providers(job: Job) -> list[Origin | None]:
    return [message.origin for message in map(_provider_tcp, job.processes) if message is not None]


def _without_rdma(job: Job) -> bool:
    return any(process.said("no hca") for process in job.processes)


def _over_sockets(job: Job) -> bool:
    """Whether processes took sockets for other nodes, or say that data goes over them."""
    if any(process.network.lower() == "socket" for process in job.processes):
        return True
    return any(logs.transport_kind(use.via) == "NET/Socket" for use in logs.net_uses(job.connections))


def _ended_by_itself(job: Job) -> bool:
    """Whether a log of one node ends with an error that no RDMA device would have kept away: that it has sockets only
    is then no part of its trouble, and may be no fault at all."""
    first = None if logs.multi_node(job) else first_error(job)
    return first is not None and first.kind in NOT_OF_NETWORKS


def _no_verbs(job: Job) -> Origin | None:
    """The line by which NCCL cannot load the library of RDMA."""
    lines = (*logs.named_by(job, "no verbs", "ib note", "retry"), *job.events)
    return next((line.origin for line in lines if "no verbs" in line.details and line.origin is not None), None)


def _ipoib(job: Job, hosts: Sequence[str]) -> list[str]:
    """Interfaces of InfiniBand devices (IPoIB) that processes of these hosts name."""
    near = [process for host in hosts for _, process in logs.by_host(job).get(host, [])]
    texts = [[process.bootstrap, *(message.text for message in process.said("sockets"))] for process in near]
    return list(dict.fromkeys(name for text in chain(*texts) for name in IPOIB.findall(text)))


def _socket_places(job: Job) -> list[Origin | None]:
    places: list[Origin | None] = [_no_verbs(job)]
    lines = logs.said_by(job, "network", "no hca")
    places += [line.origin for line in lines if "Using network IB" not in line.text]
    uses = (use for use in logs.net_uses(job.connections) if logs.transport_kind(use.via) == "NET/Socket")
    places += [job.connections.origin(use.first) for use in islice(uses, 1)]
    return places[:4]
