"""Lines of a job's output that no head of NCCL marks: how a process ended and for which ranks others wait (`ends`),
which fault they name (`job_sentences`), and what torch prints while a job goes down. Each line by itself.
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar import (
    async_events,
    ends,
    gloo_lines,
    headcounts,
    job_sentences,
    launches,
    pauses,
    queue_pairs,
    rank_states,
    reach,
    scheduled,
    store_barrier,
)
from topodiag.evidence.nccl_log.grammar.any_of import any_of
from topodiag.evidence.nccl_log.grammar.numbers import compiled, error_named

NOTES = (
    "destroy_process_group() was not called", "process group has NOT been destroyed",
    'Failed to check the "should dump" flag', "recvValue failed on SocketImpl", "sendBytes failed on SocketImpl",
    "recvVector failed on SocketImpl", "closing signal SIGTERM",
    "Unable to shutdown process", "Some NCCL operations have failed or timed out",
    "To avoid data inconsistency, we are", "KeyboardInterrupt",
)  # fmt: skip
"""What torch and its launcher print while a job goes down, well or badly: it names no cause."""

WELL = (
    "Custom allreduce is disabled", "was unable to find any relevant network interfaces",
    "No preset parameters were found for the device", "master_addr is only used for static rdzv_backend",
    "libibverbs: Warning: couldn't load driver '",
    "Setting OMP_NUM_THREADS environment variable for each process",
    "to perform barrier as devices used by this process are currently unknown",
)  # fmt: skip
"""What vLLM says of its own all-reduce where NCCL's takes over, Open MPI of a component that finds no adapter of its
kind and of an adapter that it has no defaults for, libibverbs of kinds of adapters that the node has not, torchrun of
each start, torch of a barrier without a device: runs that are well say it, too."""

TRIED = "tried"
"""Kind of a connect that its program tries again."""

WORDS = (
    b"retry count exceeded", b"retry counter exceeded", b"RETRY_EXC_ERR", b"Transport type", b"UCX  ", b"nvshmem",
    b"NIXL_ERR", b"ucp_ep_create", b"OFI_handle_cq", b"OFI poll", b"Endpoint could not", b"libfabric:",
    b"EI00", b"times out",
    b"HCCL", b"CCL_ERROR", b"Transport init", b"fi_getinfo", b"OFI ", b"NET/", b"Got completion ", b"network provider",
    b"suitable provider", b"libnccl-net", b"any NET plugin", b"peer access",
    b"cudaGetDeviceCount", b"cudaSetDevice", b"kernel image", b"named symbol",
    b"peer mapping", b"invalid resource handle", b"invalid device ordinal",
    b"ailed status ", b"IB Async event", b"onnection closed by peer", b"client socket has",
    b"RendezvousTimeout", b"waiting for clients", b"wait timeout after", b"C10d store", b"ncclUniqueId from",
    b"exchange_identification", b"ERROR: UNREACHABLE",
    b"Couldn't connect to", b"Horovod has been",
    b"gaierror", b"gai error", b"ocket has failed to", b"EADDRINUSE",
    b"eartbeat monitor timed out", b"Message:  ",
    *async_events.WORDS,
    *gloo_lines.WORDS, *headcounts.WORDS, *queue_pairs.WORDS, *launches.WORDS, *ends.WORDS, *job_sentences.WORDS,
    *pauses.WORDS, *rank_states.WORDS, *reach.WORDS, *scheduled.WORDS, *store_barrier.WORDS,
    *(words.encode() for words in (*NOTES, *WELL)), b"socket cannot be initialized",
    b"ssh: Could not resolve", b"Permission denied (publickey", b"reliably start one or more daemons",
    b"how to route a message", b"nvshmem: ", b"mca_btl_tcp", b"MPIDI_", b"non-zero status: ", b"collective timeout",
    b"watchdog hang", b"unexpectedly disconnected", b"ost communication",
    b"ost connection to", b"Barrier timed out. ",
    b"stopped sending heartbeats", b"has been set to ERROR in", b"with a different incarnation",
)  # fmt: skip
"""A line without any of these is none of theirs."""

_RENDEZVOUS_OVER = r"(?<!raise )(?<!except )(?<!import )\bRendezvousTimeoutError(?:[:(']|\s*$)"
"""What torchrun's rendezvous raises where not enough nodes came in time; not the line of its source that raises it."""
_PEER_GONE = compiled(
    r"Horovod has been shut down\. This was caused by an (exception on one of the ranks)"
    r"|gloo/\S{1,200}\] Connection closed by peer \[([^\]\s]{1,60})\]"
    r"|\bmca_btl_tcp\w{0,30}: .{0,80}(?:Connection reset by peer|Broken pipe| closed\b)"
    r"|\bMPIDI_\w{1,60}\(\d{1,6}\): .{0,160}(?:Connection reset|Connection closed|closed by peer)"
    r"|\bMPI communication peer process has unexpectedly disconnected"
    r"|\bhas lost communication with a remote daemon\b|\b[Ll]ost connection to (?:peer|rank|worker"
    r"|node) (?!.{0,40}retry)"
)
_NO_STORE = compiled(
    rf"client socket has (?:timed out|failed).{{0,80}}connect to \(?([\w.:-]{{1,80}}?)(?:[,)\s]|$)"
    rf"|{_RENDEZVOUS_OVER}"
    r"|\bretr(?:ie|ei)ving ncclUniqueId from \[\d{1,9}\] via .{0,120} got error|\bin store based barrier on rank\b"
    r"|\bwait timeout after \d{1,9} ?ms, keys: |[Cc]onnection to the C10d store has failed"
    r"|[Tt]imed out (?:after \d{1,6} seconds )?waiting for clients\b"
    r"|^\s{0,8}Couldn't connect to ([\w.:-]{3,80}?):\d{1,5}\s*$"
)
_STORE = compiled(
    r"\bgaierror\b|DistNetworkError\b.{0,300}gai error"
    rf"|server socket has failed to (?:listen|bind)|{error_named('EADDRINUSE')}"
)
"""The store at which ranks meet has no name or no port (torch c10d/socket.cpp, Python's socket). That one family of
addresses cannot be looked up is a warning beside the other one, and no error."""
_OPEN_MPI = compiled(r"^\s{0,8}Message: {1,8}connect\(\) to ((?:\d{1,3}\.){3}\d{1,3}):\d{1,5} failed")
"""Open MPI help-mpi-btl-tcp.txt, `client connect fail`: the reason stands in the next line."""
_LAUNCH = compiled(
    r"\bssh: Could not resolve hostname ([\w.-]{1,120})|^\s{0,8}([\w.@-]{1,160}): Permission denied \(publickey"
    r"|\b(?:kex|ssh)_exchange_identification: \S|\b(?:PMIX|OPAL|PRTE) ERROR: U(?:NREACHABLE|nreachable)\b"
    r"|\b(?:ORTE|PRTE|PRRTE) (?:was unable to reliably start one or more daemons|does not know how to route a message)"
)
"""OpenSSH, and Open MPI's mpirun (help-errmgr-base.txt, v4 and v5), of a node on which no daemon starts."""
_REGISTERED = compiled(
    r"\bBarrier timed out\. (?:Barrier_)?[Ii]d: ([^\s.]{1,120})|tasks are unhealthy \(stopped sending heartbeats\)"
    r"|coordination_service\.cc:\d{1,6}\] /job:\w{1,60}/(?:replica:\d{1,6}/)?task:\d{1,9} has been set to ERROR"
    r"|/job:\w{1,60}/(?:replica:\d{1,6}/)?task:\d{1,9} unexpectedly tried to connect with a different incarnation"
)
"""Coordination service of JAX and TensorFlow (coordination_service.cc): tasks that did not come in time, or that are
heard of no more."""
_LATE_FOR_ID = compiled(
    r"\bretr(?:ie|ei)ving ncclUniqueId from \[(\d{1,9})\] via .{0,120} got error: "
    r"(?:Socket Timeout|wait timeout|Timeout)"
)
"""Torch's ranks wait for the one that makes the communicator's id, which comes to it when it is there."""
_NO_FAMILY = compiled(r"socket cannot be initialized .{0,200}?\(errno: 97 - ")
"""Torch's c10d/socket.cpp on a host without IPv6: it goes on to the next address."""
_IWARP = compiled(r"\bTransport type {1,4}: {1,4}IW\b")
"""perftest over iWARP, whose queue pairs only the connection manager connects (`-R`)."""
_SENTENCE = compiled(r"[.!] (?=[A-Z])")
_HEARTBEAT = compiled(
    r"[Hh]eartbeat monitor timed out|\bProcessGroup\w{2,8} watchdog hang\b|\bdump signal due to a collective timeout\b"
)
_UCX_EVENT = compiled(r"IB Async event on ([\w.-]{1,60}): (.{3,80}?)(?: on port (\d{1,3}))?\s*$")
_MANAGER = compiled(r"client reregistration|SM change|GID table")
"""Events by which the subnet manager tells its ports something: connections live through them."""
_COMPLETED = compiled(
    r"\b(Transport|RNR) retry count exceeded on ([\w.-]{1,60}):(\d{1,3})/(?:RoCE|IB)\b"
    r"|[Tt]ransport retry counter exceeded\b|\bIBV_WC_(?:RNR_)?RETRY_EXC_ERR\b"
    r"|[Ff]ailed status (?:[\w \-/]{1,60} \((\d{1,2})\) for wr_id|(\d{1,2}): wr_id)"
)
"""UCX src/uct/ib/mlx5/ib_mlx5_log.c; rdma-core libibverbs/examples/*_pingpong.c; perftest src/perftest_resources.c."""
_LIBFABRIC = compiled(
    r"^.{0,80}?libfabric:\d{1,9}:.{0,40}:(?:cq|ep_data|ep_ctrl):.{0,160}"
    r"(?:prov_err|[Uu]nresponsive|[Uu]nreachable remote)"
)
"""FI_LOG of libfabric's providers: `libfabric:35:1668017255::efa:cq:rxr_cq_write_tx_error():243<warn> ..`."""
_NVSHMEM = compiled(
    r"\bsrc/(?:host|modules|device)/\S{1,80}: non-zero status: \d{1,6} \S|\bnvshmem: setup failed on PE\b"
)
"""NVSHMEM src/host: what did not come up."""
_ELSEWHERE = (
    ("connect", _NVSHMEM),
    (
        "timeout",
        compiled(
            r"\bEI00(?:0[246]|1\d)\b.{0,200}[Tt]imes? ?out|Getting socket times out|HCCL\S{0,40} .{0,200}time ?out"
        ),
    ),
    (
        "connect",
        compiled(r"\bEI0009\b|Transport init error|\|CCL_ERROR\| .{0,200}(?:atl_|provider|transport|connect|socket)"),
    ),
    (
        "plugin",
        compiled(
            r"^\s{0,8}NET/(?:OFI|FasTrak|GPUDirectTCPXO?|AWS Libfabric|Plugin)\S{0,20} ?: .{0,80}"
            r"\b(?:[Ff]ail|error|[Nn]o devices?)"
            r"|\blibnccl-net[\w.-]{0,40}\.so\S{0,8}[:)' ].{0,160}(?:version `[\w.]{2,40}' not found|undefined symbol"
            r"|wrong ELF class|invalid ELF header)|\bCould not find: libnccl-net-[\w-]{1,40}\.so"
            r"|\bFailed to initialize any NET plugin\b"
            r"|\bWARN: Function: \w{1,60} Line: \d{1,6}: NET/OFI (?:Couldn't find any optimal provider"
            r"|No eligible providers|.{0,60}\binitialization failed)"
            r"|\bfi_getinfo\(?\)?:? ?(?:\(\) )?(?:failed|returned|error)"
            r"|\bOFI (?:addrinfo|fi_getinfo|get_?info|getinfo)\(?\)? ?failed"
            r"|can(?:'t|not) (?:find suitable|open network) provider"
        ),
    ),
    (
        "cuda",
        compiled(
            r"(?:CUDA|[Cc]uda|HIP|[Hh]ip) (?:runtime |driver )?(?:error|failure)\b.{0,200}"
            r"(?:peer access (?:is not supported|between)|peer mapping resources|invalid resource handle"
            r"|invalid device ordinal|no kernel image is available|device kernel image is invalid"
            r"|named symbol not found)"
            r"|\bcuda(?:GetDeviceCount|SetDevice)\b.{0,40}?: (?:initialization error|unknown error)"
        ),
    ),
)
"""Errors of communication by other libraries, and by programs that ask CUDA themselves: HCCL's error codes, oneCCL, MPI
over libfabric, engines with an all-reduce of their own."""
_STATUS = {"Transport": "12", "RNR": "13"}
_RAY = compiled(r"^\s{0,8}\((?!raylet)[\w.:<>-]{1,80} pid=\d{1,9}(?:, ip=([\d.a-fA-F:]{3,45}))?\)")
_ANY = compiled(any_of(WORDS).decode())


