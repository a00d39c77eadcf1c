"""What each source says of each machine that it names: its names, its addresses, and what only it has.

A voice is one name in one source. Which voices are of one machine is decided in identity.py.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from topodiag.checks.shared.devices import NOT_FOR_JOBS, addresses_of_node
from topodiag.lazy import dataclass, regex
from topodiag.model.clock_text import booted
from topodiag.model.node import Node
from topodiag.model.provenance import Origin, Topic
from topodiag.model.result import Case
from topodiag.words.hosts import ADDRESS, address_in_name, address_of, names_one_machine
from topodiag.words.units import grouped

if TYPE_CHECKING:
    from topodiag.model.job import Job, Process

NOBODY = frozenset({"", "localhost", "localhost.localdomain", "localhost4", "localhost6", "(none)"})
"""Names that every machine has before anybody gives it one."""
_NOT_HEX = regex(r"[^0-9a-f]")
_GUID_DIGITS = 16
REDACTED = regex(r"host-[0-9a-f]{6,16}")
"""What the collector writes for a host name that it hides (docs/collector.md)."""


@dataclass(frozen=True, slots=True)
class NamedHost:
    """A machine as one source names it. `source` is the kind of evidence, `group` tells its texts apart: two names of
    one group are meant as two machines. `serials` are GUIDs of adapters and UUIDs of GPUs, `buses` the bus ids of the
    GPUs in use, `nics` names of RDMA devices. `real`: the machine or the site gave the name, not topodiag's own
    reading of a file's name. `own`: the name stands where a machine names itself, so that it is no pod's.
    `addresses` hold those that stand in the name, too."""

    name: str
    source: str
    group: str
    addresses: frozenset[str] = frozenset()
    serials: frozenset[str] = frozenset()
    buses: frozenset[str] = frozenset()
    nics: frozenset[str] = frozenset()
    real: bool = True
    own: bool = False
    node: int = -1
    booted: float | None = None
    """Seconds of the epoch."""
    boot: str = ""
    """The kernel's id of the boot: containers of one machine show the same."""
    origin: Origin | None = None


def voices(case: Case) -> list[NamedHost]:
    """All machines that the case names, captures first, in a stable order."""
    all_voices = [_of_node(number, node) for number, node in enumerate(case.nodes)]
    for number, job in enumerate(case.jobs):
        all_voices += _of_job(number, job)
    for number, run in enumerate(case.runs):
        buses = grouped((device.host, device.bus_id) for device in run.devices if device.bus_id)
        for host in run.hosts:
            own = frozenset(buses.get(host, ()))
            all_voices.append(
                NamedHost(host, "nccl-tests", f"run {number}", in_name(host), buses=own, origin=run.origin)
            )
    for layout in case.layouts:
        all_voices += [NamedHost(host, "hostfile", f"layout {layout.name}", in_name(host)) for host in layout.hosts]
    for cluster in case.clusters:
        all_voices += [NamedHost(name, "cluster", f"cluster {cluster.name}", in_name(name)) for name in cluster.nodes]
    return [voice for voice in all_voices if voice.name]


def in_name(host: str) -> frozenset[str]:
    """The address that a name is, or that EC2 wrote into it."""
    return unique({address_of(host), address_in_name(host)})


def unique(addresses: Iterable[str]) -> frozenset[str]:
    """Those that can be of one machine alone."""
    return frozenset(address for address in addresses if address and names_one_machine(address))


# --- captures -----------------------------------------------------------------------------------------------------


def only_kernel_log(node: Node) -> bool:
    """Whether nothing but the kernel's messages is known of a node."""
    return node.topics <= {Topic.KERNEL_LOG} and not (node.gpus or node.nics or node.pci or node.netdevs)


def _of_node(number: int, node: Node) -> NamedHost:
    name = node.host.partition("#")[0]
    source = "kernel log" if only_kernel_log(node) else "bundle" if node.time.known else "output of tools"
    own = node.time.known or "HOSTNAME" in node.scheduler
    gids = [gid for nic in node.nics for port in nic.ports for gid in port.gids.value or ()]
    buses = frozenset(gpu.bus_id for gpu in node.gpus if gpu.bus_id)
    nics = frozenset(nic.rdma_name or nic.name for nic in node.nics if nic.ports)
    return NamedHost(
        name,
        source,
        f"capture {number}",
        unique((*map(_of_gid, gids), *addresses_of_node(node))) | in_name(name),
        serials_of(node),
        buses,
        nics,
        real=own and not REDACTED.fullmatch(name),
        own=own,
        node=number,
        booted=booted(node),
        boot=node.boot.get("").lower(),
        origin=node.time.origin,
    )


