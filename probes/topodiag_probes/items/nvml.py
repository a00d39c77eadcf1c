"""NVML by pynvml, as docs/bundle.md lays it out: every answer as it came, every failure by its name.

Works with old and new pynvml: a function that it lacks reads as NVML's own FunctionNotFound, bytes as text.
"""

import ctypes
import importlib
import uuid
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from topodiag_probes.interface import Context, Outcome, Probe
from topodiag_probes.items.nvidia_smi import NVIDIA_SMI_S
from topodiag_probes.library import LibraryProbe, fail, importable
from topodiag_probes.tree import Root

Emit = Callable[[str, Any], None]
Reader = Callable[["Asker", int, Any], Dict[str, Any]]
"""Reads one GPU: its index and its handle."""

MAX_GPUS = 64
MAX_PAIRS = 32 * 31 // 2
"""All pairs of 32 GPUs; six calls each."""
MAX_LINKS = 36
"""NVML_NVLINK_MAX_LINKS of nvml.h 13; older bindings say 18 or less and are believed."""

# NVML_FI_DEV_* of nvml.h.
FIELD_NVLINK_SPEED = 164
FIELDS_C2C = (170, 171, 172)
FIELD_RECOVERY_ACTION = 230
FIELDS_NVLINK5 = (206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 219, 220, 221, 222)
"""Packet, recovery, effective and symbol counters of NVLink 5, scope = link; 216 to 218 are deprecated."""
MAX_C2C = 32

_VALUE = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of nvmlValue_t by nvmlValueType_t."""

P2P = ("read", "write", "nvlink", "atomics", "prop")
"""nvmlGpuP2PCapsIndex_t from 0."""
LINK_ERRORS = ("replay", "recovery", "crc_flit", "crc_data")
"""nvmlNvLinkErrorCounter_t from 0."""
LINK_CAPABILITIES = (0, 5)
"""nvmlNvLinkCapability_t: P2P, link valid. NCCL asks for the first."""

_PLAIN = (
    ("name", "nvmlDeviceGetName"),
    ("uuid", "nvmlDeviceGetUUID"),
    ("minor", "nvmlDeviceGetMinorNumber"),
    ("board_id", "nvmlDeviceGetBoardId"),
    ("board_part_number", "nvmlDeviceGetBoardPartNumber"),
    ("pcie_gen", "nvmlDeviceGetCurrPcieLinkGeneration"),
    ("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    ("pcie_max_gen", "nvmlDeviceGetMaxPcieLinkGeneration"),
    ("pcie_max_width", "nvmlDeviceGetMaxPcieLinkWidth"),
    ("pcie_gpu_max_gen", "nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    ("pcie_replay", "nvmlDeviceGetPcieReplayCounter"),
    ("numa_node", "nvmlDeviceGetNumaNodeId"),
    ("compute_capability", "nvmlDeviceGetCudaComputeCapability"),
    ("compute_mode", "nvmlDeviceGetComputeMode"),
    ("persistence", "nvmlDeviceGetPersistenceMode"),
    ("mig_mode", "nvmlDeviceGetMigMode"),
    ("pstate", "nvmlDeviceGetPerformanceState"),
    ("power_mw", "nvmlDeviceGetPowerUsage"),
    ("power_limit_mw", "nvmlDeviceGetEnforcedPowerLimit"),
    ("addressing_mode", "nvmlDeviceGetAddressingMode"),
    ("remapped_rows", "nvmlDeviceGetRemappedRows"),
)


class Nvml(LibraryProbe):
    """Every GPU, its NVLinks, and every pair of GPUs."""

    id = "nvml"
    kind = "nvml"
    file = "json/nvml.json"
    about = "GPUs, NVLinks, fabric, ECC, peer-to-peer, by NVML"
    keeps = (
        "of each GPU: model, UUID, bus address, link, NUMA node, modes, load, power, clocks, fabric, ECC and row"
        " counters, NVLinks",
        "of each pair of GPUs: relation and peer-to-peer; ids and memory of processes",
    )
    needs = "pynvml (nvidia-ml-py)"
    job = "nvml"
    lists: Tuple[str, ...] = ("gpus", "pairs")
    sampled = True
    limit_s = NVIDIA_SMI_S

    def again(self) -> Optional[Probe]:
        return NvmlCounters()

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        if ctx.live and not importable("pynvml") and not ctx.root.exists("dev/nvidiactl"):
            fail(out, "absent", "pynvml not importable")
            return
        super().run(ctx, end, out)


class NvmlCounters(Nvml):
    """The counters alone, once more."""

    job = "nvml counters"
    lists = ("gpus",)


def error_name(error: Exception) -> str:
    """`NotSupported` for NVMLError_NotSupported; what pynvml itself lacks counts as FunctionNotFound."""
    name = type(error).__name__
    if name.startswith("NVMLError_"):
        return name[len("NVMLError_") :]
    if isinstance(error, AttributeError):
        return "FunctionNotFound"
    return "Unknown" if name == "NVMLError" else name


def plain(value: Any) -> Any:
    """An answer as JSON: bytes as text, tuples and arrays as lists."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple, ctypes.Array)):
        return [plain(each) for each in value]
    return plain(getattr(value, "value", None))


