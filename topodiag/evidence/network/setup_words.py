"""Faults in how a network is set up, in any tool's or person's wording: what a line says by itself.

    [FAIL] ens6f0np0: PFC disabled on priority 3        lossy
    interface rdma0 MTU is 1500, expected 4220          mtu
    ping: local error: message too long, mtu=1500       mtu
    P_Key 0x8012 is not found                           pkey
    10.8.2.7: Destination Host Unreachable              route
    [PASS] no MTU mismatch                              nothing: denied

Three ways to say it: a thing and a state near each other in one clause, a value beside the one that was expected, and
sentences of well known commands (ping, nc, ip route, the infiniband-diags). Advice, questions, settings and what is
denied say nothing. A line proves nothing by itself: it is quoted.
"""

from __future__ import annotations

import re

from topodiag.evidence.host.part_states import APART, denied, parted

MAX_LINE = 1000

_OFF = r"disabled|not (?:enabled|configured|set|active|negotiated|operational|present|turned on)|(?:is |are |=|: ?)off\b|missing"
_UNLIKE = r"\bmis-?match\w*|do(?:es)?(?: not|n't) match|inconsistent|\bdiffer(?:s|ent|ence)?\b|\bwrong\b|incorrect"
_LOSSY = r"\blossy\b|not (?:a |in (?:a |the )?)?lossless|without (?:flow control|PFC)|best[- ]effort"
_BLOCKS = r"\bblock(?:s|ed|ing)\b|\bden(?:y|ies|ied|ying)\b|\breject(?:s|ed|ing)?\b|not (?:allowed|permitted|open)|\bdrop(?:s|ped|ping)\b"

_TABLE: tuple[tuple[str, str, str], ...] = (
    ("lossy", r"\b(?:PFC|priority[- ]flow[- ]control|DCQCN|ECN|lossless (?:class|priority|queue|buffer)s?)\b",
     rf"{_OFF}|{_UNLIKE}|\bstorm\b|deadlock"),
    ("lossy", r"\b(?:(?:RoCE|RDMA|NCCL)(?:v2)? (?:traffic|packets?|flows?)|all RDMA|trust(?: mode| state)?|DSCP|ToS"
              r"|traffic[- _]class|tclass|NCCL_IB_TC|priority \d|prio ?\d)\b",
     rf"{_UNLIKE}|{_LOSSY}"),
    ("lossy", r"\b(?:RoCE|RDMA|NCCL)(?:v2)? (?:traffic|packets?|flows?)\b",
     r"\bprio(?:rity)? ?0\b|default (?:queue|class|priority)|untagged|not (?:tagged|marked)"),
    ("mtu", r"(?<![\w-])(?:MTUs?|path MTU|jumbo frames?)\b(?!_)",
     rf"{_UNLIKE}|too (?:small|large|low|high)|smaller than|lower than|exceeds|not (?:enabled|allowed|passed|supported)"),
    ("pkey", r"\bp_?keys?\b|\bpartition key\b",
     rf"violation\w*|not (?:found|present|configured|a member|assigned|in the)|\bbad\b|invalid|missing|{_UNLIKE}"),
    ("gid", r"\bGIDs?(?: index(?:es)?| table| entry)?\b|\b(?:s?gid_?index|NCCL_IB_GID_INDEX)\b",
     rf"\bmoved\b|shifted|not (?:found|valid|present|routable|populated)|\bempty\b|invalid|out of range|does not exist"
     rf"|{_UNLIKE}"),
    ("subnet", r"\bsubnet manager\b|\bopensm\b|\bmaster SM\b",
     r"not (?:running|found|responding|reachable|active|present)|unreachable|\bdied\b|\bis down\b|crashed|no response"
     r"|timed? ?out|fail(?:ed|over)\b|hand-?over|\blost\b|stopped|\bnone\b"),
    ("route", r"\b(?:firewall|security group|network ?polic(?:y|ies)|iptables|nftables|firewalld|\bACL)s?\b", _BLOCKS),
    ("route", r"\b(?:rail|subnet|VLAN|VRF|network namespace|node|host|peer|port \d{2,5})s?\b",
     r"unreachable|isolated|no route|not (?:routed|routable|reachable)|cannot reach|can't reach"),
)  # fmt: skip
"""In the order in which they are asked: the fault in the words of `checks/reported.py`, the thing, its state."""

_NEAR = tuple(
    (fault, re.compile(part, re.IGNORECASE), re.compile(state, re.IGNORECASE)) for fault, part, state in _TABLE
)

