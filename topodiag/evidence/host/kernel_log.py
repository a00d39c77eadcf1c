"""The kernel's messages of interest, from `dmesg` and `journalctl -k` in any of their time formats."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from functools import cache

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.heads import HEADS
from topodiag.evidence.host import journal
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.signatures.literals import Finder, finder, lines_with
from topodiag.lazy import regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.clock_text import seconds
from topodiag.model.system import KernelEvent
from topodiag.model.topics import Topic
from topodiag.words.dialect import Maker

HEAD_CHARS = 1 << 16
MAX_EVENTS = 2000
"""Events kept, the newest: a faulty link writes millions of the same line."""
LEAST_WHOLE = 200
"""Lines from which on a text that somebody gave is called a log, and not lines that were chosen from one: Linux writes
more while it boots."""
MAX_TEXT = 500
"""Characters kept of one message."""
MAX_LINE = 4096
"""Characters of one line that are looked at; the kernel's own limit is about 1000."""

_MONOTONIC = regex(r"(?:<[0-9]{1,3}>)?(?:[a-z]{2,8} *:[a-z]{3,7} *: ?)?\[ {0,10}([0-9]{1,10}\.[0-9]{1,9})\] ?")
_CTIME = regex(
    r"(?:[a-z]{2,8} *:[a-z]{3,7} *: ?)?\[([A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9:]{8} [0-9]{4})\] ?"
)
_ISO = regex(
    r"(?:[a-z]{2,8} *:[a-z]{3,7} *: ?)?"
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,][0-9]{1,9})?(Z|[+-][0-9]{2}:?[0-9]{2})? "
)
_KMSG = regex(r"[0-9]{1,5},[0-9]{1,20},([0-9]{1,16}),[^;]{1,100};")
"""/dev/kmsg itself: level, number, microseconds since boot, flags."""
_SYSLOG = regex(r"[A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9:]{8} (?:\S{1,255} )?")
_SENDER = regex(r"(?:[A-Za-z0-9_.-]{1,255} )?kernel: ?(?:\[ {0,10}[0-9]{1,10}\.[0-9]{1,9}\] ?)?")

