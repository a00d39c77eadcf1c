"""Faults in how a network is set up, in any tool's or person's wording: what a line says by itself.

    [FAIL] ens6f0np0: PFC disabled on priority 3        lossy
    interface rdma0 MTU is 1500, expected 4220          mtu
    ping: local error: message too long, mtu=1500       mtu
    P_Key 0x8012 is not found                           pkey
    10.8.2.7: Destination Host Unreachable              route
    [PASS] no MTU mismatch                              nothing: denied

Three ways to say it: a thing and a state near each other in one clause, a value beside the one that was expected, and
lines of well known commands (`command_words`). Advice, questions, settings and what is
denied say nothing. A line proves nothing by itself: it is quoted.
"""

from __future__ import annotations

import re

from topodiag.evidence.network.command_words import command_fault, may_be_command

APART = 80
"""Characters between a part and its state: a clause, not a paragraph."""
_DENIED = re.compile(
    r"(?<![\w.:])(?:no|zero|without|0|never|any)\s{1,3}(?:\w{1,20}\s{1,3}){0,4}(?:errors?|faults?|failures?|failed|enabled|flaps?"
    r"|mismatch\w*|problems?|issues?"
    r"|lost|missing|down|degraded|uncorrect\w*|timeouts?|dead|died|crashed|unhealthy|killed)\b"
    r"|\b(?:errors?|faults?|failures?|failed|missing|lost|down|uncorrect\w*|timeouts?|timed out|dead|unhealthy"
    r"|killed|inactive|degraded|stale|host|reset)\b"
    r"[^\w\n]{0,3}(?:count|total|s)?\s{0,3}[:=]\s{0,6}(?:0(?![.\dx])|none|no|false|n/a|ok|\[\]|null|-\s*$)"
    r"|\b(?:errors?|timeouts?|lost|missing|down|failed|uncorrect\w*|pending|throttled)"
    r"\s{1,40}0(?=\s*$|[,;)])"
    r"|\b(?:not|n't|isn't|aren't|never|neither)\s{1,3}(?:\w{1,12}\s{1,3}){0,1}(?:down|lost|missing|failed"
    r"|failing|degraded|dead|hung|stuck"
    r"|unhealthy|inactive|killed|broken|unreachable|flapping|required?)\b"
    r"|\b(?:recovered|restored|cleared|(?:fixed|resolved|repaired)(?! (?:it|this|the)\b)|back (?:up|online)|came"
    r" back|reconnected"
    r"|is up again|admin\w{0,12}[ _-]down|success(?:ful(?:ly)?)?"
    r"|passed|succeeded|(?<!not )(?<!not yet )healthy)\b"
    r"|\b(?:PASS|OK)\b|[✔✓✅]|\}\s{1,4}0(?:\.0)?\s*$|\?\s*$|(?:^|\s)0%|\b0/\d",
    re.IGNORECASE,
)
MAX_LINE = 1000

_OFF = (
    r"disabled|(?:not|never) (?:enabled|configured|set|active|negotiated|operational|present|turned on)"
    r"|(?:is |are |=|: ?)off\b|missing"
)
_UNLIKE = r"\bmis-?match\w*|do(?:es)?(?: not|n't) match|inconsistent|\bdiffer(?:s|ent|ence)?\b|\bwrong\b|incorrect"
_LOSSY = r"\blossy\b|not (?:a |in (?:a |the )?)?lossless|without (?:flow control|PFC)|best[- ]effort"
_BLOCKS = (
    r"\bclos(?:ed|es)\b|\bblock(?:s|ed|ing)\b|\bden(?:y|ies|ied|ying)\b|\breject(?:s|ed|ing)?\b"
    r"|not (?:allowed|permitted|open)"
    r"|\bdrop(?:s|ped|ping)\b"
)