class Asker:
    """Calls of one pynvml, none of which raises."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib

    def tell(self, function: Callable[[], Any]) -> Any:
        """The answer as JSON, or `{"error": NAME}`."""
        try:
            return plain(function())
        except Exception as error:  # pynvml lets AttributeError, UnicodeDecodeError, struct errors through
            return {"error": error_name(error)}

    def ask(self, function: str, *arguments: Any) -> Any:
        return self.tell(lambda: getattr(self.lib, function)(*arguments))

    def members(self, names: Dict[str, str], function: str, *arguments: Any) -> Any:
        """Members of a structure that a call returns, under our names."""
        try:
            answer = getattr(self.lib, function)(*arguments)
        except Exception as error:
            return {"error": error_name(error)}
        return {ours: self.tell(partial(getattr, answer, theirs)) for ours, theirs in names.items()}

    def fields(self, handle: Any, wanted: List[Tuple[int, int]]) -> Dict[int, Any]:
        """Field values by field id; each carries its own return code, also when the call as a whole went well."""
        try:
            values = self.lib.nvmlDeviceGetFieldValues(handle, list(wanted))
        except Exception as error:
            return {field: {"error": error_name(error)} for field, _scope in wanted}
        return {field: self._value(value) for (field, _scope), value in zip(wanted, values)}  # noqa: B905  3.10

    def _value(self, value: Any) -> Any:
        if value.nvmlReturn != 0:
            return {"error": self.code_name(value.nvmlReturn)}
        if not 0 <= value.valueType < len(_VALUE):
            return {"error": "Unknown"}
        return self.tell(lambda: getattr(value.value, _VALUE[value.valueType]))

    def code_name(self, code: int) -> str:
        try:
            return error_name(self.lib.NVMLError(code))
        except Exception:
            return "Unknown"


def failed(answer: Any) -> Optional[str]:
    """The error's name when an answer is one."""
    return answer.get("error") if isinstance(answer, dict) and "error" in answer else None


def read(emit: Emit, arguments: List[str], one: Optional[Reader] = None) -> None:
    """The worker's job: emit what NVML says, GPU by GPU. `counters`: only what changes between two samples; else what
    `one` reads of a GPU."""
    try:
        lib = importlib.import_module("pynvml")
    except Exception:  # a broken installation fails in more ways than ImportError
        emit("top", {"error": "pynvml not importable"})
        return
    try:
        lib.nvmlInit()
    except Exception as error:
        emit("top", {"error": error_name(error)})
        return
    asker = Asker(lib)
    count = asker.ask("nvmlDeviceGetCount")
    handles: Dict[int, Any] = {}
    if not arguments:
        emit("top", _system(asker, count))
    for index in range(min(count, MAX_GPUS) if isinstance(count, int) else 0):
        try:
            handles[index] = lib.nvmlDeviceGetHandleByIndex(index)
        except Exception as error:
            emit("gpus", {"index": index, "error": error_name(error)})
            continue
        emit("gpus", (one or (counters if arguments else gpu))(asker, index, handles[index]))
    if not arguments:
        _pairs(asker, handles, emit)