_TRANSPORT = compiled(
    r"\bUCX {1,4}(?:ERROR|FATAL)\b|\bnvshmem\S{0,200}: non-zero status: [1-9-]|\bNIXL_ERR_(?!NOT_POSTED)[A-Z_]{3,40}"
    r"|\bucp_ep_create\([^)]{0,60}\) failed|\bMPIDI_OFI_handle_cq_error\b|\bOFI poll failed\b"
    r"|\bPSM[23] Endpoint could not be reached"
)
"""UCX' log levels, NVSHMEM's NVSHMEMI_NZ_ERROR_JMP (src/include/internal), NIXL's status names, Open MPI's and MPICH's
words on UCX, libfabric and PSM."""
_OF_MEMORY = compiled(r"(?:reg_mr|[Rr]egist).{0,200}(?:Bad address|EFAULT)")
"""Memory of a GPU that the kernel does not register is a node's fault, and read as such."""
_OF_WORK = compiled(
    r"[Rr]etr(?:y|ies) .{0,12}exceed|_cq_error\b|OFI poll|[Cc]ompletion .{0,40}(?:error|status)|\bCQE?\b"
    r"|Remote (?:access|operation)"
)
_OF_PEER = compiled(
    r"unreachable|[Tt]imed? ?out|refused|[Rr]eset by|rdma_\w{3,24} ?(?:\([^)]{0,80}\) )?failed|[Ee]ndpoint|\bconnect"
)