def serials_of(node: Node) -> frozenset[str]:
    """The GUIDs of a node's adapters and ports, and the UUIDs of its GPUs."""
    guids: set[str] = set()
    for nic in node.nics:
        for fact in (nic.node_guid, nic.sys_image_guid, *(port.guid for port in nic.ports)):
            guids.add(guid_of(fact.value or ""))
    uuids = {gpu.uuid.value.lower() for gpu in node.gpus if gpu.uuid.value}
    return frozenset((guids | uuids) - {""})


def guid_of(text: str) -> str:
    """Sixteen hexadecimal digits; "" for another text, and for one that an unset GUID has."""
    digits = _NOT_HEX.sub("", text.lower().removeprefix("0x")) if len(text) <= 40 else ""
    return digits if len(digits) == _GUID_DIGITS and len(set(digits)) > 2 else ""


def _of_gid(gid: str) -> str:
    """The address in a GID of RoCE; a GID of InfiniBand, or one made of the MAC, has none."""
    try:
        address = ipaddress.IPv6Address(gid)
    except ValueError:
        return ""
    return str(address.ipv4_mapped or "")


# --- jobs ---------------------------------------------------------------------------------------------------------


def _of_job(number: int, job: Job) -> Iterator[NamedHost]:
    addresses: dict[str, set[str]] = defaultdict(set)
    serials: dict[str, set[str]] = defaultdict(set)
    buses: dict[str, set[str]] = defaultdict(set)
    nics: dict[str, set[str]] = defaultdict(set)
    first: dict[str, Origin | None] = dict.fromkeys(job.hosts)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for process in job.processes:
        first[process.host] = first.get(process.host) or process.origin
        nics[process.host].update(hca.name for hca in process.hcas)
        texts = (process.bootstrap, *process.addresses, *(message.text for message in process.said("sockets")))
        if (process.host, texts) not in seen:  # ranks of one host say the same
            seen.add((process.host, texts))
            addresses[process.host] |= _of_process(process)
        if process.system is not None:
            serials[process.host].update(guid_of(device.guid) for device in process.system.of_kind("NET"))
    for rank in job.ranks:
        buses[rank.host].add(rank.bus_id)
    for communicator in job.communicators:
        for host, system in communicator.systems.items():
            serials[host].update(guid_of(device.guid) for device in system.of_kind("NET"))
    for address, host in _of_ras(job):
        if host:
            addresses[host].add(address_of(address))
        else:
            yield NamedHost(address, "RAS", f"RAS of job {number}", in_name(address))
    source = "log" if job.processes else "flight recorder"
    for host, origin in first.items():
        named = unique(addresses[host]) | in_name(host)
        serial, bus, nic = (frozenset(held[host] - {""}) for held in (serials, buses, nics))
        yield NamedHost(host, source, f"job {number}", named, serial, bus, nic, origin=origin)


def _of_process(process: Process) -> set[str]:
    """The addresses that a process says are its own, without those of interfaces that every node numbers alike."""
    texts = (process.bootstrap, *(message.text for message in process.said("sockets")))
    pairs = [(match[1], address_of(match[2])) for text in texts for match in ADDRESS.finditer(text)]
    shared = {address for name, address in pairs if NOT_FOR_JOBS.match(name)}
    return ({address for _, address in pairs} | {address_of(address) for address in process.addresses}) - shared


def _of_ras(job: Job) -> Iterator[tuple[str, str]]:
    """The hosts that answers of RAS name, which are addresses, each with the host of the log on which its processes
    run; "" where that is not one. Pids of containers are often the same on each host: they tell nothing."""
    by_address = grouped(process.key for answer in job.ras for process in answer.named if process.host)
    logged = grouped((process.host, process.pid) for process in (job.processes if by_address else ()))
    answered, own = ({host: set(pids) for host, pids in group.items()} for group in (by_address, logged))
    for address, pids in answered.items():
        alike = any(pids & others for other, others in answered.items() if other != address)
        texts = [host for host, there in own.items() if pids <= there] if not alike else []
        yield address, texts[0] if len(texts) == 1 else ""