_TABLE: tuple[tuple[str, str, str], ...] = (
    ("lossy", r"\b(?<!prio-)(?:PFC(?:WD)?(?![a-z])|priority[- ]flow[- ]control|DCQCN\b|ECN\b|(?:lossless|no-?drop)"
              r" (?:class|priority|queue|buffer|traffic|pool)s?\b)",
     rf"{_OFF}|{_UNLIKE}|\benabled(?: on| priorities)? ?[:=] ?(?:none|0x0\b|no\b|false)|\bstorm\b"
     r"|deadlock|\bstuck\b|\bfail(?:ed|s)?\b|unsupported"),
    ("lossy", r"\b(?:(?:RoCE|RDMA|NCCL)(?:v2)? (?:traffic|packets?|flows?)|all RDMA|trust (?:mode|state)|DSCP|ToS"
              r"|traffic[- _]class|tclass|NCCL_IB_TC|prio(?:rity)? ?[0-7])\b",
     rf"{_UNLIKE}|{_LOSSY}"),
    ("lossy", r"\b(?:RoCE|RDMA|NCCL)(?:v2)? (?:traffic|packets?|flows?)\b",
     r"\bprio(?:rity)? ?0\b|(?:tail[- ])?dropp?(?:ed|s)\b|default (?:queue|class|priority)|untagged"
     r"|not (?:tagged|marked)"),
    ("mtu", r"(?<![\w-])(?:MTUs?|path MTU|jumbo frames?)\b(?!_)",
     rf"{_UNLIKE}|too (?:small|large|low|high)|smaller than|lower than|exceeds|not (?:enabled|allowed|passed)"),
    ("pkey", r"\bp_?keys?\b|\bpartition key\b",
     rf"violation\w*|not (?:found|present|configured|a member|assigned|in the)|\bbad\b|invalid|missing|{_UNLIKE}"),
    ("gid", r"\bGID (?:index(?:es)?|table|entry|entries)\b|\b(?:s?gid_?index|NCCL_IB_GID_INDEX)\b"
            r"|\b(?:RoCE\w{0,3}|RDMA|port|mlx5_\w{1,12}|bnxt_re\w{1,8})\b.{0,40}?\bGIDs?\b",
     r"\bmoved\b|shifted|\bfail(?:ed|s)\b|not (?:found|valid|present|routable|populated)|\bempty\b|invalid"
     r"|\bno (?:RoCE ?v2|routable|usable|valid|IPv4)\b|(?:only|both|all) link-local|link-local (?:only|alone)"
     rf"|out of range|does not exist|{_UNLIKE}"),
    ("subnet", r"\bsubnet manager\b|\bmaster SM\b",
     r"not (?:running|found|responding|reachable|active|present)|unreachable|\bdied\b|\bis down\b|crashed|no response"
     r"|timed? ?out|fail(?:ed|over)\b|hand-?over|\blost\b|stopped|\bnone\b"),
    ("subnet", r"\bopensm\b", r"\bdied\b|crashed|no response|not responding|timed? ?out|failed\b|killed|segfault"),
    ("route", r"\b(?:firewall|security group|network ?polic(?:y|ies)|iptables|nftables|firewalld|network ACL)s?\b"
              r"|\b(?:EFA|RDMA|NCCL|TCP)? ?traffic (?:between|from|to)\b",
     rf"{_BLOCKS}|\bmissing\b|\blacks?\b|\bno (?:rule|inbound|ingress|egress|self)"),
    ("ecmp", r"\bECMP\b|\b(?:uplinks?|adaptive routing|flows)\b",
     r"collision\w*|\bcollid(?:e|es|ed|ing)\b|polari[sz]\w+|im-?balanced?|unbalanced|(?:same|one|single) uplink"
     r"|hash to (?:the same|\d of \d)|oversubscri\w+|adaptive routing (?:is )?(?:off|disabled|not enabled)"),
    ("switch", r"\b(?:spine|leaf|ToR|line ?card|fabric switch|IB switch|core switch)(?:[- ]?\d{1,4}|s)?\b",
     r"\brebooted\b|\bre-?started\b|went down|(?:is|was|are) down\b|\bdied\b|\bfailed\b|crashed|[1-9]\d* CRC\b|flapp\w+"
     r"|overheat\w*|drops? packets|dropping|\bdiscards\b|unreachable|bad (?:port|link|line ?card)"),
    ("route", r"\b(?:rail|subnet|VLAN|VRF|network namespace|peer|port \d{2,5})s?\b",
     r"unreachable|\bisolated\b|no route|not (?:routed|routable|reachable)|(?:cannot|can't) reach(?! the memory)"),
    ("route", r"\b(?:node|host)s?\b", r"no route|(?:cannot|can't) reach"),
)  # fmt: skip
"""In the order in which they are asked: the fault in the words of `checks/reported.py`, the thing, its state."""

_NEAR = tuple(
    (fault, re.compile(part, re.IGNORECASE), re.compile(state, re.IGNORECASE)) for fault, part, state in _TABLE
)

