"""Conditions of rules on settings, limits and containers, by the name of the rule: each explains only what it can
cause."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.verdict import clearing
from topodiag.verdict.interface import Condition, Contradiction
from topodiag.verdict.job_errors import JOB_FAILS, error_is, error_says, is_severe
from topodiag.verdict.scene import Scene

_NETWORK = ("NET001", "NET003", "NET004", "NET005", "NET006", "NET007", "NET008", "GDR001", "BEN001", "BEN002",
            "JOB015", "JOB005", *JOB_FAILS)  # fmt: skip
_INTERFACE = ("NET002", "NET001", "JOB005", "BEN001", "JOB015", *JOB_FAILS)
_INSIDE = ("P2P001", "P2P002", "NET006", "TOP004", "BEN001", "JOB015", "BEN002")
_GPUDIRECT = ("GDR001", "GDR002", "NET006", "BEN001", "JOB015")
_CHANNELS = ("NET006", "NET007", "BEN001", "JOB015", "BEN003", "JOB005", "JOB006")
# Slow, and never without an error that names it the end of a job or its wait.
_CHOICE = ("BEN001", "JOB015", "BEN002", "BEN003", "JOB005", "JOB006")
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
EFFECTS = tuple(sorted({check_id for effects in CAN_CAUSE.values() for check_id in effects} - {"JOB003"}))
"""What some setting can lead to."""


_ERROR_WORDS = {
    "NCCL_IB_HCA": ("NET plugin", "not found", "No device", "does not loop back", "does not contain rank"),
    "NCCL_NET": ("NET plugin", "network"),
    "NCCL_NET_PLUGIN": ("plugin",), "NCCL_ALGO": ("algorithm",), "NCCL_PROTO": ("protocol",),
    "NCCL_SOCKET_IFNAME": ("socket interface", "AF_INET"), "NCCL_TOPO_FILE": ("XML", "topo"),
    "NCCL_GRAPH_FILE": ("XML", "graph"),
}  # fmt: skip
"""By variable, words of a first error that it brings about."""


def _names_the_missing(cause: Finding, other: Finding, _: Scene) -> bool:
    return bool(cause.settings and other.where.nics) and set(other.where.nics) <= set(cause.where.nics)


def _can_cause(cause: Finding, other: Finding, scene: Scene) -> bool:
    names = [name for name, _ in cause.settings]
    if not any(other.id in CAN_CAUSE.get(name, ()) for name in names):
        return False
    if other.id[:3] not in ("JOB", "BEN") and not scene.same_node(cause, other):
        return False
    if other.id not in ("JOB005", "JOB006"):
        return True
    words = [word for name in names for word in _ERROR_WORDS.get(name, ())]
    values = [value for _, value in cause.settings if value and len(value) > 2]
    return error_says(other, scene, *names, *values, *words)


def _uses_rdma(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    """A setting that is written somewhere and keeps NCCL from RDMA is not in force where NCCL uses RDMA."""
    if not any(name == "NCCL_IB_DISABLE" for name, _ in cause.settings):
        return ()
    return clearing.rdma_in_use(scene, cause.where.nodes)


def _parts_ranks(cause: Finding, other: Finding, scene: Scene) -> bool:
    if other.id == "ENV001":  # the same setting, told once more for what it costs the ranks that have it
        return not {name for name, _ in cause.settings}.isdisjoint(name for name, _ in other.settings)
    channels = any("NCHANNELS" in name or "CTAS" in name for name, _ in cause.settings)
    if channels and other.id == "JOB005" and error_says(other, scene, "with family"):
        return True  # a connection of a channel that the peer does not make
    return other.id != "JOB005" or error_is(other, scene, "mismatch", "watchdog", "timeout", "connect")


_SHM_FULL = regex(r"/dev/shm is too small|\(/dev/shm\) (?:is full|holds)")  # noqa: S108 - words of a finding
_BUS_ERROR = regex(r"[Bb]us error|SIGBUS|\bsignal 7\b|exit ?code:? (?:-7|135)\b")
"""How a process ends that touches memory for which there is no room."""


def _leaves_no_room(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Of ends that of a page of a mapped file for which there is no room: the kernel sends SIGBUS."""
    if other.id != "JOB009":
        return True
    full = _SHM_FULL.search(cause.message) is not None and scene.same_node(cause, other)
    return full and _BUS_ERROR.search(f"{other.message} {other.observed}") is not None


_WITHOUT_GPU = regex(r"No CUDA GPUs|CUDA unknown error|CUDA-capable device is detected|invalid device ordinal")
"""What a process says that ends because CUDA finds no GPU."""


def _hides_devices(_: Finding, other: Finding, __: Scene) -> bool:
    if other.id == "NVL005" and "NVLink domain" in other.message:
        return False  # no device file puts a tray into another domain
    return other.id != "JOB009" or _WITHOUT_GPU.search(f"{other.message} {other.observed}") is not None


def _names_the_driver(_: Finding, other: Finding, __: Scene) -> bool:
    return other.id != "JOB009" or "driver" in f"{other.message} {other.observed}".lower()


HOLDS: Mapping[str, Condition] = {
    "SettingLeavesOut": _names_the_missing,
    "SettingDoesIt": _can_cause,
    "SettingsDiffer": _parts_ranks,
    "LimitReached": _leaves_no_room,
    "MemoryRemoved": is_severe,
    "ContainerSeesLess": _hides_devices,
    "DriverRefuses": _names_the_driver,
}
CONTRADICTED_BY: Mapping[str, Contradiction] = {"SettingDoesIt": _uses_rdma}