_COMMANDS = tuple(
    (fault, re.compile(pattern))
    for fault, pattern in (
        ("mtu", r"\bmessage too long, mtu[= ]\d|[Ff]rag(?:mentation)? needed(?: and DF set)?\b"
                r"|needs to be fragmented but DF set|\bping: .{0,60}Message too long"),
        ("route", r"\bicmp_seq=\d{1,9} (?:Destination (?:Host|Net\w{0,4}|Port) (?:Unreachable|Prohibited)"
                  r"|Packet filtered|Time to live exceeded)"
                  r"|\b[1-9]\d{0,8} packets transmitted, 0 (?:packets )?received\b"
                  r"|^RTNETLINK answers: (?:Network is unreachable|No route to host)"
                  r"|^(?:connect|ping): .{0,80}(?:Network is unreachable|Name or service not known|unknown host)"
                  r"|^(?:\$ )?(?:nc|ncat|telnet)\b.{0,120}(?:timed out|No route to host|Network is unreachable)"
                  r"|\bnc: (?:bad address|getaddrinfo)\b|^Ncat: (?:Connection timed out|No route to host)"
                  r"|^iperf3?: error - unable to connect to server: .{0,60}(?:timed out|No route|unreachable)"
                  r"|\btimed out after \d{1,6} ?s(?:ec\w*)? waiting for [\w.-]{2,120}:\d{2,5}\b"),
        ("subnet", r"\bsminfo: iberror: |\bibwarn: .{0,60}(?:_do_madrpc: (?:recv|send) failed|mad_rpc: .{0,40} failed;)"
),
        ("qp", r"\b(?:RST2INIT|INIT2INIT|INIT2RTR|RTR2RTS)_QP\(0x[0-9a-f]{1,4}\).{0,60}\bfailed\b"),
        ("subnet-event", r"^(?!.{0,200}\b[Aa]sync\b).{0,200}?(?:\bSM (?:LID )?change\b|\bclient re-?regist(?:er|ration)\b|\bLID change event\b)"),
    )
)  # fmt: skip
"""Lines of ping (iputils, BusyBox), iproute2, netcat, iperf3, infiniband-diags."""

_VALUES = (
    ("mtu", r"(?<![\w-])(?:\w{0,12}_)?mtu\b"),
    ("lossy", r"\b(?:tos|tclass|traffic[- _]class|dscp|trust(?:[- _](?:mode|state))?|pfc(?:[- _]\w{1,12})?"
              r"|(?:roce[- _])?prio(?:rity)?)\b"),
    ("pkey", r"\bp_?key\b"),
    ("gid", r"\bgid[- _]?index\b"),
)  # fmt: skip
_VALUE = r"[\"'`(]?(?P<{}>0x[0-9a-f]{{1,8}}|\d{{1,6}}|dscp|pcp|enabled|disabled|on|off)\b(?![.:/-]\d)"
_WANT = r"(?:expected|expects?|wanted|want|required|requires|should be|must be|configured|desired|reference|baseline)"
_GOT = r"(?:actual(?:ly)?|got|found|has|have|is|was|observed|current(?:ly)?|but|measured|value|seen)"
_GAP = r"(?:[\s\"':=_(,-]{1,4}(?!\d|0x)[a-z_]{1,16}){0,3}[\s\"':=_(,-]{1,6}"
_BESIDE = tuple(
    (
        fault,
        tuple(
            re.compile(pattern, re.IGNORECASE)
            for pattern in (
                rf"{name}{_GAP}{_VALUE.format('had')}.{{0,24}}?\b(?:{_WANT}|instead of|!=|vs\.?|not){_GAP}{_VALUE.format('wanted')}",
                rf"{name}\b.{{0,60}}?{_WANT}{_GAP}{_VALUE.format('wanted')}.{{0,24}}?\b{_GOT}{_GAP}{_VALUE.format('had')}",
                rf"\b{_WANT}{_GAP}{name}{_GAP}{_VALUE.format('wanted')}.{{0,24}}?\b{_GOT}{_GAP}{_VALUE.format('had')}",
                rf"{name}\b.{{0,60}}?\b{_GOT}{_GAP}{_VALUE.format('had')}.{{0,24}}?{_WANT}{_GAP}{_VALUE.format('wanted')}",
            )
        ),
    )
    for fault, name in _VALUES
)
"""A value beside the one that should be there, in either order."""