def _system(asker: Asker, count: Any) -> Dict[str, Any]:
    return {
        "driver_version": asker.ask("nvmlSystemGetDriverVersion"),
        "nvml_version": asker.ask("nvmlSystemGetNVMLVersion"),
        "cuda_driver_version": asker.ask("nvmlSystemGetCudaDriverVersion"),
        "device_count": count,
    }


def gpu(asker: Asker, index: int, handle: Any) -> Dict[str, Any]:
    """All that is asked of one GPU."""
    record: Dict[str, Any] = {"index": index}
    for key, function in _PLAIN:
        record[key] = asker.ask(function, handle)
    record["pci"] = _pci(asker, handle)
    record["cpu_affinity"] = _affinity(asker, handle)
    record["utilization"] = asker.members({"gpu": "gpu", "memory": "memory"}, "nvmlDeviceGetUtilizationRates", handle)
    reasons = asker.ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if failed(reasons) == "FunctionNotFound":
        reasons = asker.ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)  # its name before R535
    record["event_reasons"] = reasons
    record["recovery_action"] = asker.fields(handle, [(FIELD_RECOVERY_ACTION, 0)])[FIELD_RECOVERY_ACTION]
    record["c2c"] = _c2c(asker, handle)
    record["fabric"] = _fabric(asker, handle)
    record["ecc"] = _ecc(asker, handle)
    record["clocks"] = {
        "sm": asker.ask("nvmlDeviceGetClockInfo", handle, 1),
        "mem": asker.ask("nvmlDeviceGetClockInfo", handle, 2),
        "sm_max": asker.ask("nvmlDeviceGetMaxClockInfo", handle, 1),
    }
    record["nvlinks"] = [_link(asker, handle, link, state) for link, state in link_states(asker, handle)]
    record["processes"] = _processes(asker, handle)
    return record


def counters(asker: Asker, index: int, handle: Any) -> Dict[str, Any]:
    """What changes between two samples."""
    return {
        "index": index,
        "pci": _pci(asker, handle),
        "pcie_replay": asker.ask("nvmlDeviceGetPcieReplayCounter", handle),
        "ecc": _ecc(asker, handle),
        "nvlinks": [
            {"link": link, "errors": link_errors(asker, handle, link), "fields": _link_fields(asker, handle, link)}
            for link, state in link_states(asker, handle)
            if not failed(state)
        ],
    }


def _pci(asker: Asker, handle: Any) -> Any:
    names = {"bus_id": "busId", "device_id": "pciDeviceId", "subsystem_id": "pciSubSystemId"}
    return asker.members(names, "nvmlDeviceGetPciInfo", handle)


def _affinity(asker: Asker, handle: Any) -> Any:
    """The CPU mask in words of 64, the lowest CPUs first."""
    possible = Root().text("sys/devices/system/cpu/possible")
    last = possible.replace(",", "-").split("-")[-1]
    words = (min(int(last), 65535) if last.isdigit() and len(last) < 6 else 1023) // 64 + 1
    answer = asker.ask("nvmlDeviceGetCpuAffinity", handle, words)
    return answer if failed(answer) else ["0x%x" % word for word in answer]


def _ecc(asker: Asker, handle: Any) -> Dict[str, Any]:
    return {
        "%s_%s" % (when, what): asker.ask("nvmlDeviceGetTotalEccErrors", handle, kind, span)
        for span, when in enumerate(("volatile", "aggregate"))
        for kind, what in enumerate(("corrected", "uncorrected"))
    }


def _c2c(asker: Asker, handle: Any) -> Dict[str, Any]:
    """Links to the CPU of a superchip."""
    count_id, status_id, bandwidth_id = FIELDS_C2C
    count = asker.fields(handle, [(count_id, 0)])[count_id]
    if failed(count):
        return {"error": failed(count)}
    links = []
    for link in range(min(int(count), MAX_C2C)):
        values = asker.fields(handle, [(status_id, link), (bandwidth_id, link)])
        links.append({"link": link, "status": values[status_id], "max_bw_mbps": values[bandwidth_id]})
    return {"count": count, "links": links} if links else {"count": count}


