"""Ports, RDMA, GPUDirect and plugins: what follows where the network is degraded or not used as it could be."""

from __future__ import annotations

from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.verdict import clearing
from topodiag.verdict.interface import Reach, Rule
from topodiag.verdict.job_errors import JOB_FAILS, error_is, error_says
from topodiag.verdict.scene import Scene

_OF_WIRE = ("ib completion", "port", "ib async", "connect", "timeout", "watchdog", "mismatch", "other")
"""Kinds of first errors that a port or path which fails leaves."""


def _of_this_node(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Whether what a node's own NICs bring about may follow: that a node lacks devices, or takes sockets, comes from
    no port of another node."""
    own = other.id in ("NIC005", "NET001") or (other.id == "NET007" and "Socket" in other.message)
    return not own or scene.same_node(cause, other)


class PortDown(Rule):
    """A port that is down when the job begins is missing from NCCL's list: rings leave by the other NICs, rails no
    longer meet, or sockets take over. `ibstat` beside the `NET/IB : Using` line settles it."""

    causes = ("NIC001",)
    leads_to = ("NIC005", "NET001", "NET003", "NET004", "NET006", "NET007", "BEN001", "JOB015", "BEN005")
    because = "NCCL goes without the port that is down"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return _of_this_node(cause, other, scene)

    def contradicted_by(self, cause: Finding, scene: Scene) -> tuple[Origin, ...]:
        return clearing.devices_listed(scene, cause.where.nodes, cause.where.nics)


class GateRefuses(Rule):
    """A test before the job counts the ports or the adapters of its node, finds too few, and ends the job with a code:
    its program did not begin."""

    causes = ("NIC001", "NIC005")
    leads_to = ("JOB009",)
    because = "what tests the node before the job refuses it"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return "error code" in other.message and " by the word of " in cause.message


class PortFails(Rule):
    """A port that goes down or drops frames in the run: its own side reports flushed work, its peers report exhausted
    retries some seconds later. The host with port events is the owner, the others are innocent."""

    causes = ("NIC001", "NIC003", "FLT004")
    leads_to = ("NET008", "NET010", "JOB005", "JOB006", *JOB_FAILS)
    because = "the peers of a port that fails get no answer"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if clearing.devices_left_out(scene, cause.where.nodes, cause.where.nics):
            return False  # it was down before the job began, and no connection went over it
        return other.id != "JOB005" or error_is(other, scene, *_OF_WIRE)


class PortDrops(Rule):
    """Symbol errors, discards and retransmissions cost bandwidth long before a connection fails."""

    causes = ("NIC003", "NET009")
    leads_to = ("BEN001", "JOB015", "BEN003")
    because = "what is lost on the network is sent again"


class SlowPort(Rule):
    """A port below the rate of its peers is as slow as it says: every collective over its rail waits for it."""

    causes = ("NIC002",)
    leads_to = ("NET007", "NET006", "BEN001", "JOB015", "BEN005")
    because = "every collective waits for the slower port"


class PartSlowsGroups(Rule):
    """A NIC, a link or a GPU below its rate slows each communicator that has it, and no other one: they are slower than
    communicators of the same size elsewhere."""

    causes = ("NIC001", "NIC002", "NIC003", "PCI001", "PCI002", "PCI003", "NVL001", "NVL002", "NVL003", "GPU004")
    leads_to = ("JOB011", "JOB015")
    because = "each collective over the slow part is as slow as the part"
    reach = Reach.NODE


class NicsUnlike(Rule):
    """NICs with another link layer or MTU than their peers: queue pairs cannot be connected, or large messages are
    lost."""

    causes = ("NIC004",)
    leads_to = ("NET008", "NET007", "JOB005", "JOB006", *JOB_FAILS)
    because = "NICs that differ in link layer or MTU do not connect"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, *_OF_WIRE)


class SmallPackets(Rule):
    """A NIC with a smaller MTU than its peers needs more packets for the same data and becomes the slow rail: some
    percent of the bandwidth. A larger loss has another cause beside it."""

    causes = ("NIC004",)
    leads_to = ("BEN001", "JOB015")
    because = "a smaller MTU needs more packets for the same data"
    in_part = True

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return " MTU" in cause.message


class LossyClass(Rule):
    """RoCE traffic in a class without flow control is dropped under load: retries are exhausted."""

    causes = ("NET009",)
    leads_to = ("NET008", "NIC003", "JOB005", "JOB006")
    because = "frames of a class without flow control are dropped under load"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, "ib completion", "watchdog", "timeout")


class MissingNic(Rule):
    """A node with fewer NICs than its peers: NCCL uses fewer, rails do not meet, and all wait for this node."""

    causes = ("NIC005",)
    leads_to = ("NET003", "NET004", "NET006", "NET007", "BEN001", "JOB015", "BEN005")
    because = "the node has fewer NICs than the others"

    def contradicted_by(self, cause: Finding, scene: Scene) -> tuple[Origin, ...]:
        return clearing.devices_listed(scene, cause.where.nodes, cause.where.nics)


class RdmaErrorEndsJob(Rule):
    """A work request that failed ends the communicator: the first error of the job, and the waits and closed
    connections that follow."""

    causes = ("NET008",)
    leads_to = ("JOB005", "JOB006", *JOB_FAILS)
    because = "a failed work request ends the communicator"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, *_OF_WIRE[:4], "watchdog", "timeout")


class PluginMissing(Rule):
    """Without its network plugin NCCL takes its own IB or sockets: less bandwidth, or none."""

    causes = ("NET005",)
    leads_to = ("NET001", "GDR001", "NET002", "NET007", "NET003", "NET006", "BEN001", "JOB015")
    because = "NCCL went on without the plugin that brings this network"


class PluginFailsJob(Rule):
    """Where the plugin is asked for by name (NCCL_NET, NCCL_NET_PLUGIN), NCCL does not go on without it."""

    causes = ("NET005",)
    leads_to = ("JOB005", "JOB006", *JOB_FAILS)
    because = "the network that is asked for by name did not load"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, "plugin") or error_says(other, scene, "network", "NET/")


class SocketsInUse(Rule):
    """Sockets instead of RDMA: no GPUDirect, a fraction of the bandwidth, a high latency; where only some nodes
    use them, connections of two kinds meet and fail with `wrong type`."""

    causes = ("NET001",)
    leads_to = ("NET007", "GDR001", "NET003", "NET006", "NET010", "BEN001", "JOB015", "BEN002")
    because = "the traffic between nodes goes over TCP sockets"

    def contradicted_by(self, cause: Finding, scene: Scene) -> tuple[Origin, ...]:
        return clearing.rdma_in_use(scene, cause.where.nodes)


class NetworksMeet(Rule):
    """Nodes on different networks cannot connect: `wrong type 3 != 4`, or a hang in the first collective."""

    causes = ("NET001", "NET007", "NET005")
    leads_to = ("JOB005", "JOB006", *JOB_FAILS)
    because = "nodes that use different networks do not connect"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if "differ" not in cause.message and cause.id != "NET007" and "some" not in cause.message:
            return False
        if other.id != "JOB005" or error_is(other, scene, "mismatch", "connect", "watchdog", "timeout"):
            return True
        return error_says(other, scene, "wrong type 3 != 4", "wrong type 4 != 3")


class WrongInterface(Rule):
    """An interface that does not lead to the other nodes: connects fail or time out, and init never ends."""

    causes = ("NET002",)
    leads_to = ("JOB005", "JOB006", "NET001", *JOB_FAILS)
    because = "the interface in use does not lead to the other nodes"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, "bootstrap", "connect", "timeout", "watchdog", "other")


class AddressUnknown(Rule):
    """A node is asked for by an address of another interface: nobody offers it, and the scheduler has no place."""

    causes = ("NET002",)
    leads_to = ("JOB009",)
    because = "what is asked for has an address that no node has, so that no node fits"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return "no node of the cluster has" in cause.message and "there is no place" in other.message


class SlowInterface(Rule):
    """Data over a bridge or a management interface is as slow as that interface."""

    causes = ("NET002",)
    leads_to = ("BEN001", "JOB015", "BEN002")
    because = "the data passes the wrong interface"


_BY_ITSELF = regex(r"\b(?:crashed|error code|an exception)\b")
"""How a program ends that met an error: nobody ended it from outside."""


class MemoryRefused(Rule):
    """A kernel that does not know an address as a GPU's refuses to register it: the program that asks ends there, and
    its peers wait for it. `lsmod | grep peer` on the node settles it."""

    causes = ("GDR001",)
    leads_to = ("JOB005", "JOB009", *JOB_FAILS)
    because = "memory of a GPU that cannot be registered ends the program that needs it"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if "cannot be registered" not in cause.message:
            return False
        if other.id == "JOB009":
            return _BY_ITSELF.search(other.message) is not None
        return other.id != "JOB005" or error_is(other, scene, "memory", "connect", "other")


class NoGpuDirect(Rule):
    """Without GPUDirect RDMA all data between nodes is copied through host memory: CPU sockets and channel counts then
    matter, and the job is as slow as its slowest node."""

    causes = ("GDR001", "GDR002")
    leads_to = ("BEN001", "JOB015", "BEN005", "NET007", "NUM001", "NET006", "GDR002")
    because = "data between nodes is copied through host memory"

    def contradicted_by(self, cause: Finding, scene: Scene) -> tuple[Origin, ...]:
        return clearing.gpudirect_in_use(scene, cause.where.nodes) if cause.id == "GDR001" else ()


class FarNic(Rule):
    """A GPU and a NIC on different CPU sockets: NCCL refuses GPUDirect RDMA at that distance, and traffic crosses the
    link between the sockets."""

    causes = ("NUM001",)
    leads_to = ("GDR002", "GDR001", "NET004", "BEN001", "JOB015", "BEN002")
    because = "the traffic of this GPU crosses the link between the CPU sockets"
    reach = Reach.NODE


class LinksInUse(Rule):
    """The bandwidth between nodes is that of the NICs and channels in use."""

    causes = ("NET003", "NET004", "NET006", "NET007", "P2P001", "P2P002", "NUM002", "TOP003", "HST003")
    leads_to = ("BEN001", "JOB015", "BEN002", "BEN005")
    because = "the bandwidth is that of the links in use"


class TransportAndChannels(Rule):
    """P2P that is off or refused leaves shared memory, and fewer channels."""

    causes = ("P2P002", "P2P001", "NET003", "NIC005")
    leads_to = ("P2P001", "NET006")
    because = "NCCL's search sees only the links that it may use"
    reach = Reach.NODE