_VALUES = (
    ("mtu", r"(?<![\w-])(?:\w{0,12}_)?mtu\b"),
    ("lossy", r"(?<![\w-])(?:\w{1,16}_)?(?:tos|tclass|traffic[- _]class|dscp|trust(?:[- _](?:mode|state))?"
              r"|pfc(?:[- _]\w{1,12})?|(?:roce[- _])?prio(?:rity)?)\b"),
    ("pkey", r"\b(?:p_?key|partition key)\b"),
    ("gid", r"\bgid[- _]?index\b"),
)  # fmt: skip
_VALUE = r"[\"'`(]?(?P<{}>0x[0-9a-f]{{1,8}}|\d{{1,6}}|dscp|pcp|enabled|disabled|on|off)\b(?![.:/-]\d)"
_WANT = (
    r"(?:expected|expects?|wanted|want|required|requires|should be|must be|configured|desired|reference|baseline"
    r"|(?:all )?(?:the )?others (?:have|are|use|run)|the rest (?:has|have|is|uses?)|elsewhere)"
)
_GOT = r"(?:actual(?:ly)?|got|found|has|have|is|was|observed|current(?:ly)?|but|measured|value|seen)"
_GAP = r"(?:[ \"':=(,-]{1,3}(?!\d|0x)[a-z_]\w{0,15}){0,4}[ \"':=(,-]{1,4}"
_BESIDE = tuple(
    (
        fault,
        tuple(
            re.compile(pattern, re.IGNORECASE)
            for pattern in (
                rf"{name}{_GAP}{_VALUE.format('had')}.{{0,24}}?(?:\b(?:{_WANT}|instead of|vs\.?|not)|!=){_GAP}"
                rf"{_VALUE.format('wanted')}",
                rf"{name}\b.{{0,60}}?{_WANT}{_GAP}{_VALUE.format('wanted')}.{{0,24}}?\b{_GOT}{_GAP}{_VALUE.format('had')}",
                rf"\b{_WANT}{_GAP}{name}{_GAP}{_VALUE.format('wanted')}.{{0,24}}?\b{_GOT}{_GAP}{_VALUE.format('had')}",
                rf"{name}{_GAP}{_VALUE.format('had')}[^.;]{{0,60}}?\b(?:but|while|whereas)\b[^.;]{{0,60}}?{name}{_GAP}"
                rf"{_VALUE.format('wanted')}",
                rf"{name}\b.{{0,60}}?\b{_GOT}{_GAP}{_VALUE.format('had')}.{{0,24}}?{_WANT}{_GAP}{_VALUE.format('wanted')}",
            )
        ),
    )
    for fault, name in _VALUES
)
"""A value beside the one that should be there, in either order."""

_PATH_MTU = re.compile(
    r"(?<![\w-])MTUs?\b\D{0,40}(?P<had>\d{4,5})\b[^.;\d]{0,50}?\b(?:while|whereas|but|vs\.?|hosts?|switch(?:es)?|others?"
    r"|peers?|nodes?|servers?)\s[^.;\d]{0,50}(?P<wanted>\d{4,5})\b(?<!\d{6})",
    re.IGNORECASE,
)
_RDMA = r"(?:RDMA|InfiniBand|IB|RoCE|EFA|verbs|ibverbs|mlx5_\w{1,12})\b"
_TCP = r"(?:the )?(?:plain )?(?:TCP|sockets?|NET/Socket|Ethernet|IPoIB)\b"
_FAILS = (
    r"(?:not (?:accessible|available|found|usable|detected|present|enabled|find)|unavailable|fail(?:ed|s|ure)?"
    r"|inaccessible|no (?:devices?|ports?))\b"
)
_SOCKETS = re.compile(
    rf"\b{_RDMA}.{{0,160}}?\b(?:fall(?:s|ing)?[- ]?back|fell back|fallback|revert(?:s|ed|ing)?|switch(?:es|ed|ing)?)"
    rf" (?:to|on) {_TCP}|\b{_RDMA}.{{0,100}}?\b{_FAILS}.{{0,100}}?\bus(?:e|es|ed|ing) {_TCP}",
    re.IGNORECASE,
)
WORDS = (
    "pfc", "ecn", "flow control", "flow-control", "lossless", "lossy", "no-drop", "nodrop", "no drop", "roce", "rdma",
    "nccl", "dscp", "tos", "trust", "traffic", "tclass", "_tc", "prio", "mtu", "jumbo", "pkey", "p_key",
    "partition key", "gid", "opensm", "subnet manager", "master sm", "firewall", "security group", "policy", "policies",
    "tables", "acl",
    "rail", "subnet", "vlan", "vrf", "namespace", "unreach", "isolated", "no route", "routed", "routable", " reach",
    "ecmp", "hash", "uplink", "adaptive", "flow", "spine", "leaf", "tor", "line card", "linecard", "switch", "verbs",
    "infiniband", "efa", "mlx5_", "ib ",
)  # fmt: skip
"""Cheap to look for in small letters: a line without any of these says nothing here but as a command's."""