_BUS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_ANY_BUS = regex(rf"(?<![0-9a-fA-F:]){_BUS}(?![0-9a-fA-F])")
# People mask what stands in the brackets; drivers before 2010 leave out `PCI:`.
_XID = regex(r"\bXid ?\((?:PCI:)?([^()\s]{1,40})(?: [^()]{1,40})?\)(?:, ?[^:]{1,60})?: ?([0-9]{1,5})\b", re.IGNORECASE)
_XID_OF_AGENT = regex(
    r"\bXidCriticalError(?:: Xid=|\s{1,60}True\s.{1,200}?\{\"|.{1,80}?reason: '\{\")([0-9]{1,5})\b"
    r"|isFatal[\\\"]{1,8}:true.{1,400}?\(XID ([0-9]{1,5})\)"
)
"""Kubernetes' device plug-ins of NVIDIA (internal/rm/health.go) and of Google, and NVSentinel's health events: what
NVML or DCGM told them, by the GPU's UUID or without it."""
_ADDRESS_OF_AGENT = regex(r"\"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)\\?\"")
"""The PCI address of an impacted entity, a member of its own."""
_SXID = regex(r"\bSXid ?\((?:PCI:)?([^()\s]{1,40})\): ?([0-9]{1,6})\b", re.IGNORECASE)
_SXID_OF_MANAGER = regex(
    r"detected NVSwitch (?:non-)?fatal error ([0-9]{4,6}) on fid:? ?[0-9]{1,3}"
    r" on NVSwitch pci bus id:? ?([0-9A-Fa-f:.]{7,20})"
)
"""Fabric Manager's log tells the SXids that it was given."""
_NVLINK_OF_MANAGER = regex(r"detected GPU NVLink fatal error on GPU pci bus id")
_SPOKEN_OF = regex(
    r"\b(?:when|if|means?(?: that)?|says that) (?:a|an|the|any|one|your) (?:\w{1,12} )?GPU\b"
    r"|^\s{0,8}\|\s{0,4}\d{1,3}\s{0,8}\||^\s{0,8}[-*\u2022] \d{1,3}\b|\u2192",
    re.IGNORECASE,
)
"""Texts that explain a message, and do not report it: sentences, rows of a table, points of a list."""
_LOST = regex(
    r"\b(?:has )?fallen off the bus\b|\[?NV_ERR_GPU_IS_LOST\b"
    r"|\b(?:nvidia|amdgpu) [0-9a-f:.]{7,13}: .{0,60}\(config space inaccessible\)"
    r"|\bamdgpu\b.{0,40}device lost from bus",
    re.IGNORECASE,
)
_RESET = regex(r"\bNV_ERR_RESET_REQUIRED\b")
"""NV_STATUS 0x62 of nvstatuscodes.h (open-gpu-kernel-modules, R515 and later): an assertion that meets it names it."""
_NVRM = r"\bNVRM(?::|(?= (?!version)\w{3,80}: )) "
"""How the driver begins its lines; a build of the open kernel modules prints no colon before the name of a function."""
_GSP = regex(
    rf"{_NVRM}.{{0,60}}(?:\bkgsp\w{{1,60}}|_kgsp\w{{1,60}}|\bkfsp\w{{1,60}}|\bGSP\b)"
    r"(?=.{0,200}(?:timed? ?out|sanity check fail|heartbeat|reported an error|cannot initialize|crash|halt"
    r"|(?:boot\w{0,8}|command|image|firmware|\bRM) (?:\w{1,12} )?fail|fail\w{0,5} to (?:boot|load|start)))"
    r"(?!.{0,200}\bXid\b)"
    r"|NVRM: GPU[0-9]{1,3} RPC history \(CPU -> GSP\)|NVRM: Heartbeat timed out"
    r"|NVRM: RmInitAdapter: Cannot initialize GSP",
    re.IGNORECASE,
)
"""The driver's functions for the GPU's own processor are named so (kernel/gpu/gsp/kernel_gsp.c), and those for the one
that starts it (kernel/gpu/fsp/kern_fsp.c): it does not start, or does not answer."""
_NO_START = regex(
    r"(?:RmInitAdapter|rm_init_adapter) failed|probe routine was not called for"
    r"|This PCI I/O region assigned to your NVIDIA",
    re.IGNORECASE,
)
_REMOVED = regex(r"pciehp: Slot\([\w-]{1,20}\): (?:Link Down|Power fault)\b")
"""A slot whose device went away or lost its power while it ran (drivers/pci/hotplug/pciehp_ctrl.c)."""
_NIC_DRIVER = regex(r"\b(?:mlx[45]_\w{2,5}|bnxt_(?:en|re)|irdma\d{0,3}|ice|ionic|efa|hns_roce|hns3)\b")
_NOT_SENT = regex(
    r"NETDEV WATCHDOG: (?!(?:usb|wl|enx|veth|docker)\S{0,30} )\S{1,32} \((?!r815|cdc_|ax88|asix|iwl|rtw)\w{1,20}\): "
    r"transmit queue \d{1,4} timed out|\btx_timeout(?:: VSI_| recovery level)|\bDetected (?:Tx|Hardware) Unit Hang\b"
    r"|\b(?!iwl|rtw|ath|mt7)\w{2,20} [0-9a-f]{4}:[0-9a-f:.]{7,9}:? \S{1,32}: NETDEV WATCHDOG: CPU: \d{1,4}: transmit q"
    r"|\b\w{2,12} [0-9a-f]{4}:[0-9a-f:.]{7,9}:? \S{1,32}: [Tt](?:x|X|ransmit) (?:timed out|timeout detected)"
    r"|\b(?:igb|igc) [0-9a-f:.]{7,13}:? .{0,40}\bPCIe link lost\b|\bixgbe\w{0,2} .{0,60}\bAdapter removed\b"
)
"""Transmit queues that stand, of any driver (net/sched/sch_generic.c; Intel's i40e, ice, ixgbe, igb, e1000e), and
adapters that Intel's drivers find gone."""
_CPU = regex(
    r"\bEDAC \w{2,12}: \d{1,9} UE\b|\bmce: \[Hardware Error\]|\bBUG: (?:soft|hard) lockup\b"
    r"|\brcu: INFO: rcu_\w{2,20} (?:self-)?detected (?:expedited )?stall|\bKernel panic - "
)
"""The processor, its memory, or the kernel on it: nothing of the communication, and nothing that a node should have."""
_BANDWIDTH = "available PCIe bandwidth, limited by"
_AMDGPU = regex(
    r"\bamdgpu\b.{0,120}?(?:GPU reset begin|GPU reset end with ret = -|GPU [Rr]ecovery [Ff]ailed"
    r"|\bring \S{1,40} timeout"
    r"|failed to respond|unrecoverable state|VRAM is lost|fence wait loop timeout|not responding|not done with your"
    r"|(?<!\b[Nn]o )(?<!\bno new )[Uu]ncorrectable hardware errors? ?(?:\(\w{1,60}\) ?)?detected"
    r"|HW exception|RAS poison"
    r"|[Ff]atal error during GPU init)"
)
"""Linux drivers/gpu/drm/amd/amdgpu (device, kms, mes, psp, ras) and amdkfd: stuck firmware, resets, memory errors, a
GPU that does not start. The all-clear has the fault's words: `no uncorrectable hardware errors detected in umc`."""
_AER = regex(r"\bAER: |PCIe Bus Error: ")
_AER_SOURCE = regex(rf"received: (?:from )?({_BUS})|received from ({_BUS})")
_NVIDIA = regex(r"\bnvidia-(?:peermem|nvswitch|nvlink|modeset|uvm)")
_OF_NVRM = regex(_NVRM)
_FAILING = regex(r"error|fail|mismatch", re.IGNORECASE)
_NVRM_ROUTINE = regex(r"NVRM: (?:loading |GPU at PCI|GPU Board Serial|GPU [0-9a-f:.]{1,20}: board)", re.IGNORECASE)
_NVLINK_FAILS = regex(
    r"NVRM: knvlink(?!\w{0,80}(?:Shutdown|Off)\w)\w{1,120}: .{0,120}\bfail(?:ed|ure)\b", re.IGNORECASE
)
"""The driver's functions for NVLink are named so (open-gpu-kernel-modules, kernel/gpu/nvlink): one that fails speaks of
the links, and not of which fault they have. Links that are shut down with the driver fail without harm."""
_IOMMU = regex(r"iommu: Default domain type: [TP]|DMAR: IOMMU enabled|AMD-Vi: (?:Interrupt|Found|Virtual|Lazy)")
_IOMMU_FAULT = regex(
    r"AMD-Vi: Event logged \[(?:IO_PAGE_FAULT|ILLEGAL_DEV_TABLE_ENTRY|INVALID_DEVICE_REQUEST)\b"
    r"|DMAR: \[(?:DMA|INTR)[ -][A-Za-z]{2,12}(?: NO_PASID| PASID [0-9a-fx]{1,12})?\] Request device ",
    re.IGNORECASE,
)
"""Accesses that an IOMMU refused: AMD's event log and Intel's remapping hardware (drivers/iommu of Linux)."""
_SHORT_BUS = regex(r"[Dd]evice[= ]\[?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\b")
_LINK = regex(r"\blink(?: is| status definitely)?:? (?:up|down|active)\b|\b(?:lost|gained) carrier\b", re.IGNORECASE)
_LINK_SET = regex(
    r"\bdevice \([\w.-]{1,32}\): state change: [\w-]{3,20} -> (?:deactivating|disconnected|unmanaged)\b.{0,40}"
    r"(?:user-requested|connection-removed|new-activation|connection-assumed|unmanaged)"
    r"|\bCOMMAND=\S{0,60}\b(?:ip link set|ip l set|ifdown|ifup|ifconfig|nmcli|ifenslave) "
    r"|\bbond\S{1,40}.{0,60}\b(?:Removing|Releasing) |\badmin(?:istratively)? ?(?:state )?down\b",
    re.IGNORECASE,
)
"""Somebody, or a service, takes a link down or a port out of its bond: NetworkManager, sudo, the bonding driver."""
_NOT_A_NETWORK = regex(r"\b(?:ata[0-9]|sata|usb|veth|docker[0-9]|br-|virbr|cali|lxc)", re.IGNORECASE)
_MLX5_TROUBLE = regex(
    r"error|fail|fatal|timeout|timed out|health|unplugged|assert|syndrome|temperature|not responding"
    r"|\bsynd |requesting a reset|power|abort|recovery mode|dump|cannot|inaccessible|vital counter|\bstopped\b"
    r"|disconnected",
    re.IGNORECASE,
)
_HUNG_TASK = regex(r"\btask \S{1,64}:[0-9]{1,10} blocked for more than [0-9]{1,9} seconds")
_STORAGE = regex(
    r"\bnfs: server \S{1,255} (?:not responding|OK)|\bLustre: .{0,200}Connection (?:to .{1,200}was lost|restored to)"
    r"|\bLustreError: .{0,200}\b(?:client was evicted by|operation \w{1,40} to node .{1,80} failed: rc = -)"
    r"|\bceph: mds[0-9]{1,6} (?:hung|caps stale|came back|recovery completed)|\bCIFS: .{1,300}has not responded"
    r"|I/O error, dev \w|(?:EXT4|BTRFS|F2FS)[ -]\S{0,4}(?:error|critical)"
    r"|\bXFS \(\S{1,60}\): .{0,80}(?:[Ss]hut(?:ting)? down|I/O [Ee]rror)"
    r"|\bnvme nvme[0-9]{1,4}: .{0,40}(?:timeout, |controller is down)"
)
"""Storage that does not answer, or does again: net/sunrpc/clnt.c, Lustre ptlrpc/import.c, fs/ceph, fs/smb, block/."""
_TROUBLE = (
    "error", "fail", "fatal", "timeout", "timed out", "health", "unplugged", "assert", "synd", "temperature",
    "not responding", "requesting a reset", "power", "abort", "recovery mode", "dump", "cannot", "inaccessible",
    "vital counter", "stopped", "disconnected", "mismatch",
)  # fmt: skip
_BY_TROUBLE = tuple(
    word.encode()
    for word in (
        "aer: ", "pcie bus error", "nvidia-", "mlx4_", "mlx5_", "bnxt_", "irdma", "ice", "ionic", "efa", "hns",
    )
)  # fmt: skip
_SIGNS = (
    "xid", "nvrm", "fallen off the bus", "nv_err_", "config space inaccessible", "lost from bus", "amdgpu",
    "available pcie bandwidth", "detected nvswitch", "detected gpu nvlink", "amd-vi: ", "dmar: [",
    "dmar: iommu enabled", "iommu: default domain type", "blocked for more than", "nfs: server", "lustre: ",
    "lustreerror: ", "ceph: mds", "has not responded", "i/o error", "ext4", "btrfs", "f2fs", "xfs (",
    "nvme nvme", "pciehp", "state change: ", "command=", "removing ", "releasing ", "admin", "netdev watchdog",
    "tx_timeout", "unit hang", "timed out", "timeout detected", "pcie link lost", "adapter removed", "edac ",
    "mce: ", "lockup", "rcu: ", "kernel panic", "lost carrier", "gained carrier",
    *(
        f"{noun}{colon} {state}"
        for noun in ("link", "link is", "link status definitely")
        for colon in ("", ":")
        for state in ("up", "down", "active")
    ),
)  # fmt: skip
"""A line that any of the patterns above accepts holds one of these, or a word of _TROUBLE and one of _BY_TROUBLE, in
whatever case."""
_WRITES = regex(
    r"\bS?Xid ?\([^()\s]{1,40}\)[^:]{0,60}: ?[0-9]|XidCriticalError(?:: Xid=[0-9]|\s{1,60}True\s)"
    r"|isFatal[\\\"]{1,8}:true.{1,400}?\(XID [0-9]"
    r"|NVRM: (?:GPU|The NVIDIA (?:GPU|probe)|A GPU|API mismatch|This PCI I/O|loading|[a-z_]|R[mM])"
    r"|\bNVRM _?k?[a-z]{2,12}[A-Z]\w{2,60}: "
    r"|\(config space inaccessible\)|EDAC \w{2,12}: \d{1,9} UE|mce: \[Hardware Error\]|BUG: (?:soft|hard) lockup"
    r"|rcu: INFO: rcu_|Kernel panic - "
    r"|available PCIe bandwidth, limited by|PCIe Bus Error: severity=|has fallen off the bus"
    r"|iommu: Default domain type: |DMAR: IOMMU enabled"
    r"|AMD-Vi: Event logged \[|DMAR: \[(?:DMA|INTR)[ -]"
    r"|task \S{1,64}:[0-9]{1,10} blocked for more than [0-9]|nfs: server \S{1,255} not responding, "
    r"|LustreError: .{0,200}client was evicted by"
    r"|Lustre: .{0,200}Connection to .{1,200}was lost; in progress|I/O error, dev \w{1,40}, sector"
    rf"|\bamdgpu {_BUS}: "
    r"|detected NVSwitch (?:non-)?fatal error [0-9]|detected GPU NVLink fatal error on GPU"
    rf"|\[drm:amdgpu_\w{{1,60}} \[amdgpu\]\] \*ERROR\*"
    rf"|\b(?:mlx[45]_core|bnxt_(?:en|re)|ionic|irdma|ice|hns3|efa) {_BUS}[ :]|\bpcieport {_BUS}: "
    r"|\binfiniband [a-z]\w{1,20}: "
    r"|NETDEV WATCHDOG: \S{1,32} \(\w{1,20}\): transmit queue|\btx_timeout recovery level"
    r"|\bDetected (?:Tx|Hardware) Unit Hang\b|: NETDEV WATCHDOG: CPU: \d|: transmit timed out, resetting\b"
    r"|: TX timeout detected\b"
    r"|Detected insufficient power on the PCIe slot|\bbond\w{1,12}: .{0,60}link status definitely (?:up|down)\b"
    r"|\bNIC Link is (?:Up|Down)\b"
    r"|\bgeneral protection fault ip:[0-9a-f]{4,16} .{0,80} in lib|\binvoked oom-killer: "
)
_WRITTEN = tuple(word for word in HEADS["kernel-log"] if word not in ("[ ", "] "))
"""One of these stands wherever one of _WRITES is found, and is found in a hundredth of the time."""
_STAMPED = regex(r"(?:<[0-9]{1,3}>)?\[ {0,10}[0-9]{1,10}\.[0-9]{6}\] (?!\[[^\]\s:]{1,80}:[0-9]{1,9}:[0-9]{1,9}\])\S")
"""UCX puts seconds in brackets, too, and then `[host:process:thread]`."""


