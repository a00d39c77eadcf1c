"""Which fault of a device, a limit or the host a line names, whoever prints it: NCCL, CUDA, torch, UCX, a launcher.

SOURCE: CUDA's error strings (cudaGetErrorString, cudaGetErrorName: 214, 220, 802, 46, 35, which a process without any
libcuda gets as well); torch's cuda/__init__.py and libnvidia-container's requirements on an old driver; NCCL
src/misc/{shmutils,ibvwrap}.cc; torch's DataLoader (`insufficient shared memory`), its c10/cuda/CUDACachingAllocator.cpp
(`Process N has M memory in use`: each other process on the GPU, v2.1 and later; before,
what the GPU has, what is free and what this process took); UCX src/uct/ib; perftest
src/perftest_resources.c; ibstatus of infiniband-diags; Open MPI help-mpi-common-cuda.txt and Cray MPICH (`GTL DEBUG`),
which open a peer's GPU memory; libfabric
util/info.c (-61 is FI_ENODATA); CPython errno strings, which any program puts behind the path of a device node that it
cannot open.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar.any_of import any_of
from topodiag.evidence.nccl_log.grammar.numbers import compiled, error_named

CONTAINED = "contained"
"""CUDA's error 721: memory of a peer could not be reached over NVLink, by the peer's fault or the link's."""

RENDEZVOUS_OVER = r"(?<!raise )(?<!except )(?<!import )\bRendezvousTimeoutError(?:[:(']|\s*$)"
"""What torchrun's rendezvous raises where not enough nodes came in time; not the line of its source that raises it."""

WORLDS = compiled(
    r"\bmismatch in rank count from procs \d{1,9} : \d{1,9}\b"
    r"|\bmismatch in info from procs, nranks (?P<own>\d{1,9}) vs (?!(?P=own)\b)\d{1,9}\b"
)
"""NCCL's root, of a rank that counts another world than its own (src/bootstrap.cc; 2.23 and later the second one, which
may be about other numbers alone)."""

FAULTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ecc", compiled(r"[Uu]ncorrectable ECC|ECC_UNCORRECTABLE|[Dd]ouble[- ]bit ECC")),
    ("nvlink", compiled(r"[Uu]ncorrectable NVLink error|NVLINK_UNCORRECTABLE")),
    (
        CONTAINED,
        compiled(r"\bCUDA_ERROR_CONTAINED\b|\bcudaErrorContained\b|Invalid access of peer GPU memory over nvlink"),
    ),
    ("lost", compiled(r"GPU is lost\b")),
    (
        "mismatch",
        compiled(
            r"Driver/library version mismatch|unsupported display driver / cuda driver combination"
            r"|SYSTEM_DRIVER_MISMATCH|SystemDriverMismatch|\bError 803\b"
        ),
    ),
    (
        "old driver",
        compiled(
            r"CUDA driver version is insufficient for CUDA runtime|\b(?:cuda|hip)ErrorInsufficientDriver\b(?! ?= ?\d)"
            r"|driver on your system is too old|unsatisfied condition: cuda ?>"
        ),
    ),
    ("no gpus", compiled(r"^\s{0,8}(?:\(\w{1,30} pid=\d{1,9}\) )?No devices were found\.?\s*$")),
    (
        "not given",
        compiled(
            r"could not select device driver .{0,20}with capabilities: \[\[.{0,20}gpu"
            r"|nvidia-container-(?:cli|runtime)\S{0,8}: .{0,60}(?:device error|no such device|unknown device)"
            r"|unresolvable CDI devices nvidia\.com/gpu"
            r"|[Ff]ailed to initialize NVML: (?:Unknown Error|Insufficient Perm)"
            r"|unknown or invalid runtime name: nvidia"
        ),
    ),
    (
        "umad",
        compiled(r"can't open UMAD port|mad_rpc_open_port.{0,60}fail|ibpanic: .{0,80}(?:[Ff]ailed to open|can't open)"),
    ),
    (
        "driver",
        compiled(
            r"nvml error: driver not loaded|[Ff]ailed to initialize NVML: Driver Not Loaded|"
            r"NVIDIA-SMI has failed because it couldn'?t communicate with the NVIDIA driver"
            r"|[Dd]river not initialized \(amdgpu not found in modules\)"
        ),
    ),
    (
        "fabric",
        compiled(
            r"system not yet initialized|SYSTEM_NOT_READY|ErrorSystemNotReady\b|\b[Ee]rror 802\b|Cuda failure 802\b"
            r"|(?i:\b(?:lib)?cu(?:da|Init).{0,80}?\b(?:fail(?:ed|ure)?|error|err|code|status|returned)\b"
            r"[^\w\n]{0,4}(?:with |code |is ){0,2}802(?![\w.]))"
        ),
    ),
    (
        "shm",
        compiled(
            r"(?:/dev/shm|shared memory).{0,200}(?:No space left|posix_fallocate|[Cc]annot allocate|\(28\))"
            r"|No space left on device.{0,200}/dev/shm|failed to extend /dev/shm"
            r"|posix_fallocate failed ?: No space left|unable to write to file </torch_"
            r"|(?:^|[\])] )Error while creating shared memory segment (?!.{0,200}(?:Permission|No such))"
            r"|^\s{0,8}(?:#\d{1,3}|@)\s{1,20}(?:0x[0-9a-f]{1,16} )?(?:in )?[^()]{0,40}\bncclShmOpen\b"
            r"|No space left on device: ['\"]?/(?:psm|wnsm|sem|torch)[_.]"
            r"|(?:^|\s)os\.(?:posix_fallocate|ftruncate)\(self\._fd"
            r"|[Nn]ot enough (?:space|memory).{0,120}/dev/shm"
            r"|unable to allocate shared memory\(shm\) for file <"
            r"|insufficient shared memory \(shm\)|DataLoader worker .{0,80}killed by signal: Bus error"
        ),
    ),
    ("rccl setting", compiled(r"\[FATAL ERROR\]: HSA_\w{1,40}=\S{1,20} must be set")),
    ("small shm", compiled(r"\B/dev/shm has only \d{1,9} bytes")),
    ("removed", compiled(r"unlink shared memory /dev/shm/nccl-\S{1,40} failed, error: No such file")),
    (
        "memlock",
        compiled(
            r"ibv_(?:reg_mr|create_cq|create_qp|create_srq|alloc_pd)\w{0,20}\b"
            r".{0,160}(?:Cannot allocate memory|ENOMEM|error -?12\b)|RLIMIT_MEMLOCK"
            r"|max locked memory .{0,60}too (?:low|small)|\bmemlock limits? (?:is |are )?(?:set )?too (?:low|small)"
            r"|\ballocate (?:some )?locked memory|[Ff]ail\w{0,6} to (?:\w{1,12} ){0,3}mlock\b"
            r"|\b[Rr]egister(?:ing)? (?:\w{1,16} ){0,3}(?:memory|MRs?|buffers?|region)\b.{0,160}Cannot allocate memory"
        ),
    ),
    ("files", compiled(rf"(?:^|[\])] |: ?)Too many open files(?! in system)|{error_named('EMFILE')}")),
    ("busy", compiled(r"CUDA-capable device\(?s?\)? (?:is/are|are|is) busy or unavailable")),
    (
        "held",
        compiled(
            r"out of memory.{0,400}?(?:\bProcess \d{1,10} has \d{1,5}\.\d{1,4} GiB memory in use.{0,800}?"
            r"\bthis process has \d|\bthis process has \d.{0,800}?\bProcess \d{1,10} has \d{1,5}\.\d{1,4} GiB memory)"
            r"|out of memory.{0,120}?\bGiB total capacity; .{1,40}? already allocated; .{1,40}? free"
            r"|out of memory.{0,120}?\btotal capac.{1,60}? is free\. [^.]{0,60}\bthis process has \d"
            r"|\bFree memory on device (?:\S{1,12} )?\(\d[\d.]{0,8}/\d[\d.]{0,8} GiB\) on startup is less than"
            r"|memory capacity is unbalanced\. .{0,60}occupied by other processes"
        ),
    ),
    (
        "no rdma",
        compiled(
            r"^\s{0,8}Unable to find the Infiniband/RoCE device|^\s{0,8}No IB devices found\s*$"
            r"|Fatal error: +device '\*': sys files not found"
            r" \(/sys/class/infiniband"
        ),
    ),
    (
        "rdma denied",
        compiled(
            r"""^(?!\s{0,8}#).{0,200}?(?<![`\w./-])/dev/infiniband(?:/|/uverbs\d{1,3})?["']?: """
            r"(?:Permission denied|Operation not permitted|[Nn]o such (?:file or directory|device))"
            r"|(?:\b\w{2,12}_open_device\([\w.@:-]{1,64}\) failed: |\brdma_create_event_channel\b(?:\(\))? failed: )"
            r"(?:No such file|Permission denied|Operation not permitted)"
            # perftest names the device where it cannot open it, and says `the device` whatever the reason was.
            r"|^\s{0,8}Couldn't get context for (?!the\b)[a-z]\w{2,20}\s*$"
            r'|error mounting "/dev/infiniband\S{0,40}".{0,120}no such file or directory'
            r'|^\d{4}/\d\d/\d\d [\d:]{8} exposing "0" devices\s*$'
        ),
    ),
    (
        "no provider",
        compiled(r"\befa device list is empty|^\s{0,8}fi_getinfo: -61\b|\bfi_getinfo\b.{0,60}output empty list"),
    ),
    (
        "ordinal",
        compiled(
            r"invalid device ordinal|\bCUDA_ERROR_INVALID_DEVICE\b|\bcudaErrorInvalidDevice\b"
            r"|[Nn]o CUDA-capable device is detected|\bNo CUDA GPUs are available"
        ),
    ),
    (
        "no cuda",
        compiled(
            r"\bCUDA unknown error - this may be due to an incorrectly set up environment"
            r"|\b[Ff]ailed call to cuInit: CUDA_ERROR_UNKNOWN|\bcudaGetDeviceCount returned 999\b"
            r"|\bcudaGetDeviceCount\b.{0,40}?: unknown error"
        ),
    ),
    ("disk full", compiled(rf"\[Errno 28\]|{error_named('ENOSPC')}|No space left on device")),
    ("unwritten", compiled(r"PytorchStreamWriter failed writing file .{0,200}file write failed")),
    (
        "absent",
        compiled(
            r"\bBarrier timed out\. (?:Barrier_)?[Ii]d: \S{0,60}(?:[Rr]egister|[Cc]onnect|Init)"
            r"|[Tt]imed out (?:after \d{1,6} seconds )?waiting for clients|\bin store based barrier on rank\b"
            rf"|\bwait timeout after \d{{1,9}} ?ms, keys: |{RENDEZVOUS_OVER}"
            r"|\bPMIX ERROR: TIMEOUT in file \S{0,80}fence|\bpmixp_coll\w{0,40}: .{0,160}\bcollective timeout\b"
        ),
    ),
    ("rank twice", compiled(r"\brank \d{1,9} of \d{1,9} ranks has already checked in")),
    ("no such rank", compiled(r"\bInvalid rank requested : \d{1,9}/\d{1,9}\b|\brank < size\. \d{1,9} vs \d{1,9}\b")),
    ("worlds", WORLDS),
    ("io error", compiled(rf"\[Errno 5\]|{error_named('EIO')}|\bInput/output error: ['\"]?/")),
    ("quota", compiled(rf"\[Errno 122\]|{error_named('EDQUOT')}|Disk quota exceeded")),
    ("read-only", compiled(rf"\[Errno 30\]|{error_named('EROFS')}|: Read-only file system")),
    ("stale file", compiled(rf"\[Errno 116\]|{error_named('ESTALE')}|Stale (?:NFS )?file handle")),
    ("ipc", compiled(r"\bcuIpcOpenMemHandle(?: failed\b|: invalid argument)")),
    (
        "interface",
        compiled(
            r"[Nn]o socket interface found|[Ff]ailed to find (?:a )?(?:socket )?interface|\bUnknown interface name\b"
            r"|(?:[Cc]annot|[Uu]nable to|[Cc]ould not) find (?:the |any |a )?(?:network|socket) interface\b"
            r"|[Nn]o (?:network|common NIC) interfaces? (?:between hosts )?(?:was )?found"
        ),
    ),
)
"""By name, in the order in which they are asked. None of them is in what a healthy run prints."""

