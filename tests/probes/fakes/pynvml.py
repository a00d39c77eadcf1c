# ruff: noqa: N801, N816, T201, RUF012 - the names are the library's
"""A pynvml of eight H100 SXM GPUs behind NVSwitches, driver 570. FAKE_NVML holds its faults, separated by blanks.

`lost=N`: GPU N has fallen off the bus. `hang=N`: asking GPU N for its name never ends. `old`: a binding without the
newer functions that returns bytes. `noinit=NAME`: nvmlInit fails with that error.
"""

import ctypes
import os
import sys
import time

_FAULTS = dict(word.partition("=")[::2] for word in os.environ.get("FAKE_NVML", "").split())
NVML_NVLINK_MAX_LINKS = 36
GPUS, LINKS = 8, 18
UUID = "GPU-8f4a1c02-0000-4000-8000-00000000000%d"


class NVMLError(Exception):
    """Makes the subclass for a code, as the real one does."""

    names = {
        2: "InvalidArgument",
        3: "NotSupported",
        12: "LibraryNotFound",
        13: "FunctionNotFound",
        15: "GpuIsLost",
        25: "ArgumentVersionMismatch",
    }

    def __new__(cls, code):
        name = NVMLError.names.get(code)
        made = type("NVMLError_" + name, (NVMLError,), {}) if name else NVMLError
        return Exception.__new__(made, code)


class c_nvmlGpuFabricInfo_v2_t(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("clusterUuid", ctypes.c_uint8 * 16),
        ("status", ctypes.c_uint),
        ("cliqueId", ctypes.c_uint32),
        ("state", ctypes.c_uint8),
        ("healthMask", ctypes.c_uint32),
    )


class c_nvmlGpuFabricInfo_v3_t(ctypes.Structure):
    _fields_ = (*c_nvmlGpuFabricInfo_v2_t._fields_, ("healthSummary", ctypes.c_uint8))


class _Record:
    def __init__(self, **members):
        self.__dict__.update(members)


def _alive(handle):
    if str(handle) == _FAULTS.get("lost"):
        raise NVMLError(15)


def _value(answer):
    def function(handle, *_rest):
        _alive(handle)
        return answer(handle) if callable(answer) else answer

    return function


def _fails(code):
    def function(handle, *_rest):
        _alive(handle)
        raise NVMLError(code)

    return function


def nvmlInit():
    print("a library that prints on standard output")
    for code, name in NVMLError.names.items():
        if name == _FAULTS.get("noinit"):
            raise NVMLError(code)


def nvmlDeviceGetCount():
    return GPUS


def nvmlSystemGetDriverVersion():
    return b"570.86.15" if "old" in _FAULTS else "570.86.15"


def nvmlSystemGetNVMLVersion():
    return "12.570.86.15"


def nvmlSystemGetCudaDriverVersion():
    return 12080


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlDeviceGetName(handle):
    _alive(handle)
    if str(handle) == _FAULTS.get("hang"):
        time.sleep(3600)
    return b"NVIDIA H100 80GB HBM3" if "old" in _FAULTS else "NVIDIA H100 80GB HBM3"


def _bus_id(handle):
    return "00000000:%02X:00.0" % (0x1B + 16 * handle)


nvmlDeviceGetUUID = _value(lambda handle: UUID % handle)
nvmlDeviceGetMinorNumber = _value(lambda handle: handle)
nvmlDeviceGetBoardId = _value(6912)
nvmlDeviceGetBoardPartNumber = _value("692-2G520-0200-000")
nvmlDeviceGetCurrPcieLinkGeneration = nvmlDeviceGetMaxPcieLinkGeneration = _value(5)
nvmlDeviceGetCurrPcieLinkWidth = nvmlDeviceGetMaxPcieLinkWidth = _value(16)
nvmlDeviceGetGpuMaxPcieLinkGeneration = _value(5)
nvmlDeviceGetPcieReplayCounter = _value(3)
nvmlDeviceGetNumaNodeId = _fails(3)
nvmlDeviceGetCudaComputeCapability = _value((9, 0))
nvmlDeviceGetComputeMode = _value(0)
nvmlDeviceGetPersistenceMode = _value(1)
nvmlDeviceGetMigMode = _value([0, 0])
nvmlDeviceGetPerformanceState = _value(0)
nvmlDeviceGetPowerUsage = _value(131_250)
nvmlDeviceGetEnforcedPowerLimit = _value(700_000)
nvmlDeviceGetRemappedRows = _value((0, 0, 0, 0))
nvmlDeviceGetPciInfo = _value(
    lambda handle: _Record(busId=_bus_id(handle).encode(), pciDeviceId=590352606, pciSubSystemId=381948126)
)
nvmlDeviceGetUtilizationRates = _value(_Record(gpu=7, memory=2))
nvmlDeviceGetCurrentClocksThrottleReasons = _value(1)
nvmlDeviceGetTotalEccErrors = _value(0)
nvmlDeviceGetClockInfo = _value(345)
nvmlDeviceGetMaxClockInfo = _value(1980)
nvmlDeviceGetNvLinkVersion = _value(6)
nvmlDeviceGetNvLinkRemoteDeviceType = _value(2)
nvmlDeviceGetNvLinkRemotePciInfo = _value(_Record(busId="FFFFFFFF:FF:FF.0"))
nvmlDeviceGetNvLinkCapability = _value(1)
nvmlDeviceGetComputeRunningProcesses = _value(
    lambda handle: [_Record(pid=os.getpid(), usedGpuMemory=1 << 30)] if handle in (0, 1) else []
)
nvmlDeviceGetGraphicsRunningProcesses = _fails(3)
if "old" not in _FAULTS:
    nvmlDeviceGetCurrentClocksEventReasons = _value(1)
    nvmlDeviceGetAddressingMode = _value(0)


def nvmlDeviceGetCpuAffinity(handle, words):
    _alive(handle)
    return (ctypes.c_ulonglong * words)(0x00FFFFFFFFFFFFFF)


def nvmlDeviceGetNvLinkState(handle, link):
    _alive(handle)
    if link >= LINKS:
        raise NVMLError(2)
    return 1


def nvmlDeviceGetNvLinkErrorCounter(handle, link, counter):
    _alive(handle)
    if counter == 3:
        raise NVMLError(3)
    return link


def nvmlDeviceGetFieldValues(handle, wanted):
    _alive(handle)
    known = {164: 26562, 170: 0, 230: 0}
    return [
        _Record(nvmlReturn=0, valueType=1, value=_Record(uiVal=known[field]))
        if field in known
        else _Record(nvmlReturn=3, valueType=0, value=None)
        for field, _scope in wanted
    ]


def nvmlDeviceGetGpuFabricInfoV(handle, reference):
    _alive(handle)
    info = reference._obj
    if "old" in _FAULTS and isinstance(info, c_nvmlGpuFabricInfo_v3_t):
        raise NVMLError(25)
    info.state, info.status, info.cliqueId, info.healthMask = 3, 0, 5, 0x1AA
    info.clusterUuid = (ctypes.c_uint8 * 16)(*range(16))
    if isinstance(info, c_nvmlGpuFabricInfo_v3_t):
        info.healthSummary = 1


def nvmlDeviceGetTopologyCommonAncestor(a, b):
    _alive(a)
    _alive(b)
    return 50


def nvmlDeviceGetP2PStatus(a, b, index):
    _alive(a)
    _alive(b)
    return 5 if index == 4 else 0


sys.stdout.flush()
