"""Settings, limits and topology files: each explains only what it can cause."""

from __future__ import annotations

from topodiag.lazy import regex
from topodiag.model.finding import Finding, Severity
from topodiag.model.provenance import Origin
from topodiag.verdict import clearing
from topodiag.verdict.interface import Reach, Rule
from topodiag.verdict.job_errors import JOB_FAILS, error_is, error_says
from topodiag.verdict.scene import Scene

_NETWORK = ("NET001", "NET003", "NET004", "NET005", "NET006", "NET007", "NET008", "GDR001", "BEN001", "BEN002",
            "JOB015", "JOB005", *JOB_FAILS)  # fmt: skip
_INTERFACE = ("NET002", "NET001", "JOB005", "BEN001", "JOB015", *JOB_FAILS)
_INSIDE = ("P2P001", "P2P002", "NET006", "TOP004", "BEN001", "JOB015", "BEN002")
_GPUDIRECT = ("GDR001", "GDR002", "NET006", "BEN001", "JOB015")
_CHANNELS = ("NET006", "NET007", "BEN001", "JOB015", "BEN003", "JOB005", "JOB006")
_CHOICE = ("BEN001", "JOB015", "BEN002", "BEN003", "JOB005", "JOB006", *JOB_FAILS)
_FILE = ("TOP001", "TOP002", "TOP003", "TOP004", "TOP005", "TOP006", "NET003", "NET004", "NET006", "BEN001", "JOB015",
         "JOB005", *JOB_FAILS)  # fmt: skip

CAN_CAUSE: dict[str, tuple[str, ...]] = {
    "NCCL_IB_DISABLE": _NETWORK, "NCCL_NET": _NETWORK, "NCCL_NET_PLUGIN": _NETWORK, "NCCL_IB_HCA": _NETWORK,
    "NCCL_IBEXT_DISABLE": _NETWORK, "NCCL_IB_GID_INDEX": ("NET008", "JOB005", *JOB_FAILS),
    "NCCL_IB_TC": ("NET009", "NET008", "BEN001", "JOB015"), "NCCL_IB_SL": ("NET009", "NET008", "BEN001", "JOB015"),
    "NCCL_IB_TIMEOUT": ("NET008", "JOB005"), "NCCL_IB_RETRY_CNT": ("NET008", "JOB005"),
    "NCCL_IB_PCI_RELAXED_ORDERING": ("BEN001", "JOB015",), "NCCL_IB_QPS_PER_CONNECTION": ("BEN001", "JOB015",),
    "NCCL_SOCKET_IFNAME": _INTERFACE, "NCCL_OOB_NET_IFNAME": _INTERFACE, "NCCL_SOCKET_FAMILY": _INTERFACE,
    "NCCL_COMM_ID": _INTERFACE,
    "NCCL_P2P_DISABLE": _INSIDE, "NCCL_P2P_LEVEL": _INSIDE, "NCCL_SHM_DISABLE": (*_INSIDE, "NET004"),
    "NCCL_CUMEM_ENABLE": _INSIDE, "NCCL_NVLS_ENABLE": ("NET006", "BEN001", "JOB015"),
    "NCCL_MNNVL_ENABLE": ("NET006", "BEN001", "JOB015"),
    "NCCL_NET_GDR_LEVEL": _GPUDIRECT, "NCCL_NET_GDR_READ": _GPUDIRECT, "NCCL_DMABUF_ENABLE": _GPUDIRECT,
    "NCCL_IB_CUDA_SUPPORT": _GPUDIRECT, "NCCL_GDRCOPY_ENABLE": ("BEN002",),
    "NCCL_CROSS_NIC": ("NET004", "NET008", "BEN001", "JOB015", "JOB005"),
    "NCCL_PXN_DISABLE": ("NET004", "BEN001", "JOB015"),
    "NCCL_MAX_NCHANNELS": _CHANNELS, "NCCL_MIN_NCHANNELS": _CHANNELS, "NCCL_MAX_CTAS": _CHANNELS,
    "NCCL_MIN_CTAS": _CHANNELS, "NCCL_NCHANNELS_PER_NET_PEER": _CHANNELS,
    "NCCL_ALGO": _CHOICE, "NCCL_PROTO": _CHOICE, "NCCL_BUFFSIZE": _CHOICE, "NCCL_NTHREADS": _CHOICE,
    "NCCL_TOPO_FILE": _FILE, "NCCL_GRAPH_FILE": _FILE, "NCCL_TOPO_DUMP_FILE": (), "NCCL_HOSTID": ("PLC007", "P2P001"),
    "NCCL_IGNORE_CPU_AFFINITY": ("NUM002", "BEN002"), "CUDA_VISIBLE_DEVICES": ("JOB004", "GPU001", "P2P001"),
}  # fmt: skip
"""By variable, what it can lead to. A variable that is not here explains nothing."""