def speaks(text: str) -> bool:
    """Whether a line is one of these."""
    return said_of(text) is not None


def said_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Kind and what the line names; None for all others. Kinds of `ends.end_of`, and `device`: a fault alone, and
    `note`. `fault` is one of the catalogue; `host` the address that Ray puts in front, where the line names no other."""
    if _ANY.search(text) is None:
        return None
    if _is_note(text) and not job_sentences.is_interrupt(text):
        return "note", {}
    found = _before_all(text) or _verbs(text) or _unmet(text) or _waits(text)
    if found is not None:
        return found
    end, fault = _end_of(text), job_sentences.fault_of(text)
    if (end is None or end[1].get("how") == "exception") and not fault and (unreached := _unreached(text)):
        return "connect", unreached
    if end is None and not fault:
        return _of_transport(text) or _of_ranks(text)
    # That a peer's memory or link failed is said by each rank that reached for it: an error, and no device's fault yet.
    kind, named = end if end is not None else ("cuda" if fault == job_sentences.CONTAINED else "device", {})
    if fault:
        named["fault"] = fault
    ray = _RAY.search(text)
    if ray is not None and ray[1]:
        named.setdefault("host", ray[1])
    return kind, named


def _is_note(text: str) -> bool:
    """Whether a line names no cause: a program prints it while it goes down, or in a run that is well."""
    return any(words in text for words in (*NOTES, *WELL)) or _NO_FAMILY.search(text) is not None


def _of_ranks(text: str) -> tuple[str, dict[str, str]] | None:
    """What a line says of single ranks, or of what all of them wait for."""
    return rank_states.state_of(text) or pauses.pause_of(text) or _tried(text)


def _tried(text: str) -> tuple[str, dict[str, str]] | None:
    """A connect that is tried again: no error, and where nothing follows it the last that is known."""
    if "client socket has connected to" in text:
        return TRIED, {"reached": "1"}
    peer = reach.tried_for(text)
    return (TRIED, {"peer": peer}) if peer else None


def _end_of(text: str) -> tuple[str, dict[str, str]] | None:
    """How a process or a job ended, or whom others wait for. An exception that says how the calls of ranks differ is
    no end of one of them."""
    end = ends.end_of(text) or scheduled.end_of(text)
    if end is None or end[1].get("how") != "exception":
        return end
    state = rank_states.state_of(text)
    return state if state is not None and state[0] in (rank_states.MISMATCH, rank_states.DIFFERS) else end


def _before_all(text: str) -> tuple[str, dict[str, str]] | None:
    """What a line says that others of its words would hide: a start, a port that is taken, the rank that makes an
    id."""
    start = launches.launch_of(text)
    if start is not None:
        return launches.LAUNCHED, start
    met = store_barrier.met_of(text)
    if met is not None:
        return store_barrier.MET, met
    end = ends.end_of(text) if "use" in text or "USE" in text else None
    if end is not None and end[1].get("how") == "port taken":
        return end
    shared = reach.shared_address(text)
    if shared:
        return "connect", {"peer": shared, "why": "shared"}
    if rank_states.tells_of_library(text) and (state := rank_states.state_of(text)) is not None:
        return state
    if _IWARP.search(text) is not None:
        return "note", {"transport": "iwarp"}
    late = _LATE_FOR_ID.search(text)
    return ("stalled", {"ranks": late[1], "op": "ncclUniqueId"}) if late is not None else None


def _waits(text: str) -> tuple[str, dict[str, str]] | None:
    """Tasks that did not come in time, and a watchdog that heard nothing."""
    absent = headcounts.absent_of(text)
    if absent is not None and rank_states.is_said(_SENTENCE.split(text, maxsplit=1)[0]):  # advice follows
        return "device", {"fault": "absent", **absent}
    if _REGISTERED.search(text) is not None:
        return "timeout", {}
    return ("watchdog", {}) if _HEARTBEAT.search(text) is not None else None


def _unmet(text: str) -> tuple[str, dict[str, str]] | None:
    """What a process says that it does not reach: a peer, torch's store, gloo's or the launcher's other nodes."""
    gone, store, launch = _PEER_GONE.search(text), _NO_STORE.search(text), _LAUNCH.search(text)
    if gone is not None:
        return "peer closed", _given({"peer": gone[2] or ""})
    if store is not None or _STORE.search(text) is not None:
        peer = reach.peer_of(text) or ((store[1] or store[2]) if store is not None else "")
        why = "number" if reach.is_number(peer or "") else reach.why_unreached(text) if peer else ""
        return "connect", _given({"peer": peer or "", "why": why})
    met = _OPEN_MPI.search(text)
    if met is not None:
        return "connect", {"peer": met[1], "why": "own" if reach.is_bridge(met[1]) else "silent"}
    blocked = reach.blocked_of(text)
    if blocked:
        return "connect", {"peer": blocked, "why": "silent"}
    gloo = gloo_lines.said_of(text)
    if gloo is not None:
        return gloo
    if launch is None:
        return None
    host = (launch[1] or launch[2] or "").rpartition("@")[2]
    return "ended", _given({"how": "not launched", "host": host})


