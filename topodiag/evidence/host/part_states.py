"""Parts of a cluster, and states of them that are faults, in any tool's wording: what a line says by itself.

    node-agent: nvlink 5 on gpu 2 is down             NVLink, down
    storage: mount /scratch timed out after 30s       storage, timed out
    0 errors on mlx5_3; link is not down              nothing: zero, and denied

The reader of last resort asks this of texts that no other reader takes. A line counts where a part and a state of that
part stand near each other in one clause, and nothing in the line denies it, counts zero, says that it is over, asks, or
speaks of what may come. It proves nothing: it is quoted as what the line says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LINE = 1000
"""Characters of a line that are looked at: longer ones are data."""
APART = 60
"""Characters between a part and its state: a clause, not a paragraph."""

_GONE = (
    r"lost|gone|missing|not (?:found|detected|present|seen|visible|recogni[sz]ed)|disappeared|unreachable|unavailable"
)
_DEAD = r"not respond(?:ing)?|unresponsive|no response|hung|stuck|timed? ?out|dead"
_BAD = r"fail(?:ed|ure|s|ing)|faulty|degraded|unhealthy|in (?:an )?error state|broken|defective"
_SLOW = (
    r"below (?:the )?(?:expected|minimum|nominal|threshold)|slower than expected|reduced (?:speed|width|rate)"
    r"|downgraded"
)
_OFF = (
    r"(?:is |are |went |link |state:? ?=?|[:=] ?)down\b|\binactive|not active|flapp(?:ed|ing)|polling"
    r"|no carrier|unplugged"
)
_UNCORRECTABLE = r"uncorrect(?:able|ed)|double[- ]bit|fatal error"

_GPU = r"(?<![\w-])(?:GPU|accelerator|H100|H200|A100|B200|V100|MI\d{3}X?)s?\b(?!-\w)"
_PORT = (
    r"\b(?:NIC|HCA|mlx[45]_\w{1,12}|InfiniBand|IB|RoCE|EFA|rdmap\w{1,8}|ib\d{1,2}|transceiver|optic|cable"
    r"|(?:switch ?)?port|interface|bond\d{1,2}|network link|fabric link|uplink)s?\b"
)

_TABLE: tuple[tuple[str, str, str, str], ...] = (
    ("NVSwitch or fabric manager", "fabric", r"\b(?:nvswitch(?:es)?|fabric ?-?manager|nvidia-fabricmanager)\b",
     rf"{_BAD}|{_DEAD}|{_GONE}|not running|inactive|stopped|exited|\bdown\b|not (?:initiali[sz]ed|ready)"
     r"|do(?:es)?(?: not|n't) match"),
    ("NVLink", "nvlink", r"\bnv_?links?\b", rf"{_OFF}|\bdown\b|{_BAD}|{_GONE}|{_UNCORRECTABLE}|{_SLOW}"),
    ("network port", "port-flap", _PORT, r"flapp(?:ed|ing)"),
    ("network port", "link-slow", _PORT, _SLOW),
    ("network port", "port-down", _PORT, _OFF),
    ("network port", "", _PORT, rf"{_GONE}|{_BAD}|{_UNCORRECTABLE}|unresponsive|not responding"),
    ("PCIe device", "pcie", r"\bPCI(?:e|-E)?\b", _SLOW),
    ("PCIe device", "pcie-errors", r"\bPCI(?:e|-E)?\b",
     rf"{_DEAD}|{_BAD}|{_UNCORRECTABLE}|lost|fell off|surprise down"),
    ("memory of a GPU", "gpu-memory", r"\bHBM\d?[eE]?(?![a-z])", rf"{_UNCORRECTABLE}|{_BAD}"),
    ("memory", "", r"\b(?:DIMM|DRAM|EDAC|ECC)(?![a-z])", rf"{_UNCORRECTABLE}|{_BAD}"),
    ("memory", "", r"\b(?:out of memory|OOM)\b", r"kill(?:ed|er|ing)"),
    ("GPU", "gpu-memory", _GPU, _UNCORRECTABLE),
    ("GPU", "gpu-clocks", _GPU, rf"{_SLOW}|throttl(?:ed|ing)"),
    ("GPU", "gpu-lost", _GPU,
     rf"f[ae]ll(?:en|s)? off (?:the )?(?:PCIe? )?bus|{_GONE}|{_DEAD}|{_BAD}|(?:needs?|requires?) (?:a )?reset"),
    ("storage", "storage", r"(?<![\w.])/(?:scratch|mnt|data|lustre|gpfs|home|fsx|nfs|shared|work)\b|\b(?:nfs|lustre"
                r"|gpfs|beegfs|weka|ceph"
     r"|file ?system|storage|mount(?: point)?|disk|nvme\w{0,6}|volume)s?\b",
     rf"{_DEAD}|not mounted|stale|read-only|no space left|\bis full|100% full|{_BAD}|unreachable|I/O error"
     rf"|lease (?:period )?(?:has )?expired"
     r"|waiting [1-9]\d{2,5}(?:\.\d{1,4})? ?s"),
    ("node", "", r"\b(?:node|host|machine|server|instance)s?\b(?: [\w.-]{2,64})?",
     r"unreachable|not ?ready|not respond(?:ing)?|unresponsive|(?:is|went|are) down\b|crashed|panicked"
     r"|unhealthy|lost contact"
     r"|connection refused|no route to host|evicted|rebooted unexpectedly"),
    ("process", "", r"\b(?:rank|worker|process|task|pod|container|job|daemon)s?\b(?:[ #:=]{0,2}\d{1,7})?",
     r"\bkilled\b|crashed|died|evicted|OOMKilled|segmentation fault|segfault|core dumped|unresponsive|(?:is|are"
     r"|was|were) hung"
     r"|stopped sending heartbeats|CrashLoopBackOff|unhealthy"),
    ("connection", "", r"\b(?:connection|connect|connecting|socket)\b",
     r"refused|timed out|no route to host|unreachable"),
    ("version", "", r"\b(?:driver|library|firmware|CUDA|NCCL|version|MTU|speed|width)s?\b", r"\bmismatch(?:ed)?\b"
                        r"|do(?:es)? not match"),
)  # fmt: skip
"""In the order in which they are asked: a line names a GPU or a node as the place of a part, too. What the part is
called, the fault in the words of `checks/reported.py` ("" where the part and the state together do not say which), the
part, its state."""

_WHOLE_LINES = (
    ("IOMMU groups", "iommu", "translated", re.compile(r"\s{0,20}\d{1,5} DMA(?:-FQ)?\s*\Z")),
    (
        "file system",
        "storage",
        "full",
        re.compile(
            r"\s{0,8}(?!/dev/loop|squashfs|iso9660|cvmfs|overlay:"
            r"|udev)\S{1,120}(?:\s{1,20}[\d.]{1,12}[KMGTP]?i?B?){3}\s{1,8}100%\s{1,8}"
            r"/(?!snap\b|cvmfs\b|media\b|boot\b|mnt/iso|proc\b|sys\b)\S{0,120}\s*\Z"
        ),
    ),
    (
        "process",
        "storage",
        "waits in the kernel",
        re.compile(
            r"\s{0,12}(?:\S{1,32}\s{1,16})?\d{1,9}\s{1,12}(?:\d{1,9}\s{1,12})?D[sl<+N]{0,4}\s{1,16}"
            r"(?:\S{1,40}\s{1,16})?"
            r"(?:nfs|rpc_|lustre|ll_|ptlrpc|cl_|osc_|weka|gpfs|cxi|ceph|fuse_|request_wait|beegfs|fhgfs|io_schedule"
            r"|folio_wait"
            r"|wait_on_page|xfs_|ext4_|jbd2_|mmfs)\w{0,60}\s"
        ),
    ),
    (
        "process",
        "storage",
        "waits in the kernel",
        re.compile(
            r"\s{0,8}\[<[0-9a-f]{1,16}>\] (?:rpc_wait|nfs\d?_|lustre|ptlrpc|ll_|cl_io|cl_sync|osc_|ceph_|fuse_"
            r"|request_wait|weka|beegfs|mmfs)\w{0,60}\+0x"
        ),
    ),
    ("IMEX domain", "fabric", "not up", re.compile(r"\s{0,8}Domain State: {1,8}(?:DEGRADED|DOWN)\s*\Z")),
)
"""Lines whose words mean one thing only: counted types of /sys/kernel/iommu_groups, a row of `df` that is full (images
that are read only always are), a row of `ps` with a process that waits in a file system's code, the last
line of `nvidia-imex-ctl -N`."""
FAULTS = frozenset(fault for _, fault, _, _ in (*_TABLE, *_WHOLE_LINES)) - {""}

_ANY_STATE = re.compile(
    r"bus|lost|gone|missing|not |fail|fault|degraded|unhealthy|error|broken|defective|below|slower|reduced"
    r"|downgraded|down|"
    r"inactive|flapp|polling|carrier|unplugged|uncorrect|double|respon|hung|stuck|timed? ?out|dead|reset"
    r"|stopped|exited|kill|"
    r"stale|read-only|space|full|unreachable|unavailable|crash|panick|evict|reboot|died|OOM|seg|core|CrashLoop|refused|"
    r"no route|match|disappeared|surprise|expired|waiting",
    re.IGNORECASE,
)
"""Cheap to search for, and in every line that names a state."""

_DENIED = re.compile(
    r"(?<![\w.:])(?:no|zero|without|0|never|any)\s{1,3}(?:\w{1,20}\s{1,3}){0,3}(?:errors?|faults?|failures?|failed"
    r"|mismatch\w*|problems?|issues?"
    r"|lost|missing|down|degraded|uncorrect\w*|timeouts?|dead|died|crashed|unhealthy|killed)\b"
    r"|\b(?:errors?|faults?|failures?|failed|missing|lost|down|uncorrect\w*|timeouts?|timed out|dead|unhealthy"
    r"|killed|inactive|degraded|stale|host|reset)\b"
    r"[^\w\n]{0,3}(?:count|total|s)?\s{0,3}[:=]\s{0,6}(?:0(?![.\dx])|none|no|false|n/a|ok|\[\]|null|-\s*$)"
    r"|\b(?:errors?|timeouts?|lost|missing|down|failed|uncorrect\w*)\s{1,40}0\s*$"
    r"|\b(?:not|n't|isn't|aren't|never|neither)\s{1,3}(?:\w{1,12}\s{1,3}){0,1}(?:down|lost|missing|failed"
    r"|failing|degraded|dead|hung|stuck"
    r"|unhealthy|inactive|killed|broken|unreachable|flapping|required?)\b"
    r"|\b(?:recovered|restored|resolved|cleared|fixed|repaired|back (?:up|online)|came back|reconnected"
    r"|is up again|success(?:ful(?:ly)?)?"
    r"|passed|succeeded|healthy)\b|\b(?:PASS|OK)\b|(?:^|\s)0%|\b0/\d",
    re.IGNORECASE,
)
_MAYBE = re.compile(
    r"\b(?:if|when|whether|unless|until|in case|may|might|could|should|would|can|will|please|ensure|make sure"
    r"|check(?:ing)? (?:that|if|whether)"
    r"|default(?:s|ing)?|using|instead|fall(?:ing)? back|retry(?:ing)?|skipp?(?:ed|ing)?|ignor(?:ed|ing|e)"
    r"|deprecated|optional|reject with|disabled|supported"
    r"|usage|example|e\.g\.|simulat\w*|inject\w*|threshold|timeout_\w+|on_\w+|max_\w+|expected to)\b|\?\s*$"
    r"|^\s{0,8}(?:#|//|\*|<!--|-\s)"
    r"|^\s{0,8}[\w.\"'-]{1,60}\s{0,3}[=:]\s{0,3}[\w.\"'/-]{1,60},?\s*$|[{}<>;]\s*$|\bdef |\breturn\b|\bimport\b|IMEX",
    re.IGNORECASE,
)
"""What may come, what is asked, what somebody set: settings, code and advice name the same words. IMEX is not ready
wherever no job needs it."""
_PLAIN_FIELD = re.compile(
    r"^\s{0,12}[\w .\"'/-]{1,60}[=:]\s{0,6}(?:down|inactive|failed|lost|degraded|error|unhealthy|dead)\s*$",
    re.IGNORECASE,
)
"""One field and its word: a state after all."""

_SENTENCE = re.compile(r"(?<=[a-z)\d]{2})\. (?=[A-Z])")
"""Advice often follows in a sentence of its own."""

_PAIRS = tuple(
    (name, fault, re.compile(rf"(?:{part})(?=[^\n]{{0,{APART}}})", re.IGNORECASE), re.compile(state, re.IGNORECASE))
    for name, fault, part, state in _TABLE
)


@dataclass(frozen=True, slots=True)
class Said:
    """What a line says: which kind of part, its state in the line's own word, and which fault that is, "" for none that
    a check judges."""

    part: str
    state: str
    fault: str = ""


def said_of(line: str) -> Said | None:
    """The part that a line says is at fault, and how; None where it says nothing of the kind."""
    for part, fault, state, pattern in _WHOLE_LINES:
        if pattern.match(line):
            return Said(part, state, fault)
    if len(line) > MAX_LINE or len(line) < 8 or _ANY_STATE.search(line) is None:
        return None
    if _PLAIN_FIELD.match(line) is not None:
        return _named(" ".join(line.split())) if _DENIED.search(line) is None else None
    sentences = _SENTENCE.split(" ".join(line.split()))
    said = (_named(text) for text in sentences if not _DENIED.search(text) and not _MAYBE.search(text))
    return next((each for each in said if each is not None), None)


def _named(text: str) -> Said | None:
    """The part and the state that a sentence names near each other."""
    for name, fault, part, state in _PAIRS:
        for found in part.finditer(text):
            near = state.search(text, max(0, found.start() - APART), min(len(text), found.end() + APART))
            if near is not None and not _between(text, found.span(), near.span()):
                return Said(name, near[0].strip().lower(), fault)
    return None


def _between(text: str, part: tuple[int, int], state: tuple[int, int]) -> bool:
    """Whether a sentence ends between a part and a state: then they are not of each other."""
    begin, end = (part[1], state[0]) if part[1] <= state[0] else (state[1], part[0])
    return begin < end and re.search(r"[.;!|] |\bbut\b", text[begin:end]) is not None


__all__ = ["FAULTS", "Said", "said_of"]
