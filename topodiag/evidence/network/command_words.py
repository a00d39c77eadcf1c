"""Lines of well known commands and switches that say by themselves how a network fails.

SOURCE: iputils ping, tracepath and traceroute; BusyBox; iproute2; netcat; iperf3; infiniband-diags; opensm
(osm_sm_state_mgr.c); Linux mlx5 cmd.c; ufw's log; FRRouting and Cisco (`show bgp summary`); the SR-IOV device plug-in.
"""

from __future__ import annotations

import re

_PRIVATE = r"(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.64\.)"
_HOST = r"(?=[\w.-]{0,40}[A-Za-z])(?=[A-Za-z_.-]{0,40}\d)[\w.-]{2,40}"
"""A letter and a digit are in the names of nodes and in few other words."""
_RDMA_PORT = r"'(?:mlx[45]|mthca|bnxt_re|roce|rocep|rdmap|irdma|ionic|erdma|efa|hns|qedr|hfi|opa)\w{0,40}(?::\d{1,3})?'"
_COMMANDS = tuple(
    (fault, re.compile("|".join(patterns)))
    for fault, patterns in (
        ("sockets", (
            r"\btransports? '(?:rc|dc|ud|ib)[\w,]{0,40}' (?:is|are) not available",
            # UCX ucp_context.c: RDMA devices that a setting names, beside a list that has none. Among others, a name
            # that is not there is a wrong one, or a port that is down.
            rf"\bnetwork devices? {_RDMA_PORT}(?:, ?{_RDMA_PORT}){{0,31}} (?:is|are) not available,"
            r" please use one or more of: (?!.{0,900}'\((?!tcp\)))'",
        )),
        ("gid", (r"\bgids/\d{1,3}\b ?(?:->|→|is) ?\b0{4}(?::0{4}){7}\b",)),
        ("devices", (r"\brdma is required in the configuration but the device \S{1,40} is not rdma device",)),
        ("adapter-firmware", (
            r"^(?!.{0,300}\b(?i:if|when|may|check|not|no longer)\b).{0,200}?"
            r"\b(?:is|are|in|entered|into) (?:in |now )?(?i:live-?fish)\b",
        )),
        ("mtu", (
            r"\bmessage too long, mtu[= ]\d", r"[Ff]rag(?:mentation)? needed(?: and DF set)?\b",
            r"needs to be fragmented but DF set", r"\bping: .{0,60}Message too long",
        )),
        ("route", (
            r"\bicmp_seq=\d{1,9} (?:Destination (?:Host|Net\w{0,4}|Port) (?:Unreachable|Prohibited)|Packet filtered"
            r"|Time to live exceeded)",
            r"\b[1-9]\d{0,8} packets transmitted, 0 (?:packets )?received\b",
            r"^RTNETLINK answers: (?:Network is unreachable|No route to host)",
            r"^(?:connect|ping): .{0,80}(?:Network is unreachable|Name or service not known|unknown host)",
            r"^(?:\$ )?(?:nc|ncat|telnet)\b.{0,120}(?:timed out|No route to host|Network is unreachable)",
            r"\bnc: (?:bad address|getaddrinfo)\b", r"^Ncat: (?:Connection timed out|No route to host)",
            r"^iperf3?: error - unable to connect to server: .{0,60}(?:timed out|No route|unreachable)",
            r"^\d{1,5}/(?:tcp|udp) (?:open\|)?filtered\b", r"\bserver can't find \S{1,120}: (?:NXDOMAIN|SERVFAIL)",
            r"\b(?:bash|sh|zsh): .{0,40}(?:connect|/dev/tcp/\S{1,80}): (?:Connection timed out|No route to host"
            r"|Network is unreachable)",
            rf"\bcurl: \(28\) .{{0,60}}\b{_PRIVATE}",
            rf"^\W{{0,8}}{_HOST} ?(?:->|<->|→|=>) ?{_HOST}\W{{1,20}}(?:UNREACHABLE|unreachable|no route|FAIL(?:ED)?"
            r"|timed? ?out|no answer|refused)\b",
            r"\d ms !(?:[NHXP]|\d{1,3})(?:\s|$)",
            r"(?<!localhost )\bresolves? to \(?(?:127\.\d|::1\b|localhost\b)",
            rf"\[UFW BLOCK\] IN=\w{{1,15}} .{{0,200}}\bSRC={_PRIVATE}.{{0,160}}\bPROTO=(?:TCP .{{0,40}}"
            r"\bDPT=(?:[1-9]\d{4}|[2-9]\d{3})\b|UDP .{0,40}\bDPT=4791\b)",
            r"^(?:\d{1,3}\.){3}\d{1,3} 4 \d{1,10}(?: \d{1,12}){5} \S{1,12} (?:Idle|Active|Connect|OpenSent)\b"
            r"(?! ?\(Admin)",
            r"\btimed out after \d{1,6} ?s(?:ec\w*)? waiting for [\w.-]{2,120}:\d{2,5}\b",
        )),
        ("subnet", (
            r"\bOpenSM \S{1,20}: SUBNET DOWN\b",
            r"\bopensmd?\.service: (?:Main process exited, code=(?:killed|dumped)|Failed)",
            r"\bsminfo: iberror: ",
            r"\bibwarn: .{0,60}(?:_do_madrpc: (?:recv|send) failed|mad_rpc: .{0,40} failed;)",
        )),
        ("plugin", (
            r"\bpackage (?:aws-ofi-nccl|libnccl-net|nccl-rdma-sharp|libfabric|efa|nccl-gib)\S{0,40} is not installed",
            r"\bno packages? found matching (?:aws-ofi-nccl|libnccl-net|nccl-rdma-sharp|libfabric|efa|nccl-gib)",
        )),
        ("switch", (r"\b[1-9]\d{3,12} (?:input errors?|CRC(?: errors?)?|output (?:discards?|drops?|errors?))\b",)),
        ("devices", (
            r"\bFailedCreatePodSandBox\b.{0,400}(?:Link not found|no (?:such )?device|failed to find device|\bVFs?\b)",
        )),
        ("qp", (r"\b(?:RST2INIT|INIT2INIT|INIT2RTR|RTR2RTS)_QP\(0x[0-9a-f]{1,4}\).{0,60}\bfailed\b",)),
        ("subnet-event", (
            r"^(?!.{0,200}\b[Aa]sync\b).{0,200}?(?:\bSM (?:LID )?change\b|\bclient re-?regist(?:er|ration)\b"
            r"|\bLID change event\b|\bsm_state_mgr_\w{1,30}: .{0,120}\btook over\b|\bEntering STANDBY state\b)",
        )),
    )
)  # fmt: skip
WORDS = (
    "transport", "network device", "->", "→", "=>", "gids/", "rdma is required", "too long", "ragment", "rag needed",
    "icmp_seq=", "packets transmitted", "RTNETLINK", "connect:", "ping: ", "nc: ", "nc -", "Ncat", "ncat", "telnet",
    "iperf", " ms !", "resolve", "UFW BLOCK", "Idle", "Active", "Connect", "OpenSent", "timed out after", "sminfo",
    "ibwarn", "filtered", "can't find", "/dev/tcp", "curl: ", "SUBNET DOWN", "opensm", "package", "input error", "CRC",
    "output d", "output error", "PodSandBox", "_QP(", "SM change", "SM LID", "regist", "LID change", "took over",
    "STANDBY", "ivefish", "ive-fish", "LIVEFISH",
)  # fmt: skip


def may_be_command(line: str) -> bool:
    """Whether any word stands in a line without which it is none of these: cheap to ask."""
    return any(map(line.__contains__, WORDS))


def command_fault(text: str) -> str:
    """The fault that a line of a command tells of, in the words of `checks/reported.py`; "" for none. The line has
    single blanks."""
    if not may_be_command(text):
        return ""
    return next((fault for fault, pattern in _COMMANDS if pattern.search(text)), "")


__all__ = ["command_fault", "may_be_command"]