_SOCKETS = re.compile(
    r"\b(?:RDMA|InfiniBand|IB|RoCE|EFA|verbs|ibverbs|mlx5_\w{1,12})\b(?=[^.;]{0,120}(?:\bnot (?:accessible|available"
    r"|found|usable|detected|present|enabled)|unavailable|\bfail(?:ed|s|ure)?\b|inaccessible|no (?:devices?|ports?)"
    r"|fall(?:s|ing)?[- ]?back|fell back|revert)).{0,160}?\b(?:us(?:e|es|ed|ing)|fall(?:s|ing)?[- ]?back(?: \w{2,4})?"
    r"|fell back(?: \w{2,4})?|revert(?:s|ed|ing)? to|switch(?:es|ed|ing)? to)\s{1,3}(?:plain )?"
    r"(?:TCP|sockets?|Ethernet|IPoIB)\b",
    re.IGNORECASE,
)
_CHEAP = re.compile(
    r"PFC|ECN|DCQCN|flow.control|lossless|lossy|RoCE|RDMA|DSCP|\btos|trust|tclass|traffic|prio|IB_TC|mtu|jumbo|p_?key"
    r"|partition|gid|subnet|opensm|master SM|firewall|security group|polic|iptables|nftables|ACL|rail|VLAN|VRF|namespace"
    r"|unreach|isolated|no route|rout|reach|too long|frag|icmp_seq|packets transmitted|RTNETLINK|\bnc\b|ncat|telnet"
    r"|waiting for|iberror|ibwarn|SM (?:lid )?change|regist|LID change|_QP\(|verbs|\bIB\b|EFA|InfiniBand|mlx5_|ping:|connect:|iperf",
    re.IGNORECASE,
)
"""Cheap to search for, and in every line that says anything here."""

_MAYBE = re.compile(
    r"\b(?:if|when|whether|unless|until|in case|may|might|could|would|can|cannot|will|please|ensure|make sure|must|avoid"
    r"|check(?:ing)? (?:that|if|whether|for)|verify|causes?|leads? to|results? in|typically|usually|often|by default"
    r"|deprecated|optional|recommend\w*|usage|example|e\.g\.|simulat\w*|inject\w*|expected to|on purpose|by design"
    r"|intentional\w*|support(?:s|ed)?|after (?:enabling|fixing|setting|raising|we)|retry(?:ing)?|retries"
    r"|fixed (?:by|in|with)|changelog|release notes?)\b|\?\s*$"
    r"|^\s{0,8}(?:#|//|\*|<!--)|[{}<>;]\s*$|\bdef |\breturn\b|\bimport\b|\bNCCL (?:INFO|WARN|TRACE)\b",
    re.IGNORECASE,
)
"""Advice, questions, documentation and code; records of NCCL, which have readers."""
_SENTENCES = re.compile(r"(?<=[a-z)\d]{2})\. (?=[A-Z])|; ")
_JSON_MARKS = re.compile(r"[\"{}\[\]\\]")


def setup_fault(line: str) -> str:
    """Which fault of the network's setup a line tells of, in the words of `checks/reported.py`; "" for none."""
    if len(line) > MAX_LINE or len(line) < 8 or _CHEAP.search(line) is None:
        return ""
    text = " ".join(line.split())
    command = next((fault for fault, pattern in _COMMANDS if pattern.search(text)), "")
    if command:
        return command
    bare = " ".join(_JSON_MARKS.sub(" ", text).replace(" : ", ": ").split()) if '"' in text else text
    for sentence in _SENTENCES.split(bare):
        if denied(sentence) or _MAYBE.search(sentence):
            continue
        said = _beside(sentence) or _near(sentence) or ("sockets" if _SOCKETS.search(sentence) else "")
        if said:
            return said
    return ""


def _near(text: str) -> str:
    """The fault of a thing and a state that stand near each other."""
    for fault, part, state in _NEAR:
        for found in part.finditer(text):
            near = state.search(text, max(0, found.start() - APART), min(len(text), found.end() + APART))
            if near is not None and not parted(text, found.span(), near.span()):
                return fault
    return ""


def _beside(text: str) -> str:
    """The fault of a value that is not the one that it should be."""
    for fault, orders in _BESIDE:
        for order in orders:
            found = order.search(text)
            if found is not None:
                return fault if found["had"].lower() != found["wanted"].lower() else ""
    return ""


__all__ = ["MAX_LINE", "setup_fault"]