_ERROR_WORDS = {
    "NCCL_IB_HCA": ("NET plugin", "not found", "No device", "does not loop back", "does not contain rank"),
    "NCCL_NET": ("NET plugin", "network"),
    "NCCL_NET_PLUGIN": ("plugin",), "NCCL_ALGO": ("algorithm",), "NCCL_PROTO": ("protocol",),
    "NCCL_SOCKET_IFNAME": ("socket interface", "AF_INET"), "NCCL_TOPO_FILE": ("XML", "topo"),
    "NCCL_GRAPH_FILE": ("XML", "graph"),
}  # fmt: skip
"""By variable, words of a first error that it brings about."""


class SettingLeavesOut(Rule):
    """A setting that names exactly the devices which NCCL lacks on a node, while the capture shows their ports up: no
    device is gone, and the setting is the one cause."""

    causes = ("NET003",)
    leads_to = ("NIC005",)
    because = "the setting names the very NICs that are missing, and their ports are up"
    reach = Reach.NODE

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return bool(cause.settings and other.where.nics) and set(other.where.nics) <= set(cause.where.nics)


class SettingDoesIt(Rule):
    """A setting that is in force explains what it can cause, and nothing else: `NCCL_IB_DISABLE=1` explains sockets,
    not a missing NVLink. Unset it and run again."""

    causes = ("ENV001", "ENV002", "ENV003", "JOB003")
    leads_to = tuple(sorted({each for made in CAN_CAUSE.values() for each in made} - {"JOB003"}))
    because = "the setting is what does it"

    def contradicted_by(self, cause: Finding, scene: Scene) -> tuple[Origin, ...]:
        """A setting that is written somewhere and keeps NCCL from RDMA is not in force where NCCL uses RDMA."""
        if not any(name == "NCCL_IB_DISABLE" for name, _ in cause.settings):
            return ()
        return clearing.rdma_in_use(scene, cause.where.nodes)

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        able = {each for name, _ in cause.settings for each in CAN_CAUSE.get(name, ())}
        if other.id not in able:
            return False
        if other.id[:3] not in ("JOB", "BEN") and not scene.same_node(cause, other):
            return False
        names = [name for name, _ in cause.settings]
        if other.id in ("JOB005", "JOB006"):
            words = [word for name in names for word in _ERROR_WORDS.get(name, ())]
            values = [value for _, value in cause.settings if value and len(value) > 2]
            return error_says(other, scene, *names, *values, *words)
        return True


class SettingsDiffer(Rule):
    """Ranks with different settings send messages that the others do not expect: messages are truncated, or the first
    collective hangs."""

    causes = ("JOB003",)
    leads_to = ("JOB005", "JOB006", "JOB001", "NET007", "ENV001")
    because = "ranks with different settings do not agree on messages"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if other.id == "ENV001":  # the same setting, told once more for what it costs the ranks that have it
            return not {name for name, _ in cause.settings}.isdisjoint(name for name, _ in other.settings)
        channels = any("NCHANNELS" in name or "CTAS" in name for name, _ in cause.settings)
        if channels and other.id == "JOB005" and error_says(other, scene, "with family"):
            return True  # a connection of a channel that the peer does not make
        return other.id != "JOB005" or error_is(other, scene, "mismatch", "watchdog", "timeout", "connect")