WORDS = (b"ERROR_CONTAINED", b"ErrorContained", b"of peer GPU memory", b"[FATAL ERROR]: HSA_",
         b"ncorrectable", b"UNCORRECTABLE", b"ouble-bit ECC", b"ouble bit ECC", b"GPU is lost",
         b"NVIDIA-SMI has failed", b"with capabilities: [[", b"nvidia-container-", b"unresolvable CDI",
         b"initialize NVML", b"runtime name: nvidia", b"driver not loaded", b"UMAD port", b"mad_rpc_open", b"ibpanic: ",
         b"amdgpu not found", b"No devices were found",
         b"version is insufficient", b"rrorInsufficientDriver", b"system is too old", b"condition: cuda",
         b"event_channel", b"_open_device", b"get context for",
         b"library version mismatch", b"cuda driver combination", b"DRIVER_MISMATCH", b"DriverMismatch", b"Error 803",
         b"not yet initialized", b"SYSTEM_NOT_READY", b"rror 802",
         b": 802", b"ode 802", b"=802", b"(802", b"returned 802", b"tatus 802", b"with 802",
         b"SystemNotReady", b"/dev/shm", b"posix_fallocate", b"os.ftruncate",
         b"</torch_",
         b"shared memory", b"ncclShmOpen",
         b"Bus error",
         b"ibv_", b"MEMLOCK", b"memlock", b"locked memory", b"mlock", b"Cannot allocate", b"max locked"
             b" memory", b"Too many open", b"EMFILE", b"busy or unavailable",
         b"memory in use", b"total capacity; ", b"Free memory on", b"capacity is unbal", b"Infiniband/RoCE device",
         b"No IB devices", b'exposing "0"', b"/sys/class/infiniband", b"/dev/infiniband", b"fi_getinfo",
         b"device list is empty",
         b"device ordinal", b"INVALID_DEVICE", b"InvalidDevice", b"capable device", b"No CUDA GPUs",
         b"CUDA unknown error", b"call to cuInit", b"cudaGetDeviceCount",
         b"cuIpcOpenMemHandle", b"[Errno ", b"ENOSPC", b"No space left", b"StreamWriter failed",
         b"Input/output error", b"EIO",
         b"Barrier timed out. ",
         b"waiting for clients", b"store based barrier", b"wait timeout after", b"RendezvousTimeout",
         b"PMIX ERROR", b"pmixp_coll",
         b"already checked in", b"Invalid rank requested", b"rank < size. ", b"mismatch in rank count",
         b"mismatch in info from",
         b"EDQUOT", b"quota exceeded", b"EROFS",
         b"Read-only file", b"ESTALE", b"file handle",
         b"socket interface", b"network interface", b"nknown interface name", b"common NIC interface")  # fmt: skip
