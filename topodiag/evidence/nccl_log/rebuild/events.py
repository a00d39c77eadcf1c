"""Warnings, unwinding and watchdogs: which kind of trouble a line speaks of, and what it names.

Wordings: nccl src/transport/net_ib*.cc, src/misc/socket.cc, src/misc/ibvwrap.cc, src/init.cc, src/bootstrap.cc; PyTorch
ProcessGroupNCCL.cpp 2.0 to 2.8.
"""

from __future__ import annotations

import re
from functools import lru_cache

from topodiag.evidence.nccl_log.grammar.job_lines import said_of
from topodiag.evidence.nccl_log.grammar.job_sentences import fault_of, refused_of
from topodiag.evidence.nccl_log.grammar.prefix import LAST_ERROR
from topodiag.lazy import regex

_STATUS = (
    "SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR",
    "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR",
    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR", "INV_EECN_ERR",
    "INV_EEC_STATE_ERR", "FATAL_ERR", "RESP_TIMEOUT_ERR", "GENERAL_ERR", "TM_ERR", "TM_RNDV_INCOMPLETE",
)  # fmt: skip
FLUSHED = "5"

_COMPLETION = regex(
    r"Got completion (?:from peer )?(?:(?P<peer>(?!with )\S+) )?"
    r"with (?:error |status=)(?:IBV_WC_\w+\()?(?P<status>\d{1,4})"
)
_OFI = regex(r"NET/OFI (?:Request|Operation)\b.{0,160}? completed with error")
"""aws-ofi-nccl src/nccl_ofi_rdma.cpp, nccl_ofi_sendrecv.cpp: one wording in all versions, up to the number."""
_VENDOR = regex(r"vendor[ _]err[ =](\d{1,9})")
_HCA = regex(r"\bhca (\S+)")
_LOCAL_GID = regex(r"localGid ?(\S+)")
_REMOTE_GID = regex(r"remoteGids ?(\S+)")
_DIRECTION = regex(r"(?:req_type=|\()(Send|Recv|Flush|Unused)\b")
_ASYNC = regex(
    r"NET/IB ?: (?:(?P<hca>[^\s:]+):(?P<port>\d{1,6}) )?"
    r"(?:(?:Got )?(?:non-fatal )?async (?:error |fatal )?event(?: on (?P<on>\w+))?[^:]*: (?P<what>.*?)(?:\(\d{1,6}\))?"
    r"|(?P<changed>GID table changed|unknown event type \(\d{1,6}\)|marking device with fatal error after .{1,80}))\s*$"
)
_CLOSED = regex(r"Connection closed by remote peer(?: ([\w.:%\[\]-]{1,255}<\d{1,5}>))?")
"""Before a connection is made NCCL prints what happens to be in memory for the peer, without a port: `s<>`."""
_SILENT = regex(
    r"Call to (?:recv|send)\w{0,4} (?:from|to) (\S{1,255}) (?:failed|returned).{0,40}"
    r"(?:Connection timed out|No route to host|(?:Host|Network) is unreachable)"
)
"""A connection that stood, and whose peer no longer acknowledges: its host or the network between went away. Where the
peer's process died, its host resets the connection instead."""
_CONNECT = regex(
    r"[Cc]onnect to (\S+) (?:failed|returned)|[Nn]o route to host|Connection (?:refused|timed out)|connection abort"
)
_QP = regex(
    r"(?:on dev (?P<hca>[^\s:,]+):(?P<port>\d{1,6}).*?)?"
    r"local (?:GID|gid) (?P<local>[0-9a-fA-F:.]+), remote (?:GID|gid) (?P<remote>[0-9a-fA-F:.]+)"
)
_DUPLICATE = regex(
    r"Duplicate GPU detected : rank (\d{1,9}) and rank (\d{1,9}) both on CUDA device ([0-9a-fA-F]{1,16})"
)
_WATCHDOG = regex(
    r"(?:[Ww]atchdog caught|\] Caught) collective operation timeout: WorkNCCL\((?:SeqNum=(\d{1,18}), )?OpType=(\w+)"
)
_WATCHDOG_TIME = regex(r"Timeout\(ms\)=(\d{1,15})\) ran for (\d{1,15}) milliseconds")
_NUMEL = regex(r"\bNumelIn=(\d{1,15}), NumelOut=(\d{1,15})\b")
_LAST_WORK = regex(r"[Ll]ast enqueued (?:NCCL )?work: (-?\d{1,18}), last completed (?:NCCL )?work: (-?\d{1,18})")
_PG = regex(r"PG (?:ID )?(\w{1,40})(?: PG GUID ([^\s(]{1,80}))?(?:\(([^)]{0,80})\))? Rank (\d{1,9})")
_RANK = regex(r"\[[Rr]ank ?(\d{1,9})\]|\brank (\d{1,9})\b")
_GAVE_UP = regex(r"NCCL (?:error|failure)|\bnccl\w{3,20}Error\b|\bncclInvalid")
"""Torch repeats a result of NCCL's: what it names besides is another line's."""
_LABEL = regex(r"(?:rank)?(\d{1,9})")
_GPU_ENDED = regex(
    r"atchdog thread terminated with exception: (?:CUDA|HIP) (?:error|kernel)\b.{0,12}?(?:illegal|misaligned"
    r"|unspecified|device-side|hardware|launch fail|uncorrectable|Uncorrectable)"
)
"""Torch's watchdog asks for the state of the GPU: what it meets there is the process' own failure, and no wait."""
_VERSIONS = regex(r"Mismatched NCCL version detected : rank (\d{1,9}) version (\S+) rank (\d{1,9}) version (\S+)")