@cache
def _written() -> Finder:
    return finder([word.encode() for word in _WRITTEN])


class KernelLog(Source[KernelEvent]):
    """Reads the events of interest; every other line is no news and is passed over.

    `time_s` is seconds since boot where the log has them, otherwise seconds since the epoch (a clock without a zone
    is read as UTC), otherwise unknown.
    """

    kind = "kernel-log"
    speaks_of = frozenset({Topic.KERNEL_LOG})
    quiet_is_news = True
    apart = True
    trust = 60

    def recognises(self, head: str) -> bool:
        if _written().any(head.encode("utf-8", "replace")) and _WRITES.search(head) is not None:
            return True
        lines = [line for line in head[:HEAD_CHARS].split("\n") if line.strip()][:400]
        stamped = sum(_STAMPED.match(line[:64]) is not None for line in lines)
        foreign = any(" NCCL " in line for line in lines)
        return not foreign and stamped >= 1 and stamped * 2 >= len(lines)

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        newest: deque[KernelEvent] = deque(maxlen=MAX_EVENTS)
        found = 0
        data = blob.plain
        parsed.lines = data.count(b"\n") + 1
        for number, begin, end, literals in lines_with(_signs(), data):
            if min(literals) >= len(_SIGNS) and not any(word in data[begin:end].lower() for word in _BY_TROUBLE):
                continue
            event = _read_event(blob, number, data[begin:end].decode("utf-8", "replace")[:MAX_LINE])
            if event is not None:
                found += 1
                newest.append(event)
        parsed.records.extend(newest)
        parsed.partial = blob.item is None and parsed.lines < LEAST_WHOLE
        if found > MAX_EVENTS:
            parsed.leave(blob, None, "", f"{found - MAX_EVENTS} older events were counted and not kept")
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[KernelEvent], draft: NodeDraft) -> None:
        draft.events.extend(parsed.records)
        if b"amdgpu" in blob.data and not any(word in blob.data for word in (b"NVRM", b"nvidia")):
            draft.makers.add(Maker.AMD)  # also where the driver has nothing to complain of
        services = draft.single("services")
        for state in journal.units(blob):  # a journal holds both
            services.offer(state.name, state.word, blob.origin(state.line, state.text))