def _fabric(asker: Asker, handle: Any) -> Dict[str, Any]:
    """The newest version of the structure that binding and driver both know."""
    versions = (
        (3, "c_nvmlGpuFabricInfo_v3_t", "nvmlDeviceGetGpuFabricInfoV"),
        (2, "c_nvmlGpuFabricInfo_v2_t", "nvmlDeviceGetGpuFabricInfoV"),
        (1, "c_nvmlGpuFabricInfo_t", "nvmlDeviceGetGpuFabricInfo"),
    )
    why = "FunctionNotFound"
    for version, structure, function in versions:
        try:
            info = getattr(asker.lib, structure)()
            getattr(asker.lib, function)(handle, ctypes.byref(info))
        except Exception as error:
            why = error_name(error)
            if why in ("GpuIsLost", "NotSupported"):
                break
            continue
        record = {
            "version": version,
            "state": int(info.state),
            "status": int(info.status),
            "clique_id": int(info.cliqueId),
            "cluster_uuid": str(uuid.UUID(bytes=bytes(bytearray(info.clusterUuid)))),
        }
        if version >= 2:
            record["health_mask"] = int(info.healthMask)
        if version >= 3:
            record["health_summary"] = int(info.healthSummary)
        return record
    return {"error": why}


def link_states(asker: Asker, handle: Any) -> List[Tuple[int, Any]]:
    """Links that exist, with their state. Past the last one NVML says InvalidArgument, or NotSupported to the end."""
    found = []
    for link in range(min(int(getattr(asker.lib, "NVML_NVLINK_MAX_LINKS", MAX_LINKS)), MAX_LINKS)):
        state = asker.ask("nvmlDeviceGetNvLinkState", handle, link)
        why = failed(state)
        if why == "InvalidArgument":
            break
        if why == "NotSupported":
            continue
        found.append((link, state))
        if why in ("GpuIsLost", "FunctionNotFound"):
            break
    return found


def link_errors(asker: Asker, handle: Any, link: int) -> Dict[str, Any]:
    return {
        name: asker.ask("nvmlDeviceGetNvLinkErrorCounter", handle, link, number)
        for number, name in enumerate(LINK_ERRORS)
    }


def _link_fields(asker: Asker, handle: Any, link: int) -> Dict[str, Any]:
    """The NVLink 5 counters that this GPU has."""
    values = asker.fields(handle, [(field, link) for field in FIELDS_NVLINK5])
    return {str(field): value for field, value in values.items() if not failed(value)}


def _link(asker: Asker, handle: Any, link: int, state: Any) -> Dict[str, Any]:
    record: Dict[str, Any] = {"link": link, "state": state}
    if failed(state):
        return record
    record["version"] = asker.ask("nvmlDeviceGetNvLinkVersion", handle, link)
    record["speed_mbps"] = asker.fields(handle, [(FIELD_NVLINK_SPEED, link)])[FIELD_NVLINK_SPEED]
    record["remote_type"] = asker.ask("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)
    remote = asker.members({"bus_id": "busId"}, "nvmlDeviceGetNvLinkRemotePciInfo", handle, link)
    record["remote_bus_id"] = remote if failed(remote) else remote["bus_id"]
    record["capability"] = {
        str(number): asker.ask("nvmlDeviceGetNvLinkCapability", handle, link, number) for number in LINK_CAPABILITIES
    }
    record["errors"] = link_errors(asker, handle, link)
    record["fields"] = _link_fields(asker, handle, link)
    return record


def _processes(asker: Asker, handle: Any) -> Any:
    try:
        running = asker.lib.nvmlDeviceGetComputeRunningProcesses(handle)
    except Exception as error:
        return {"error": error_name(error)}
    return [
        {"pid": int(each.pid), "used_memory": asker.tell(partial(getattr, each, "usedGpuMemory"))} for each in running
    ]


def _pairs(asker: Asker, handles: Dict[int, Any], emit: Emit) -> None:
    pairs = [(a, b) for a in sorted(handles) for b in sorted(handles) if a < b]
    for a, b in pairs[:MAX_PAIRS]:
        emit(
            "pairs",
            {
                "a": a,
                "b": b,
                "ancestor": asker.ask("nvmlDeviceGetTopologyCommonAncestor", handles[a], handles[b]),
                "p2p": {
                    name: asker.ask("nvmlDeviceGetP2PStatus", handles[a], handles[b], number)
                    for number, name in enumerate(P2P)
                },
            },
        )


def probes() -> List[Probe]:
    return [Nvml()]
