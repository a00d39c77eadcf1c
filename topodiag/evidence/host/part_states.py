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

from topodiag.evidence.host.of_itself import AWAY, GONE, of_itself

MAX_LINE = 1000
"""Characters of a line that are looked at: longer ones are data."""
APART = 80
"""Characters between a part and its state: a clause, not a paragraph."""

_DEAD = r"not respond(?:ing)?|unresponsive|no response|hung|stuck|timed? ?out|dead"
_BAD = r"not healthy|fail(?:ed|ure|s|ing)|faulty|degraded|unhealthy|in (?:an )?error state|broken|defective"
_SLOW = (
    r"below (?:the )?(?:expected|minimum|nominal|threshold)|slower than expected|reduced (?:speed|width|rate)"
    r"|downgraded|not (?:running |operating )?at (?:its |the |their )?(?:max(?:imum)?|full|rated|expected|best)"
    r" (?:link |supported )?(?:speed|width|rate|data rate)(?: supported)?"
)
_OFF = (
    r"(?:is |are |was |were |went |link |to |found |still |state:? ?=?|[:=] ?)down\b|\binactive|not active"
    r"|flapp(?:ed|ing)|polling"
    r"|no carrier|unplugged"
)
_UNCORRECTABLE = r"uncorrect(?:able|ed)|double[- ]bit|fatal error"

_CLOCKS = (
    r"throttl(?:ed|es|ing)\b|(?:stuck|pegged|pinned|sits|stays|stayed|drop(?:s|ped)|f[ae]ll(?:s|en)?) (?:at|to|around"
    r"|near) (?:only |just |approximately |approx\.? |about |around |roughly |~ ?){0,2}\d{2,3} ?MHz"
    r"|over-?heat(?:s|ed|ing)\b|(?:thermal|hardware|hw)[ _]slowdown|power[ _]brake"
)
_ON = (
    r"(?<!not )(?<!no longer )(?:\b(?:is|are|was|were|still) (?:still |currently |turned |switched )?(?:on"
    r"|active|set)\b|\b(?:re-?)?enabled\b|\bturned on\b)"
)
_SMALL = r"\btoo (?:small|low|little)\b|\bnot enough\b|\binsufficient\b|\bno space\b|\bexhausted\b"
_NOISY = (
    r"\b(?:high|excessive|rising|growing|increasing|too many) (?:\w{1,12} ){0,2}(?:BER\b|bit error|errors?\b)"
    r"|\b(?:BER|error rate|errors?) (?:is |are |was |were |keep |kept )?(?:too high|above|over|exceed(?:s|ed)?"
    r"|growing|rising|increasing)\b"
    r"|\blow (?:rx |tx |optical |receive ){1,2}power\b|\b(?:rx|optical|receive) power (?:is )?(?:too )?low\b"
    r"|\bloss of signal\b|\bbad signal\b|\bsignal integrity\b"
)
_GPU = r"(?<![\w-])(?:GPU|(?:GPU |graphics )?card(?= ?#?\d)|accelerator|H100|H200|A100|B200|V100|MI\d{3}X?)s?\b(?!-\w)"
_PORT = (
    r"\b(?:NIC|HCA|mlx[45]_\w{1,12}|InfiniBand|IB|RoCE|EFA|rdmap\w{1,8}|ib\d{1,2}|transceiver|optic|cable"
    r"|(?:switch ?)?port|interface|bond\d{1,2}|swp\d{1,3}\w{0,3}|[Ee]thernet\d{1,3}(?:/\d{1,3}){0,2}|network link"
    r"|fabric link|uplink)s?\b"
)
_ADAPTER = (
    r"\b(?:NIC|HCA|mlx[45]_\d{1,2}|(?:RDMA|IB|InfiniBand|EFA|RoCE|Mellanox|ConnectX[\w-]{0,4}) (?:device|adapter|card"
    r"|interface)|(?:network |host channel )adapter|ConnectX-?\d\w{0,4}|rdmap\w{1,8})s?\b(?! (?:spec|plug-?in"
    r"|driver|name|file|list|node))"
    r"(?! \\?[\"']?(?:issm|umad|uverbs|rdma_cm)\b)"
)