@cache
def _signs() -> Finder:
    return finder([literal.encode() for literal in (*_SIGNS, *_TROUBLE)])


def _read_event(blob: Blob, number: int, line: str) -> KernelEvent | None:
    when, message = _split(line.strip())
    found = _classify(message)
    if found is None:
        return None
    kind, bus, code = found
    bus_id = normalise_bus_id(bus) if bus else None
    return KernelEvent(kind, message[:MAX_TEXT], blob.origin(number, line), when, bus_id, code)


def _split(line: str) -> tuple[float | None, str]:
    """The time and the message, without the sender's name."""
    when: float | None = None
    if match := _MONOTONIC.match(line):
        when = float(match[1])
    elif match := _CTIME.match(line):
        when = seconds(match[1])
    elif match := _ISO.match(line):
        when = seconds(f"{match[1]}{match[2] or ''}")
    elif match := _KMSG.match(line):
        when = int(match[1]) / 1e6
    else:
        match = _SYSLOG.match(line)
    message = line[match.end() :] if match else line
    sender = _SENDER.match(message)
    return when, message[sender.end() :] if sender else message


NO_NEWS = ""


def _of_driver(message: str) -> bool:
    return _OF_NVRM.search(message) is not None or bool(_NVIDIA.search(message) and _FAILING.search(message))