def _of_transport(text: str) -> tuple[str, dict[str, str]] | None:
    """An error that a transport library prints as its own, by what failed: work, the way to a peer, or neither."""
    if _TRANSPORT.search(text) is None or _OF_MEMORY.search(text) is not None:
        return None
    kind = "ib completion" if _OF_WORK.search(text) else "connect" if _OF_PEER.search(text) else "other"
    return kind, {}


def _unreached(text: str) -> dict[str, str]:
    """Whom a program of the ranks did not reach, and why; nothing where the line does not say both. A peer that refuses
    was reached, and its process is gone or not yet there: told only where each host has that address for itself."""
    if not reach.of_ranks(text):
        return {}
    why, peer = reach.why_unreached(text), reach.peer_of(text)
    if why and reach.is_bridge(peer):
        why = "own"
    if why and reach.is_number(peer):
        why = "number"
    return {"peer": peer, "why": why} if why and peer and why != "refused" else {}


def _given(named: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in named.items() if value}


_BARE = compiled(
    r"^\s{0,8}(?:NCCL )?(?:WARN|INFO) NET/\w{2,12} ?: Got completion (?:from|with)\b"
    r".{0,200}?\b(?:status=|error )\d{1,4}\b"
)
"""NCCL's own line without its head: a mail, a chat or a `cut` took it."""


def _verbs(text: str) -> tuple[str, dict[str, str]] | None:
    """What a verbs program says of a failed work request or of an event of the port: UCX, perftest, the pingpongs."""
    found = _COMPLETED.search(text)
    if found is not None:
        status = _STATUS[found[1]] if found[1] else found[4] or found[5] or ("13" if "RNR" in found[0] else "12")
        return "ib completion", {"status": status, "hca": found[2] or "", "port": found[3] or ""}
    if _BARE.search(text) is not None:
        return "ib completion", {}  # the classifier of NCCL's lines reads what it names
    if _LIBFABRIC.search(text) is not None:
        return "ib completion", {"provider": "libfabric"}
    refused = queue_pairs.refused_of(text)
    if refused:
        return "connect", refused
    elsewhere = next((kind for kind, pattern in _ELSEWHERE if pattern.search(text)), "")
    if elsewhere:
        return elsewhere, {}
    device = async_events.event_of(text)
    if device is not None:
        return device
    found = _UCX_EVENT.search(text)
    if found is not None:
        if _MANAGER.search(found[2]):
            return "note", {}
        return "ib async", {"hca": found[1], "event": found[2], "port": found[3] or ""}
    return None