_TABLE: tuple[tuple[str, str, str, str], ...] = (
    ("NVSwitch or fabric manager", "fabric", r"\b(?:nvswitch(?:es)?|fabric ?-?manager|nvidia-fabricmanager)\b",
     rf"{_BAD}|{_DEAD}|{GONE}|not running|inactive|stopped|exited|\bdown\b|not (?:initiali[sz]ed|ready)"
     r"|do(?:es)?(?: not|n't) match"),
    ("NVLink fabric", "fabric", r"\bfabric handles?\b", rf"InvalidValue|invalid|{_BAD}"),
    ("NVLink fabric", "fabric",
     r"\b(?:NVLink|GPU|MNNVL) fabric\b|\bfabric (?:state|status|health|registration|probe)\b",
     rf"{_BAD}|{_DEAD}|\bnot (?:ready|complete(?:d)?|initiali[sz]ed|registered)\b"),
    ("NVLink", "nvlink", r"\bnv_?links?\b|\bGPU ?\d{1,2}\b.{0,20}\blinks? \d{1,2}\b",
     rf"{_OFF}|\bdown\b|{_BAD}|{GONE}|{_UNCORRECTABLE}|{_SLOW}"),
    ("PCIe access control", "acs", r"\bACS\b|\bAccess Control Services\b|\bReq(?:uest)?[ _]?Redir(?:ect)?\b",
     rf"{_ON}|redirect(?:s|ed|ing)?\b|\bnot (?:all |yet |fully )?(?:\w{{1,8}} ){{0,3}}(?:closed|disabled|off)\b"),
    ("IOMMU", "iommu", r"\b(?:IOMMU|VT-d)\b",
     rf"{_ON}|translat(?:es|ed|ing)\b|\bnot (?:yet )?(?:closed|disabled|off|in pass-?through)\b"),
    ("peer memory module", "peermem", r"\bnv(?:idia)?[-_]peer_?mem\b|\bpeer[- ]memory (?:module|client)s?\b"
     r"|\bGPU ?Direct(?! ?(?:Storage|TCP))(?: RDMA)?\b|\bGDR\b",
     r"(?:not (?:loaded|detected|found|available|supported|running|active|enabled|possible|working|installed|present)\b"
     r"|\bmissing\b|unavailable|\bneither\b(?=.{0,80}\b(?:detected|found|loaded|available|present)\b)|(?:is|was)"
     r" (?:off|disabled)\b|fail(?:ed|s|ure)? to load|\b(?:could"
     r"|can) ?not be (?:loaded|found)\b|=\d/FAILURE\b)(?!.{1,30}\b(?:us(?:e|es|ing)|with|to|via|through|over)"
     r" (?:\w{1,8} ){0,2}DMA[ _-]?BUF\b"
     r"|.{1,20}\b(?<!nor )DMA[ _-]?BUF (?:is )?(?:used|available|supported|enabled|on)\b"
     r"|.{1,20}\bnot (?:required|needed)\b)"),
    ("shared memory", "shm", r"(?<![\w/])/dev/shm\b|\bshm\b|\bshared[- ]memory\b", rf"{_SMALL}|(?:is|was) full\b"),
    ("locked memory", "memlock", r"\bmem_?lock\b|\block(?:ed|able)[- ]memory\b|\bulimit -l\b",
     rf"{_SMALL}|\bnot unlimited\b|\blimited to \d"),
    ("network port", "port-flap", _PORT, r"flapp(?:ed|ing)|\bflaps?\b"),
    ("network port", "link-slow",
     rf"{_PORT}|\b(?:lid[ :=]{{1,2}}\d{{1,5}}|guid[ :=]{{1,2}}(?:0x)?[0-9a-f]{{8,16}})\b", _SLOW),
    ("network port", "link-errors", _PORT, _NOISY),
    ("network port", "port-down", _PORT, _OFF),
    ("adapter", "port-count", _ADAPTER, AWAY),
    ("network port", "", _PORT, rf"{GONE}|{_BAD}|{_UNCORRECTABLE}|unresponsive|not responding"),
    ("PCIe device", "pcie", r"\bPCI(?:e|-E)?\b", rf"{_SLOW}|\bdegraded\b"),
    ("PCIe device", "pcie-errors", r"\bPCI(?:e|-E)?\b",
     rf"{_DEAD}|{_BAD}|{_UNCORRECTABLE}|lost|fell off|surprise down|\b(?:power|slot) fault\b"),
    ("memory of a GPU", "gpu-memory", r"(?<!GB )(?<!GB-)\bHBM\d?[eE]?(?![a-z])", rf"{_UNCORRECTABLE}|{_BAD}"),
    ("GPU", "gpu-lost", r"\blspci\b", r"\brev ff\b"),
    (
        "memory of a GPU",
        "gpu-memory",
        rf"{_GPU}[^\n]{{0,40}}\bECC(?![a-z_])|\bECC(?![a-z_])[^\n]{{0,40}}{_GPU}",
        rf"{_UNCORRECTABLE}|{_BAD}",
    ),
    ("memory", "", r"\b(?:DIMM|DRAM|EDAC|ECC)(?![a-z])", rf"{_UNCORRECTABLE}|{_BAD}"),
    ("memory", "", r"\b(?:out of memory|OOM)\b", r"kill(?:ed|er|ing)"),
    ("GPU", "gpu-memory", _GPU, _UNCORRECTABLE),
    ("GPU", "gpu-shared", _GPU,
     r"\bnot idle\b|\bmemory in use (?:before|at) (?:start|launch)\b|\b(?:used|in use|held|occupied|taken) by"
     r" (?:another|other|some(?:one|body) else|a different"
     r"|foreign)\b"
     r"|\b(?:left-?over|orphan(?:ed)?|stale|zombie|foreign|rogue) (?:\w{1,8} )?process(?:es)?\b"
     r"|\bprocess(?:es)? (?:\w{1,8} )?(?:left|still (?:running|alive)) (?:from|of|by|after)\b"),
    ("GPU", "gpu-slow", r"\bhost[ -]to[ -]device\b|\bdevice[ -]to[ -]host\b|\b[hd]2[hd]\b|\b(?:p2p|copy|peer)"
                        r" bandwidth\b",
     rf"{_SLOW}|\blow(?:er)?\b|\b(?:expected|minimum|want(?:ed)?) ?[>:=]"),
    ("GPU", "gpu-clocks", rf"{_GPU}|\b(?:SM|core|GPU|graphics) clocks?\b", rf"{_SLOW}|{_CLOCKS}"),
    ("GPU", "gpu-lost", _GPU,
     rf"f[ae]ll(?:en|s)? off (?:the )?(?:PCIe? )?bus|{GONE}|{_DEAD}|{_BAD}|(?:needs?|requires?) (?:a )?reset"),
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

_DOWN_SINCE = re.compile(
    r"(?!.{0,600}\b(?:until|restored|recovered|back up|came back|if|when|would)\b).{0,300}?"
    r"\b(?:mlx[45]_\w{1,12}|ib\w{1,12}|hsn\d|en[ops]\w{2,12}|bnxt_re\w{1,8}|rdmap\w{1,8}|rocep\w{1,12})"
    r"(?: port \d{1,2})? (?:is |has been )?down (?:since|for) \d"
)

_WHOLE_LINES = (
    ("IOMMU groups", "iommu", "translated", re.compile(r"\s{0,20}\d{1,5} DMA(?:-FQ)?\s*\Z")),
    ("PCIe access control", "acs", "redirects", re.compile(r"(?!\s{0,40}ACS(?:Ctl|Cap):).{0,300}\bReqRedir\+")),
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
    (
        "network port",
        "link-errors",
        "has no link for its signal",
        re.compile(
            r"\s{1,16}status: no carrier \([^)\n]{0,60}(?i:\bFEC\b|signal|\bsync\b|\balign|\block\b|integrity|\bBER\b"
            r"|training|negotiat|calibrat)[^)\n]{0,60}\)\s*\Z"
        ),
    ),
    ("network port", "port-down", "is down", _DOWN_SINCE),
    (
        "IMEX",
        "fabric",
        "fails",
        re.compile(
            r"(?!.{0,300}\b(?:if|when|may|check)\b).{0,300}?"
            r"\b(?:IMEX (?:daemon|domain|service)\b.{0,80}\b(?:DEGRADED|failed|crashed|died)\b"
            r"|[Ff]ailed to create (?:an )?IMEX channel)"
        ),
    ),
    (
        "IMEX domain",
        "fabric",
        "not up",
        re.compile(r"\s{0,8}(?:nvidia-imex\S{0,20} )?Domain State: {1,8}(?:DEGRADED|DOWN)\s*\Z"),
    ),
)
"""Lines whose words mean one thing only: counted types of /sys/kernel/iommu_groups, a row of `df` that is full (images
that are read only always are), a row of `ps` with a process that waits in a file system's code, `ifconfig` of FreeBSD
with the adapter's reason for a link that is down, a port that is down since a time, IMEX that fails where something
asks for it (idle trays have none), the last line of `nvidia-imex-ctl -N`."""
FAULTS = frozenset(fault for _, fault, _, _ in (*_TABLE, *_WHOLE_LINES)) - {""}

_ANY_STATE = re.compile(
    r"bus|lost|gone|missing|not |fail|fault|degraded|unhealthy|error|broken|defective|below|slower|reduced"
    r"|downgraded|down|"
    r"inactive|flapp|polling|carrier|unplugged|uncorrect|double|respon|hung|stuck|timed? ?out|dead|reset"
    r"|stopped|exited|kill|"
    r"stale|read-only|space|full|unreachable|unavailable|crash|panick|evict|reboot|died|OOM|seg|core|CrashLoop|refused|"
    r"no route|match|rev ff|disappeared|surprise|throttl|MHz|nvalid|heat|slowdown|power.brake"
    r"|FAILURE|enabled|\bon\b|redirect|translat|active|neither|small|too |enough"
    r"|insufficient|expected|minimum|low|exhausted|limited|flap|high|signal|rising|growing|exceed|vanished|off the"
    r"|idle|used by|use by"
    r"|held by"
    r"|occupied|process|expired|waiting",
    re.IGNORECASE,
)
"""Cheap to search for, and in every line that names a state."""

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
_MAYBE = re.compile(
    r"\b(?:if|when|whether|unless|until|in case|may|might|could|should|would|can|will|please|ensure|make sure"
    r"|check(?:ing)? (?:that|if|whether)"
    r"|default(?:s|ing)?|using|instead(?! of \d)|fall(?:ing)? back|retry(?:ing)?|skipp?(?:ed|ing)?|ignor(?:ed|ing|e)"
    r"|is an indicator|by a factor of"
    r"|deprecated|optional|reject with|disabled|supported"
    r"|usage|example|e\.g\.|simulat\w*|inject\w*|threshold(?! exceeded)"
    r"|timeout_\w+|on_\w+|max_\w+|expected to)\b|\?\s*$"
    r"|^\s{0,8}\|\s{0,4}\d{1,4}\s{0,8}\||^\s{0,8}(?:#|//|\*|<!--|-\s)"
    r"|^\s{0,8}[\w.\"'-]{1,60}\s{0,3}[=:]\s{0,3}[\w.\"'/-]{1,60},?\s*$|[{}<>;]\s*$|\{\{ ?[$.]"
    r"|\bto (?:scrape|collect|export|publish|push|send|parse|fetch|watch|label|annotate)\b"
    r"|\battempt \d|\bdef |\breturn\b|\bimport\b|IMEX",
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

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HUMPS = re.compile(r"\b(?:Gpu|GPU|Nvlink|NvLink|NVLink|Nic|IB)(?:[A-Z][a-z]{1,12}){2,6}\b")
"""Reasons and names of alerts are written in one word: GpuFellOffBus."""
_ADVICE = re.compile(r"\((?:needs?|must|should|please|run|see|to be|threshold|limit) [^()]{1,200}\)", re.IGNORECASE)
_END_OF_CLAUSE = re.compile(r"[,;] |: (?=[a-z])| [-\u2013\u2014] |$")
"""Where a sentence goes on to what follows from it, or to what should be done."""
_SAYS = re.compile(
    r"\b(?:is|are|was|were|has|have|had|went|shows?|showed|found|boots?|runs?|lost|lists?|translates?|dropped|fell"
    r"|stuck|stayed|stays)\b"
)
"""A verb in a list: it tells what was met, and not what may be met."""
_LISTED = re.compile(r"\s{0,8}[-*•|] ?")
_REMEDY = re.compile(r"[`'\"]{0,2}\s?(?::|->|\|) ?[A-Za-z]")
"""What stands behind a fault in a list or a table of remedies."""
_ANY_ONE = re.compile(r"\b(?:an?|any|each|every|such|of|and|or)\s(?:[\w-]{1,16}\s){0,2}$", re.IGNORECASE)
_THAT = re.compile(r"\)?,? (?:that|which|whose|may|without)\b")
_OF_ERRORS = re.compile(r"\bBER\b|\berrors?\b|\btemperature\b|\blatency\b", re.IGNORECASE)
_RESTS = re.compile(r"(?<!not )(?<!from )(?<!MHz )\bidle\b(?! to \d)", re.IGNORECASE)
"""Clocks of a GPU without work are low."""
_TRIES = re.compile(r", (?:retrying|will retry|trying again)\b")
_PASSES = re.compile(
    r"(?<!not in )(?<!without )(?<!missing )(?<!no )(?<![/=])\b(?:pass-?through|identity|iommu=pt)\b|\bguest\b|\bVM\b",
    re.IGNORECASE,
)

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
        return _named(" ".join(line.split()), plain=True) if _DENIED.search(line) is None else None
    text = _ADVICE.sub("", " ".join(line.split()))
    sentences = [*_SENTENCE.split(text), *([_HUMP.sub(" ", text)] if _HUMPS.search(text) is not None else [])]
    said = (_named(_said_plainly(text), listed=_LISTED.match(text) is not None)
            for text in sentences if not _DENIED.search(text))  # fmt: skip
    return next((each for each in said if each is not None), None)


def not_said(line: str) -> bool:
    """Whether a line denies what it names, counts zero, says that it is over, asks, or speaks of what may come."""
    return _DENIED.search(line) is not None or _MAYBE.search(line) is not None


def _said_plainly(text: str) -> str:
    """A sentence without the mark of a list where it says what is or was."""
    bare = text.lstrip("-*• ")
    return bare if bare != text and _SAYS.search(bare) else text


def _named(text: str, *, plain: bool = False, listed: bool = False) -> Said | None:
    """The part and the state that a sentence names near each other, where it says that it is so."""
    for name, fault, part, state in _PAIRS:
        for found in part.finditer(text):
            near = state.search(text, max(0, found.start() - APART), min(len(text), found.end() + APART))
            near = state.match(text, near.start()) if near is not None else None  # the whole of it
            if near is None or parted(text, found.span(), near.span()) or _excused(fault, text):
                continue
            if _of_any(text, found.span()):
                continue
            if not of_itself(fault, text, found.span(), near.span()):
                continue
            if listed and _REMEDY.match(text, max(found.end(), near.end())) is not None:
                return None
            clause = _END_OF_CLAUSE.search(text, max(found.end(), near.end()))
            behind = text[near.end() : clause.start() if clause is not None else len(text)]
            if plain or _MAYBE.search(f"{text[: near.start()]} {behind}") is None:
                return Said(name, near[0].strip().lower(), fault)
            return None
    return None


def _of_any(text: str, part: tuple[int, int]) -> bool:
    """Whether a text speaks of any part of a kind: `a port that is down counts as present`."""
    return _ANY_ONE.search(text, max(0, part[0] - 30), part[0]) is not None and _THAT.match(text, part[1]) is not None


def _excused(fault: str, text: str) -> bool:
    """Whether a sentence says why the state is none that costs: an IOMMU that is on and passes through."""
    if fault in ("storage", "") and _TRIES.search(text) is not None:
        return True
    if fault == "gpu-clocks":
        return _RESTS.search(text) is not None
    if fault == "link-slow":
        return _OF_ERRORS.search(text) is not None  # of errors few are well
    return fault in ("iommu", "acs") and _PASSES.search(text) is not None


def parted(text: str, part: tuple[int, int], state: tuple[int, int]) -> bool:
    """Whether a sentence ends between a part and a state: then they are not of each other."""
    begin, end = (part[1], state[0]) if part[1] <= state[0] else (state[1], part[0])
    return begin < end and re.search(r"[.;!|] |\bbut\b", text[begin:end]) is not None


def denied(text: str) -> bool:
    """Whether a sentence denies a fault, counts zero of it, or says that it is over."""
    return _DENIED.search(text) is not None


__all__ = ["APART", "FAULTS", "Said", "denied", "not_said", "parted", "said_of"]