_SHM_FULL = regex(r"/dev/shm is too small|\(/dev/shm\) (?:is full|holds)")  # noqa: S108 - words of a finding
_BUS_ERROR = regex(r"[Bb]us error|SIGBUS|\bsignal 7\b|exit ?code:? (?:-7|135)\b")
"""How a process ends that touches memory for which there is no room."""


class LimitReached(Rule):
    """Registration of memory is refused by a memlock limit, shared memory by the size of /dev/shm: NCCL's error names
    memory. `ulimit -l` and `df /dev/shm` in the job's container settle it."""

    causes = ("HST001",)
    leads_to = ("JOB005", "JOB006", "JOB009", "NET001", "GDR001", *JOB_FAILS)
    because = "the limit refuses memory that the job asks for"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if other.id == "JOB009":  # a page of a mapped file for which there is no room: the kernel sends SIGBUS
            full = _SHM_FULL.search(cause.message) is not None and scene.same_node(cause, other)
            return full and _BUS_ERROR.search(f"{other.message} {other.observed}") is not None
        return other.id != "JOB005" or error_is(other, scene, "memory", "other", "cuda")


class MemoryRemoved(Rule):
    """A file of NCCL's shared memory that something on the host removed: the ranks of the node fail in init.
    `RemoveIPC` of systemd-logind, and what cleans /dev/shm there, settle it."""

    causes = ("HST003",)
    leads_to = ("JOB005", *JOB_FAILS)
    because = "a file of shared memory is gone before all ranks have opened it"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return cause.severity is Severity.ERROR


_WITHOUT_GPU = regex(r"No CUDA GPUs|CUDA unknown error|CUDA-capable device is detected|invalid device ordinal")
"""What a process says that ends because CUDA finds no GPU."""


class ContainerSeesLess(Rule):
    """A container without the devices of its host: NCCL finds fewer GPUs or NICs, or no RDMA at all."""

    causes = ("HST002",)
    leads_to = ("NET001", "NET003", "NET005", "NET007", "NIC005", "NVL005", "JOB005", "JOB009", *JOB_FAILS)
    because = "the container lacks devices of the host"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if other.id == "NVL005" and "NVLink domain" in other.message:
            return False  # no device file puts a tray into another domain
        if other.id == "JOB009":
            return _WITHOUT_GPU.search(f"{other.message} {other.observed}") is not None
        return other.id != "JOB005" or error_is(other, scene, "cuda", "plugin", "connect", "mismatch", "other")


class DriverRefuses(Rule):
    """Libraries of another version than the kernel module: no CUDA call works in such a process, so that its rank ends
    and all others wait. `cat /proc/driver/nvidia/version` and `ldconfig -p` in the job's container settle it."""

    causes = ("HST004",)
    leads_to = ("JOB005", "JOB006", "JOB009", *JOB_FAILS)
    because = "the kernel module refuses libraries of another version: no CUDA call works there"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if other.id == "JOB009":
            return "driver" in f"{other.message} {other.observed}".lower()
        return other.id != "JOB005" or error_is(other, scene, "cuda", "other")


class FileRefused(Rule):
    """A topology file that NCCL refuses ends every init that reads it."""

    causes = ("TOP001",)
    leads_to = ("JOB005", "JOB006", *JOB_FAILS)
    because = "NCCL refuses the topology file"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, "topology", "other")


class FileDecides(Rule):
    """A topology file that is not of this machine, holds a device twice or guesses makes NCCL plan for another one."""

    causes = ("TOP002", "TOP003", "TOP005", "TOP006")
    leads_to = ("TOP004", "NET003", "NET004", "NET006", "GDR002", "NUM001", "BEN001", "JOB015")
    because = "NCCL plans for the machine that the topology file describes"
    reach = Reach.NODE
