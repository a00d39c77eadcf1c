"""Lines that are kept as text, and noise, by how they begin. The first fitting entry decides; "" is known noise.

SOURCE: NCCL src/init.cc, src/bootstrap.cc, src/proxy.cc, src/{plugin,graph,transport,misc}/*.cc of
NCCL (all known versions); aws-ofi-nccl; nccl-rdma-sharp-plugins; RCCL.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar.numbers import compiled

NOISE = ""

STARTS: tuple[tuple[str, str], ...] = (
    # Proxies, shared buffers, registration and allocation: how, never whether.
    ("Connected to proxy", NOISE),
    ("Connection to proxy", NOISE),
    ("New proxy ", NOISE),
    ("Allocated shareable", NOISE),
    ("Imported shareable", NOISE),
    ("Allocated ", NOISE),
    ("MMAP ", NOISE),
    ("UDS", NOISE),
    ("proxyProgressAsync", NOISE),
    ("proxyUDS", NOISE),
    ("ncclProxy", NOISE),
    ("ncclPollProxyResponse", NOISE),
    ("resp.opId", NOISE),
    ("Queuing opId", NOISE),
    ("Received and initiated", NOISE),
    ("sendConnect ", NOISE),
    ("recvConnect ", NOISE),
    ("sendSetup", NOISE),
    ("recvSetup", NOISE),
    ("Created ", NOISE),
    ("Retrieving state", NOISE),
    ("Initialized state", NOISE),
    ("register comm", NOISE),
    ("deregister comm", NOISE),
    ("Mem Realloc", NOISE),
    ("MemManager", NOISE),
    ("P2P/CE", NOISE),
    ("Cleanup buffer", NOISE),
    # 2.31: what a choice was made from, before the line of the choice itself; teardown that was a warning before.
    ("Input: { .comm", NOISE),
    ("Best tuning", NOISE),
    ("commReclaim: ", NOISE),
    ("NCCL internal DMA", NOISE),
    ("gdr_get_attribut", NOISE),
    ("Intrusive map", NOISE),
    ("proxy listening socket", NOISE),
    ("Loaded NVML", NOISE),
    ("ncclOsDl", "benign"),
    ("dlvsym failed", "benign"),
    ("dlsym failed", "benign"),
    ("Call to ibv_query_ece", "benign"),
    ("Attribute ", "benign"),
    ("ncclMaxSharedMem ", "benign"),
    # Who runs.
    ("NCCL version", "version"),
    ("RCCL version", "version"),
    ("NCCL git version", "git version"),
    ("HIP version", "rccl"),
    ("ROCr version", "rccl"),
    ("ROCm version", "rccl"),
    ("Hostname", "rccl"),
    ("Librccl path", "rccl"),
    ("librccl path", "rccl"),
    ("Kernel version", "rccl"),
    ("MSCCL", "rccl"),
    ("hipDriverVersion", "rccl"),
    ("initialized internal alternative rsmi", "rccl"),
    ("rocm_smi_lib", "rccl"),
    ("cudaDriverVersion", "driver"),
    ("DMA-BUF is ", "dmabuf"),
    ("Dmabuf feature", "dmabuf"),
    ("GDRCOPY ", "gdrcopy"),
    ("CC On", "cc"),
    ("CC Off", "cc"),
    ("Stack size limit", "stack"),
    ("Socket handshake magic", NOISE),
    # Bootstrap and network.
    ("Bootstrap timings", "bootstrap timing"),
    ("Bootstrap : Using", "bootstrap"),
    ("Bootstrap: Using", "bootstrap"),
    ("NET : Using interface", "bootstrap"),
    ("Bootstrap", "bootstrap note"),
    ("Using network ", "network"),
    ("Using internal Network ", "network"),
    ("Using non-device net plugin", NOISE),
    ("Using NCCL Low-latency", "thresholds"),
    ("NET/Plugin: Loaded", "net plugin"),
    ("NET/Plugin: Plugin name", "net plugin"),
    ("NET/Plugin : Plugin name", "net plugin"),
    ("NET/Plugin: Using internal", "net plugin missing"),
    ("NET/Plugin: Could not find", "net plugin missing"),
    ("NET/Plugin: Failed to find", "net plugin missing"),
    ("NET/Plugin : No plugin", "net plugin missing"),
    ("NET/Plugin: No plugin", "net plugin missing"),
    ("NET/Plugin : Plugin load", "net plugin missing"),
    ("NET/Plugin: Plugin load", "net plugin missing"),
    ("NET/Plugin : dlerror", "net plugin missing"),
    ("NET/Plugin", "net plugin"),
    ("No plugin found", "net plugin missing"),
    ("Plugin name set by env", "net plugin"),
    ("Plugin Path", "net plugin"),
    ("P2P plugin", "net plugin"),
    ("Successfully loaded external", "net plugin"),
    ("External network plugin", "net plugin"),
    ("Initialized NET plugin", "net plugin"),
    ("Failed to initialize NET plugin", "net plugin"),
    ("Disabling external plugins", "net plugin"),
    ("Using NCCL_NET_DEVICE_UNPACK", "net plugin"),
    ("Assigned ", "assigned"),
    ("GIN/Plugin: Assigned", "assigned"),
    ("RMA/Plugin: Assigned", "assigned"),
    ("TUNER/Plugin: Using internal", "plugin"),
    ("TUNER/Plugin: Using", "tuner"),
    ("Using tuner plugin", "tuner"),
    ("TUNER/Plugin", "plugin"),
    ("PROFILER/Plugin", "plugin"),
    ("ENV/Plugin", "plugin"),
    ("GIN/Plugin", "plugin"),
    ("RMA/Plugin", "plugin"),
    ("NET/OFI NIC group", NOISE),
    ("NET/OFI ", "ofi"),
    ("NET/IB : Using", "hcas"),
    ("NET/IB: [", "hca"),
    ("NET/IB : No device found", "no hca"),
    ("NET/IB : Made virtual device", "virtual nic"),
    ("TOPO/NET : Made vNic", "virtual nic"),
    ("TOPO/NET", NOISE),
    ("NET/Socket : Using", "sockets"),
    ("NET/Socket: Using", "socket threads"),
    ("NET/Socket : GPU Direct", "gdr hca"),
    ("NET/Socket", "socket note"),
    ("NET/FastSocket", "socket note"),
    ("Socket progress", "socket note"),
    ("Marking physical devices as unplaced", "virtual nic"),
    ("Could not get speed from", "interface"),
    ("Found network interface", "interface"),
    ("Found interface", "interface"),
    ("ncclTopoPopulateNics", "nic"),
    ("GPU Direct RDMA ", "gdr pair"),
    ("PXN Disabled", "pxn"),
    ("GIN", "gin"),
    ("RMA", "gin"),
    ("devCommCreate", "gin"),
    ("Symmetric memory is not", "gin"),
    ("Symmetric ", NOISE),
    # Settings.
    ("Invalid value ", "setting"),
    ("Warning: ENV ", "setting"),
    ("ENV: ", "setting"),
    ("PARAM: ", "setting"),
    ("Disabling caching", "setting"),
    ("Parsed environment variable", "setting"),
    ("Comm config", "config"),
    ("Unknown CTA policy", "setting"),
    ("User asked for a m", "ctas"),
    ("maxCTAs ", "ctas"),
    ("minCTAs ", "ctas"),
    ("Invalid ", "setting"),
    ("Enabled NCCL Func/Proto/Algo Matrix", "matrix"),
    # The machine.
    ("Loading topology file", "topo file"),
    ("Loading unnamed topology", "topo file"),
    ("Loading ", "topo file"),
    ("Topology detection", "topo note"),
    ("KV Convert", "topo note"),
    ("Could not find real path", "topo note"),
    ("Could not find a path for pattern", "topo note"),
    ("No NVML device handle", "topo note"),
    ("NVLink target", "topo note"),
    ("CPUs with mixed", "topo note"),
    ("CUDA Dev ", "topo note"),
    ("Could not ", "topo note"),
    ("Count not ", "topo note"),
    ("Intel CPU (", "topo note"),
    ("Ignoring element", "topo note"),
    ("Unable to open ", "topo note"),
    ("Unable to get Re", "topo note"),
    ("Unknown NVLink r", "topo note"),
    ("XML Parse", "topo note"),
    ("ncclTopoGetXmlFromSys", "topo note"),
    ("peer query failed", "topo note"),
    ("Legacy IPC not supported", "topo note"),
    ("P2P is disabled between", "p2p off"),
    ("Check P2P Type", "p2p type"),
    ("Setting affinity", "affinity"),
    ("ncclTopoGetCpuAffinity", "affinity"),
    ("Search ", "search"),
    ("Local Net device counts", "devices"),
    ("Local CollNet device counts", "devices"),
    ("Tuning P2P operations", "devices"),
    ("Max P2P Peers", "devices"),
    # What a communicator uses.
    ("NVLS comm", "nvls comm"),
    ("NVLS Head", "nvls head"),
    ("NVLS Trees", "nvls tree"),
    ("NVLS Creat", NOISE),
    ("NVLS Bind", NOISE),
    ("NVLS Unmap", NOISE),
    ("NVLS rank", NOISE),
    ("NVLS", "nvls"),
    ("Failed to bind NVLink SHARP", "nvls"),
    ("MNNVL ", "mnnvl"),
    ("Cross-clique P2P", "mnnvl"),
    ("LSA extended", "mnnvl"),
    ("Connected Collnet Chains", "collnet"),
    ("Collnet Chains", "collnet"),
    ("CollNet", "collnet"),
    ("Cannot initialize CollNet", "collnet"),
    ("Communicator has ", "collnet"),
    ("Connected ", "connected"),
    ("P2P Chunksize", "chunk size"),
    ("threadThresholds", "thresholds"),
    ("Threads per block", "thresholds"),
    ("Min Comp Cap", "threads"),
    ("Launch mode", "launch"),
    ("[Proxy Progress] Created CUDA context", NOISE),
    ("[Proxy ", "proxy core"),
    ("[Service thread]", "proxy end"),
    ("timings: ", "connect time"),
    ("Bootstrap Split", "split"),
    ("bootstrapSplit", "split"),
    ("CommRevokeAsync", "split"),
    ("ncclCommSuspend", "split"),
    ("ncclCommResume", "split"),
    ("ncclCommGrow:", "split"),
    ("ncclCommShrink:", "split"),
    ("RAS ", "ras"),
    ("Continuing in spite of a RAS", "ras"),
    ("NCCL progress counter monitor", "ras"),
    ("NCCL progress-counter clock", "ras"),
    ("HINT:", "hint"),
    ("Sharp rank", "sharp"),
    ("SHARP", "sharp"),
    ("Call to ", "retry"),
    ("socket", "socket note"),
    ("didn't receive a valid magic", "socket note"),
    ("Socket magic mismatch from", "socket note"),
    ("Wrong socket type from", "socket note"),
    ("Handshake receive from", "socket note"),
    ("Net : ", "socket note"),
    ("Failed to open libibverbs", "ib note"),
    ("Failed ", "retry"),
    ("Cuda failure", "retry"),
    ("Abort", NOISE),
    ("Destroy", NOISE),
    ("Comm ", NOISE),
    ("Starting", NOISE),
)

PATTERNS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    # (what the message contains, the pattern to search for, kind)
    ("group size", compiled(r"^\w{1,60}: group size used is \d"), NOISE),
    ("nvml", compiled(r"^(?:nccl)?[nN]vml\w{1,60}(?:\(\) failed)?:"), "benign"),
    ("mkstemp", compiled(r"^mkstemp: "), "retry"),
    ("abort called", compiled(r": abort called$"), "socket note"),
    (" set ", compiled(r"^[A-Z][A-Z0-9_]{2,80} set (?:by|from) environment to "), "setting"),
    (" set to ", compiled(r"^[NR]CCL_[A-Z0-9_]{1,80} set to "), "setting"),
    ("CCL_M", compiled(r"^NCCL_(?:MIN|MAX)_\w{1,40} "), "ctas"),
    ("CCL_", compiled(r"^[NR]CCL_[A-Z0-9_]{1,80}(?: = | is | reset |=|:)"), "setting"),
    ("CCL_", compiled(r"^NCCL_(?:CGA_CLUSTER_SIZE |NVLINK_UTIL)"), "ctas"),
    ("GPU Direct RDMA", compiled(r"^NET/\S.{0,80}? : GPU Direct RDMA \w+ for HCA "), "gdr hca"),
    ("GPU Direct RDMA", compiled(r"^NET/\S.{0,80}? : GPU Direct RDMA \w+ for GPU "), "gdr pair"),
    ("C2C", compiled(r"^GPU \d+ / HCA \S+ connected"), "gdr pair"),
    ("qp", compiled(r"^NET/IB ?: .{0,300}?\b(?:qpn|qp_num)[ =]"), "qp"),
    ("_ece", compiled(r"^NET/IB ?: .{0,200}?(?:query|set)_ece"), "qp"),
    ("NET/IB", compiled(r"^NET/IB ?:"), "ib note"),
    ("threads", compiled(r"^Using \d+ threads(?:, Min Comp Cap|$)"), "threads"),
    ("nranks", compiled(r"^rank \d+ nranks \d+$"), NOISE),
    ("[Symmetric]", compiled(r"^\w+ \[Symmetric\]: "), "kernel"),
    ("closed before socket hello", compiled(r"^Peer \S{1,300} closed before socket hello"), "socket note"),
    ("[Hierarchical CE]", compiled(r"^\w+ \[Hierarchical CE\]: "), "kernel"),
    ("[Copy Engine]", compiled(r"^\w+ \[Copy Engine\]: "), "kernel"),
    ("NOCOLOR", compiled(r"^Rank \d+ has color"), "no color"),
    ("evices", compiled(r"^Rank \d+(?::| has) \d+ (?:local )?(?:Net|CollNet)"), "devices"),
    ("commHash", compiled(r"^Rank \d+: Generated commHash"), "split"),
    ("CollNet", compiled(r"^rank \d+ Connected CollNet"), "collnet"),
    ("egister", compiled(r"^rank \d+ (?:- |successfully |failed )"), NOISE),
    ("NVLS", compiled(r"^rank \d+ .*NVLS"), NOISE),
    ("returned", compiled(r"returned .{1,200}, retrying"), "socket note"),
    ("failed", compiled(r"^(?:NET|Net|\w+Socket\w*|nccl\w+): ?.{0,300} failed"), "socket note"),
)

_WIDTH = 4
_BY_START: dict[str, tuple[tuple[str, str], ...]] = {}
_SHORT = tuple((start, kind) for start, kind in STARTS if len(start) < _WIDTH)
for _start, _kind in STARTS:
    if len(_start) >= _WIDTH:
        _BY_START[_start[:_WIDTH]] = (*_BY_START.get(_start[:_WIDTH], ()), (_start, _kind))

# Numbers that differ on every line and say nothing: queue pairs, keys, file descriptors.
_REWRITTEN = frozenset({"qp", "ib note"})
_QP_NOISE = compiled(r"\b(qpn|qp_num)[ =]\d{1,12}|\b(?:pd|comm|context)=0x[0-9a-f]{1,16}| (?:fifo|ctsFifo)[RL]key=.*$")


def kind_of(message: str) -> str | None:
    """The kind of a line, NOISE, or None where nothing knows it."""
    for start, kind in _BY_START.get(message[:_WIDTH], ()):
        if message.startswith(start):
            return kind
    for word, pattern, kind in PATTERNS:
        if word in message and pattern.search(message):
            return kind
    for start, kind in _SHORT:
        if message.startswith(start):
            return kind
    return None


def kind_of_start(start: str) -> str | None:
    """The kind of all messages that begin so and are kept as printed, None where more of the message decides."""
    for known, kind in _BY_START.get(start[:_WIDTH], ()):
        if start.startswith(known):
            return None if kind in _REWRITTEN else kind
        if known.startswith(start):
            return None
    return None


def shown(kind: str, message: str) -> str:
    """The text as it is kept: equal facts give equal texts."""
    if kind in _REWRITTEN:
        return _QP_NOISE.sub(lambda found: f"{found[1]} #" if found[1] else "", message).rstrip()
    return message