"""A line without any of these names none of the faults."""

_EXPLAINED = compiled(
    r"^\s{0,8}(?:[#>*-]{1,4}\s{1,3})?(?:Q\s?[:.]|Question\b)|\b[Ww]hat (?:does|do|is|are) .{1,120}\?\s*$"
    r"|^\s{0,12}(?:summary|description|expr|alert|annotations): |\{\{ {0,2}\$"
    r"|\b(?:when|if|means?(?: that)?) (?:a|an|the|any|one|your) (?:\w{1,12} )?GPU\b"
)
"""Texts that explain a message, and do not report it."""
_ADVICE = re.compile(r"`$|(?:^|[.;:] )\W{0,8}(?:[Ii]f|[Ii]n case|[Ss]hould)\b")
"""How a sentence begins that says what may come."""
_ASKED_FOR = frozenset({"old driver", "rdma denied"})
"""Faults that libraries meet, too, where they only look what there is: they say it at such a level, or that they go
on."""
_TRACED = compiled(r"\b(?:DEBUG|DIAG|TRACE|NOTE)\b|\b(?:on|to) (?:the )?CPU\b|\b[Cc]ontinuing\b")
_ANY = compiled(any_of(WORDS).decode())


def fault_of(text: str) -> str:
    """The name of the fault, "" where the line names none."""
    if _ANY.search(text) is None or _EXPLAINED.search(text) is not None:
        return ""
    for name, pattern in FAULTS:
        found = pattern.search(text)
        if found is not None:
            before = text[: found.start()]
            told = _ADVICE.search(before) is None and (name not in _ASKED_FOR or _TRACED.search(text) is None)
            return name if told else ""
    return ""