_KINDS: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("gpu-lost", lambda message: _LOST.search(message) and not _SPOKEN_OF.search(message)),
    ("gpu-reset", _RESET.search),
    ("gsp", _GSP.search),
    ("gpu-init", lambda message: _OF_NVRM.search(message) and _NO_START.search(message)),
    ("pcie-bandwidth", lambda message: _BANDWIDTH in message),
    ("amdgpu", _AMDGPU.search),
    ("amdgpu-error", lambda message: "amdgpu" in message and "*ERROR*" in message),
    ("aer", lambda message: _AER.search(message) and "error" in message.lower()),
    ("iommu-fault", _IOMMU_FAULT.search),
    (NO_NEWS, lambda message: _of_driver(message) and _NVRM_ROUTINE.search(message)),
    ("nvlink-error", _NVLINK_OF_MANAGER.search),
    ("nvlink", _NVLINK_FAILS.search),
    ("nvrm", _of_driver),
    ("hung-task", _HUNG_TASK.search),
    ("storage", _STORAGE.search),
    ("hotplug", _REMOVED.search),
    ("link-set", _LINK_SET.search),
    ("link", lambda message: _LINK.search(message) and not _NOT_A_NETWORK.search(message)),
    ("iommu", _IOMMU.search),
    ("mlx5", _NOT_SENT.search),
    ("mlx5", lambda message: _NIC_DRIVER.search(message) and _MLX5_TROUBLE.search(message)),
    ("cpu", _CPU.search),
)
"""What a message tells: the first of these that holds."""