_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("version", regex(r"Mismatched NCCL version|driver version is insufficient|CUDA Driver version found|not supported in the installed CUDA driver|requires (?:a )?newer driver", re.I)),  # noqa: E501
    ("mismatch", regex(r"message truncated|[Mm]essage truncated|collective mismatch|[Mm]ismatched collective|posted incorrect receive|mixed local Net device|Detected mixed|socketFinalize\w+: wrong type|mismatch in (?:rank count|info)|[Rr]anks have mismatched|disagree between rank|differs from rank")),  # noqa: E501
    ("memory", regex(r"[Oo]ut of memory|Failed to (?:CUDA )?malloc|shared memory segment|failed to extend|[Mm]emory allocation|ibv_(?:reg_mr|create_|alloc_).{0,120}(?:Cannot allocate|ENOMEM|error -12)|No space left|Allocation failed")),  # noqa: E501
    ("connect", regex(r"[Cc]onnect to .* failed|ibv_modify_qp\b.{0,60}failed|No route to host|Connection (?:refused|timed out)|[Cc]onnect timeout|ocket\w{1,40}: exceeded (?:retries|timeouts)|No interface found in the same subnet|incompatible")),  # noqa: E501
    ("bootstrap", regex(r"^Bootstrap|^bootstrap|no socket interface found|has already checked in|NCCL_COMM_ID|wrong magic|no device found matching|is neither AF_INET")),  # noqa: E501
    ("timeout", regex(r"timed? ?out|ETIMEDOUT", re.I)),
    ("cuda", regex(r"Cuda failure|CUDA error|NVLS|NVML|[Ii]llegal memory|cuMem|MNNVL|CUDA IPC|HIP failure|\bhip\w{1,40} failed")),  # noqa: E501
    ("port", regex(r"\bport (?:error|active|down)|marked as failed|link (?:down|flap)|Device <?\d+>? marked")),
    ("topology", regex(r"XML|topology|topo|Attribute .* not found|P2P is disabled between|does not loop back|graph|Could not find a path")),  # noqa: E501
    ("plugin", regex(r"[Pp]lugin|NET/OFI|libnccl-net|libfabric", re.I)),
)  # fmt: skip
_CASCADE = regex(
    r"abort state|Socket recv failed while polling|Proxy Call to rank|ncclAsyncJobComplete|commReclaim|"
    r"commDestroySync|ncclCommSetAsyncError|Proxy Service|has no transport for|Call to (?:recv|send)|"
    r"recv from .* failed|terminated|Broken pipe|Connection reset|Connection closed"
)


@lru_cache(maxsize=65536)
def classify(level: str, text: str) -> tuple[str, bool, tuple[tuple[str, str], ...]]:
    """Kind, whether the line follows from another by its nature, and what it names.

    An application's line follows always: it repeats NCCL's own, which may be lost.
    """
    if level == "UNWIND":
        return "unwind", True, ()
    kind, secondary, details = _classified(level, text)
    fault = "" if any(name == "fault" for name, _ in details) else fault_of(text)
    return kind, secondary, (*details, ("fault", fault)) if fault else details


def _classified(level: str, text: str) -> tuple[str, bool, tuple[tuple[str, str], ...]]:
    named = _named_trouble(level, text)
    if named is not None:
        return named
    pair = said_of(text) if level == "APP" and not LAST_ERROR.match(text) and not _GAVE_UP.search(text) else None
    if pair is not None:
        return pair[0], True, _given(pair[1])
    if level == "APP" and not LAST_ERROR.match(text):
        return ("watchdog" if "atchdog" in text or _WATCHDOG.search(text) else "other"), True, _given(_group(text))
    match = _CLOSED.search(text)
    if match is not None:
        return "peer closed", True, _given({"peer": match[1] or ""})
    if "Multiple Ranks are using the same GPU" in text:
        return "duplicate gpu", False, ()
    match = _VERSIONS.search(text)
    if match is not None:
        details = {"ranks": f"{match[1]},{match[3]}", "versions": f"{match[2]},{match[4]}"}
        return "version", level == "APP", _given(details)
    kind = next((kind for kind, pattern in _KINDS if pattern.search(text)), "other")
    return kind, level == "APP" or bool(_CASCADE.search(text)), _given(_connection(text))