_MAYBE = re.compile(
    r"\b(?:if|when|whether|unless|until|in case|(?-i:may)|might|could(?! not)|would|can(?! ?not)|will|please|ensure"
    r"|make sure|must|avoid|check(?:ing)? (?:that|if|whether|for)|verify|causes?|leads? to|results? in"
    r"|using (?:GID )?index \d{1,3} instead|typically|usually|often"
    r"|by default"
    r"|deprecated|optional|recommend\w*|usage|example|e\.g\.|simulat\w*|inject\w*|expected to|on purpose"
    r"|by design"
    r"|intentional\w*|support(?:s|ed)?|after (?:enabling|fixing|setting|raising|we)|retry(?:ing)?|retries"
    r"|(?:modify|ibv_modify)[ _]?qp|reject[- ]with|fixed (?:by|in|with)|changelog|release notes?)\b|\?\s*$"
    r"|^\s{0,8}(?:#|//|\*|<!--)|[{}<>;]\s*$|\bdef |\breturn\b|\bimport\b|\bNCCL (?:INFO|WARN|TRACE)\b",
    re.IGNORECASE,
)
"""Advice, questions, documentation and code; records of NCCL, which have readers."""
_NONE = re.compile(
    r"\b(?:mis-?match\w*|violations?|collisions?|drop(?:s|ped)|discards?|stor?ms?|missing|unreachable|blocked)\b"
    r"(?: count| total)?\s{0,3}[:=]\s{0,3}(?:0(?![.\dx])|none\b|no\b|false\b|n/a\b|\[\])"
    r"|\b(?:no|zero|0|without|never)\s{1,3}(?:\w{1,20}\s{1,3}){0,3}(?:violations?|collisions?|drop(?:s|ped)|discards?"
    r"|storms?|deadlocks?|differences?|unreachable|blocked|CRC|flaps?)\b|\bnot (?:lossy|blocked|dropped|unreachable)\b",
    re.IGNORECASE,
)
"""Zero of it, or none."""
_OF_FABRIC = re.compile(
    r"0x[0-9a-f]{4}\b|\b(?:mlx[45]|ib\d|IB\b|InfiniBand|partition|QP\b|LID\b|port\b|HCA\b|SM\b|subnet)", re.IGNORECASE
)
"""Keys have this name in databases and in cryptography, too."""
_SENTENCES = re.compile(r"(?<=[a-z)\d]{2})\. (?=[A-Z])|; ")
_WILL = re.compile(r"\bwill (?=(?:use|fall|be|run)\b)", re.IGNORECASE)
_JSON_MARKS = re.compile(r"[\"{}\[\]\\]")


def setup_fault(line: str) -> str:
    """Which fault of the network's setup a line tells of, in the words of `checks/reported.py`; "" for none."""
    if len(line) > MAX_LINE or len(line) < 8:
        return ""
    speaks = any(map(line.lower().__contains__, WORDS))
    if not speaks and not may_be_command(line):
        return ""
    text = " ".join(line.split())
    command = command_fault(text)
    if command or not speaks:
        return command
    bare = " ".join(_JSON_MARKS.sub(" ", text).replace(" : ", ": ").split()) if '"' in text else text
    if _SOCKETS.search(bare) and not _is_denied(bare) and not _MAYBE.search(_WILL.sub("", bare)):
        return "sockets"
    for sentence in _SENTENCES.split(bare):
        if _is_denied(sentence) or _MAYBE.search(sentence):
            continue
        said = _beside(sentence) or _near(sentence)
        if said:
            return said
    return ""


def _is_denied(text: str) -> bool:
    return _DENIED.search(text) is not None or _NONE.search(text) is not None


def _near(text: str) -> str:
    """The fault of a thing and a state that stand near each other."""
    for fault, part, state in _NEAR:
        if fault == "pkey" and _OF_FABRIC.search(text) is None:
            continue
        for found in part.finditer(text):
            near = state.search(text, max(0, found.start() - APART), min(len(text), found.end() + APART))
            if near is not None and not _parted(text, found.span(), near.span()):
                return fault
    return ""


def _beside(text: str) -> str:
    """The fault of a value that is not the one that it should be."""
    for fault, orders in _BESIDE:
        for order in orders:
            found = order.search(text)
            if found is not None:
                return fault if found["had"].lower() != found["wanted"].lower() else ""
    path = _PATH_MTU.search(text)
    return "mtu" if path is not None and path["had"] != path["wanted"] else ""


def _parted(text: str, part: tuple[int, int], state: tuple[int, int]) -> bool:
    """Whether a sentence ends between a part and a state: then they are not of each other."""
    begin, end = (part[1], state[0]) if part[1] <= state[0] else (state[1], part[0])
    return begin < end and re.search(r"[.;!|] |\bbut\b", text[begin:end]) is not None


__all__ = ["MAX_LINE", "setup_fault"]