def _classify(message: str) -> tuple[str, str | None, int | None] | None:
    """Kind, bus id as written, and code; None for a line that is no news."""
    if match := _SXID.search(message):
        return "sxid", match[1], int(match[2])
    if match := _SXID_OF_MANAGER.search(message):
        return "sxid", match[2], int(match[1])
    if match := _XID.search(message):
        return "xid", match[1], int(match[2])
    if match := _XID_OF_AGENT.search(message):
        named = set(_ADDRESS_OF_AGENT.findall(message))
        return "xid", named.pop() if len(named) == 1 else None, int(match[1] or match[2])
    kind = next((kind for kind, holds in _KINDS if holds(message)), NO_NEWS)
    return (kind, _bus_of(kind, message), None) if kind != NO_NEWS else None


def _bus_of(kind: str, message: str) -> str | None:
    """The device that a message speaks of, as it writes it: the sender of an error, not the port that reports it."""
    if kind in ("hung-task", "iommu"):
        return None
    if kind == "aer" and (source := _AER_SOURCE.search(message)):
        return source[1] or source[2]
    match = _ANY_BUS.search(message)
    bus = match[0] if match else None
    if kind == "iommu-fault" and not bus and (short := _SHORT_BUS.search(message)):
        return f"0000:{short[1]}"
    return bus