def _named_trouble(level: str, text: str) -> tuple[str, bool, tuple[tuple[str, str], ...]] | None:
    """Lines that tell the whole trouble by themselves, whoever repeats them; None for others."""
    details: dict[str, str] = {}
    match = _COMPLETION.search(text)
    if match is not None:
        return _completion(match, text, again=level == "APP")
    refused = refused_of(text) if text.startswith("NET/OFI ") else {}
    if refused:
        return "connect", level == "APP", _given(refused)
    if _OFI.search(text) is not None:
        return "ib completion", level == "APP", (("provider", "libfabric"),)
    match = _ASYNC.search(text)
    if match is not None:
        what = (match["what"] or match["changed"]).strip()
        if what.startswith("marking device"):
            what = "device fatal: it is given up after a GID change"
        details = {"hca": match["hca"] or "", "port": match["port"] or "", "event": what}
        kind = "port" if what.startswith(("port ", "Device link", "speed")) else "ib async"
        return kind, False, _given(details)
    match = _WATCHDOG.search(text)
    if match is not None:
        details = {"seq": match[1] or "", "op": match[2]}
        times = _WATCHDOG_TIME.search(text)
        if times is not None:
            details |= {"timeout_ms": times[1], "ran_ms": times[2]}
        sizes = _NUMEL.search(text)
        if sizes is not None:
            details |= {"numel_in": sizes[1], "numel_out": sizes[2]}
        return "watchdog", False, _given(details | _group(text))
    if _GPU_ENDED.search(text) is not None:
        return "cuda", False, _given(_group(text))
    match = _LAST_WORK.search(text)
    if match is not None:
        return "watchdog", True, _given({"work": match[1], "completed": match[2]} | _group(text))
    match = _SILENT.search(text)
    if match is not None:
        return "connect", level == "APP", _given({"peer": match[1]})
    match = _DUPLICATE.search(text)
    if match is not None:
        details = {"ranks": f"{match[1]},{match[2]}", "bus_id": _unpacked(match[3])}
        return "duplicate gpu", level == "APP", _given(details)
    return None


def _completion(match: re.Match[str], text: str, *, again: bool) -> tuple[str, bool, tuple[tuple[str, str], ...]]:
    number = int(match["status"])
    details = {"peer": match["peer"] or "", "status": str(number)}
    if number < len(_STATUS):
        details["status_name"] = _STATUS[number]
    for name, pattern in (
        ("vendor_err", _VENDOR), ("hca", _HCA), ("gid", _LOCAL_GID), ("remote_gid", _REMOTE_GID),
        ("direction", _DIRECTION),
    ):  # fmt: skip
        more = pattern.search(text)
        if more is not None:
            details[name] = more[1]
    return "ib completion", again or details["status"] == FLUSHED, _given(details)


def _connection(text: str) -> dict[str, str]:
    details: dict[str, str] = {}
    match = _CONNECT.search(text)
    if match is not None:
        details["peer"] = match[1] or ""
    match = _QP.search(text)
    if match is not None:
        details |= {
            "hca": match["hca"] or "",
            "port": match["port"] or "",
            "gid": match["local"],
            "remote_gid": match["remote"],
        }
    return details


def _group(text: str) -> dict[str, str]:
    match = _PG.search(text)
    if match is None:
        return {}
    return {"group": match[1], "guid": match[2] or "", "group_words": match[3] or "", "group_rank": match[4]}


def _given(details: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in details.items() if value)


def _unpacked(text: str) -> str:
    return bus_id_of(int(text, 16))


@lru_cache(maxsize=65536)
def bus_id_of(packed: int) -> str:
    """NCCL's packed bus id as sysfs writes it; "" when unknown."""
    if packed < 0:
        return ""
    return f"{packed >> 20:04x}:{(packed >> 12) & 0xFF:02x}:{(packed >> 4) & 0xFF:02x}.{packed & 0xF:x}"


def rank_of(label: str, text: str) -> int:
    """The rank that a launcher's label or torch's own head names, -1 without: torch's `[Rank 1]` may be that of a
    process group, so that the label decides where there is one."""
    labelled = _LABEL.fullmatch(label)
    if labelled is not None:
        return int(labelled[1])
    match = _RANK.search(text) if "atchdog" in text or "[R" in text or text.startswith("[rank") else None
    return int(match[1] or match[2]) if match is not None else -1
