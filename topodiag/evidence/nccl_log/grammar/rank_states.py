"""Ranks of a job, and states of them, in any tool's wording: who is missing or slow, whose call or setting differs.

    rank 118 has not entered allreduce 20412 for 600s      a rank that the others wait for
    Culprit rank 6; Error type: SIZE_OR_SYNTAX_MISMATCH    ranks that call different operations
    Rank r2 input wait was 199.7ms vs median 10.4ms        a rank that comes late
    NCCL_ALGO n1=Ring n2=Tree MISMATCH                     a setting that differs

A line counts where a rank and a state of ranks stand in one clause, and nothing in it denies, asks, or speaks of what
may come. Lines that a launcher or a library prints in words of its own are read before (`ends`, `job_sentences`).

SOURCE: torch distributed/flight_recorder/components (fr_trace), nn/parallel (DDP's check of shapes),
fsdp/_exec_order_utils.py, algorithms/join.py; gloo transport/tcp/pair.cc; Horovod common/controller.cc; DeepSpeed
runtime/zero/utils.py; Open MPI and MPICH (MPI_ERR_*); TensorFlow collective_param_resolver_local.cc; JAX
multihost_utils.py.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar import headcounts
from topodiag.evidence.nccl_log.grammar.numbers import any_of, compiled

STALLED, LATE, MISMATCH, DIFFERS = "stalled", "late", "mismatch", "differs"
VERSION, SETTING, GPU = "version", "setting", "gpu"
"""What differs, of a line of the kind DIFFERS."""
AHEAD = 1.3
"""Times that a rank must take what the others take before a comparison of two numbers says anything."""

_ONE = r"\d{{1,7}}(?!\.?\d)"
_LIST = rf"[\[{{{{(]{{{{0,2}}}}(?P<{{0}}>{_ONE}(?:(?:[ ,]{{{{1,2}}}}(?:and )?|-){_ONE}){{{{0,200}}}}+)"
_NOUN = r"(?:(?:global|world|worker|training|local|mpi) ?)?(?:ranks?|workers?|trainers?|tasks?|proc(?:ess(?:es)?)?)"
_WHO = rf"(?<![\[\w.])(?i:{_NOUN})(?: ids?)?[ =:#]{{{{0,3}}}}r?{_LIST}"
_TIME = r"(?:after|for|in|since) (?:more than |over |about )?[\d.,:]{1,12} ?(?:s|sec\w{0,4}|m|min\w{0,4}|h|hours?|ms)\b"
_NOT = r"(?:(?:has|have|did|was|were|had|does|do|is|are)(?: not|n't) (?:yet )?|never |failed to |yet to |still not )"
_BEHIND = (
    rf"(?:{_NOT}(?:been |be )?(?:enter|reach|arriv|respond|progress|advanc|check(?:ed)?[ -]in|start(?:ed)? (?:the )?"
    r"(?:collective|all|reduce|barrier)|called? (?:the )?(?:collective|all|reduce|barrier)|join)"
    rf"|{_NOT}(?:finish|complet|return|heard).{{0,80}}?{_TIME}"
    r"|(?:is|are|seems?|appears?|looks?|got|was|were|still)(?: to be)? (?:\w{1,12} )?(?:stuck|hung|hanging|stalled"
    r"|behind|lagging|unresponsive|deadlocked|frozen|the culprit|missing)\b"
    rf"|(?:no|last) (?:heart ?beat|progress|report|response|update)\b.{{0,60}}?"
    rf"(?:{_TIME}|\b\d{{1,9}} ?s(?:ec\w{{0,4}})? ago)"
    rf"|still (?:in|at|inside|waiting|executing|loading|compiling)\b.{{0,80}}?{_TIME}"
    r"|(?:is|are|was|were) \d{1,9} (?:\w{1,20} )?(?:behind|late)\b)"
)
_RANK_BEHIND = compiled(rf"(?:{_WHO.format('ranks')})\W?.{{0,70}}?\b{_BEHIND}")
_BEHIND_RANK = compiled(
    rf"\b(?i:missing|absent|stuck|hung|hanging|stalled|unresponsive|lagging|culprit|offending) (?i:{_NOUN})"
    rf"(?: ids?| list)?\b ?(?:is|are|[:=])? ?{_LIST.format('ranks')}"
)
_UNHEARD = compiled(
    rf"\b(?i:no|not|lost|missing|missed|last)\b.{{0,30}}?\bheart ?beats?\b.{{0,60}}?\b(?:from|of"
    rf"|for) (?:{_WHO.format('ranks')})"
)
_NOT_ALL = compiled(
    rf"\b(?i:not all|some|only some) (?i:{_NOUN})\b.{{0,20}}?"
    r"\b(?:enter|reach|arriv|join|called|check(?:ed)? in|respond)"
)
_OF_ALL = compiled(
    rf"\b(?P<came>\d{{1,6}}) ?(?:/|of|out of) ?(?:the |all )?(?P<all>\d{{1,6}}) (?i:{_NOUN})\b.{{0,30}}?"
    r"\b(?:have |had |are |were )?(?:entered|reached|arrived|joined|checked in|responded|reported)\b"
)
_ONLY_SOME = compiled(
    r"\b[Ee]xpected (?P<all>\d{1,6}) \w{2,20} to (?:join|enter|reach|arrive)\b.{0,60}?\bonly (?P<came>\d{1,6})\b"
)
_GAVE_UP = compiled(r"\bTermination timeout for\b|\b[Aa]borting\b|\bExiting\b")
"""XLA's rendezvous.cc: its warnings before that end well more often than not."""
_MEETING = compiled(
    r"\b(?i:rendezvous|init\w*|store|regist\w*|communicator|coordinator|process group|launch\w*|start-?up|handshake"
    r"|WaitForAllTasks)\b"
)
"""Where a rank does not come there, no collective is the place."""

_SLOWER = compiled(
    r"\b(?P<much>\d{1,4}(?:\.\d{1,4})?) ?(?P<unit>%|x|times) (?:slower|behind|longer|later)\b(?: than)?"
    r"|\bslower than (?:the )?(?:median|mean|average|others|rest|peers|its|other|fastest|p50)\b"
)
_FLAGGED = compiled(
    r"(?i:\bstragglers?(?:Id)?\b(?! (?:detection|detector|scores?|monitor\w*|threshold)\b)|\bstraggling\b)"
    r"(?P<between>[^\d\n]{0,60}?)(?:[\[{(]{0,2}\d|rank|node|host|gpu)"
    r"|(?:rank|node|host|gpu)\S{0,40} .{0,40}?(?i:\b(?:is|are|as|flagged) (?:an? |the )?(?:\w{1,12} )?stragglers?\b)"
)
_COMPARED = compiled(
    r"(?<![\w.])(?P<own>\d{1,7}(?:\.\d{1,4})?) ?(?P<unit>ms|s|us|sec|seconds)\b.{0,30}?"
    r"\b(?:vs\.?|versus|against|compared (?:to|with)|while|where|median|mean|average|others|peers"
    r"|other (?:ranks|nodes|hosts|workers))\b.{0,60}?"
    r"(?<![\w.])(?P<others>\d{1,7}(?:\.\d{1,4})?) ?(?P=unit)\b"
)
_PLACE = compiled(
    rf"(?:{_WHO.format('ranks')})|\b(?i:node|host"
    rf"|server)(?:name)?[ =:'\"]{{1,3}}(?P<host>(?=[\w.-]{{0,63}}\d)[\w.-]{{2,64}})"
)

_CULPRIT = compiled(
    r"(?:Culprit rank (?P<who>\d{1,7}); )?Error type: (?P<kind>[A-Z_]{4,40})(?:, (?P<more>.{1,400}))?"
    r"|Expected (?P<what>collective type|input sizes|output sizes|dtypes?): .{1,200}? does ?not match found"
    r"|\b(?:Size or Syntax|Collective (?:type|dtype)) mismatch\b"
)
"""torch distributed/flight_recorder/components/types.py, MatchInfo and MatchState."""
_CALLS = compiled(
    r"\[enforce fail at .{0,200}op\.preamble\.length <= op\.nbytes"
    r"|\bMPI_ERR_TRUNCATE\b|\bMessage truncated[;,] \d{1,18} bytes received but buffer size is \d"
    r"|\bMismatched (?:[\w/]{1,24} ){1,3}(?:shapes|types|operations|values|ranks|scale factors?|device)\b"
    r"|\b(?:[Ss]hape|[Ss]ize|[Dd]?[Tt]ype) mismatch in the collective\b"
    r"|\bdisagreement between rank ?\d{1,7} and rank ?\d{1,7}\b"
    r"|\bexpects same model across all ranks\b|appears not to match (?:sizes|strides) of the same param in process \d"
    r"|\bFatal error in \w{1,60}: Message truncated\b"
    r"|\bmessage sizes do not match across processes in the collective routine\b"
    r"|\b[Ff]orward order differs across ranks: rank \d|\bsync_global_devices name mismatch\b"
    r"|\bdifferent launch id than the current group leader\b"
    r"|\bCollective instance \d{1,12} expected .{1,80}? but got \S"
    r"|\bis joining group with size \d{1,7}, but that group has size \d"
    r"|\bDetected at least one rank that exhausted inputs\b"
    r"|\bmust have the same (?:number of )?\w{1,20} (?:across|on) (?:all )?(?:ranks|processes|workers): got \S"
)
_CALLED = compiled(
    r"\b[Rr]ank ?(\d{1,7}) (?:has )?(?:called|ran|issued|entered|executed|is (?:running|in|calling"
    r"|waiting (?:in|for|on)))\b (?:\w{1,12} ){0,2}?(?i:(all[_ -]?reduce|all[_ -]?gather|reduce[_ -]?scatter"
    r"|all[_ -]?to[_ -]?all|broadcast|barrier))"
)
"""What a rank calls, in a line that tells of several."""
_LOOSE_CALLS = compiled(
    r"\b(?i:shape|size|dtype) mismatch(?:es)?\b.{0,60}\b(?:across|between) (?:all )?(?:devices|ranks|processes)\b"
    r"|\b(?i:different|mismatch(?:ed|ing)?|inconsistent) (?i:collectives?|tensor shapes?|shapes?|dtypes?|op ?types?"
    r"|operations?|number of (?:elements|tensors|parameters)) (?:\w{1,12} ){0,2}(?i:across|between|on|among) "
    r"(?:all |the )?"
    r"(?i:ranks?|workers?|processes)"
    r"|(?i:\branks? (?:do not|don't|does not|disagree)\b).{0,40}(?i:collective|shape|dtype|size|operation|order"
    r"|number of|count)"
)
_HANDLED = compiled(r"\b(?:INFO|DEBUG)\b|(?i:\b(?:padd|allow|support|handl|expected|fine\b|ignor))")
_COUNTS = compiled(r"\b[Rr]anks have different (?:collective )?operation counts\b")
"""NCCL src/ras/client_support.cc: below the tag MISMATCH."""
_ONE_OF = compiled(r"\b[Rr]ank ?(\d{1,7})\b")

_DIFFERS = (
    r"(?i:\bdiffers?\b|\bmismatch(?:es|ed)?\b|\binconsistent\b|\bnot (?:the same|identical|equal|consistent)\b"
    r"|\bdo(?:es)? not match\b)"
)
_ACROSS = compiled(
    r"(?i:\b(?:across|between|among|on) (?:the |all |some |different )?(?:\w{1,12} )?"
    r"(?:ranks?|nodes?|hosts?|workers?|pods?|processes)\b)"
    r"|\bthan (?:the |on the )?(?:others?|rest)\b|(?:\b[\w.-]{1,64}=\S{1,80} ){2}"
    r"|\brank ?\d{1,7}\b.{0,80}\brank ?\d{1,7}\b"
)
_SETTING_DIFFERS = compiled(
    rf"\b(?:[NR]CCL|UCX|FI|TORCH_NCCL|NVSHMEM|OMPI|GLOO)_[A-Z0-9_]{{2,60}}\b.{{0,200}}?{_DIFFERS}"
)
_VERSION_DIFFERS = compiled(
    r"\b(?:NCCL|RCCL|CUDA|[Dd]river|torch|[Pp]y[Tt]orch|libnccl|aws-ofi-nccl|OFED|firmware)\b.{0,40}"
    rf"(?:\b[Vv]ersions?\b.{{0,200}}?{_DIFFERS}|{_DIFFERS}.{{0,40}}\b[Vv]ersions?\b)"
    rf"|(?:\b[Dd]ifferent|{_DIFFERS}).{{0,20}}(?:NCCL|RCCL|CUDA|[Dd]river|torch|[Pp]y[Tt]orch"
    rf"|libnccl)\b.{{0,20}}\b[Vv]ersions?\b"
)

_LIBRARIES_APART = compiled(
    r"(?i:\b(?:nvshmem|uc[pxt]|pmix|nccl|rccl|ucc|hcoll|sharp|libfabric)\b[^:;]{0,60}?(?<!RoCE )\bversion )"
    r"(?:is incompatible\b|does not match\b|is not compatible\b|mismatch\b)"
)
"""One library of another version than what was built with it: its own check (UCX ucp_context.c, NVSHMEM's init.cu)."""
_WARNS = compiled(r"\bWARN(?:ING)?\b|(?i:\bwarning:)")
_ONE_GPU = compiled(
    r"\branks? ?\d{1,7} (?:and|&) (?:rank ?)?\d{1,7}\b.{0,40}?\b(?:both|same|share|sharing)\b.{0,40}?\b(?:cuda:\d"
    r"|GPU|device)"
)

_DENIED = compiled(
    r"(?i:(?<![\w.:])(?:no|zero|(?<!rank )0|none|never|without)\s{1,3}(?:\w{1,20}\s{1,3}){0,2}(?:stragglers?"
    r"|missing|stuck|hung|slow|late|mismatch(?:es|ed)?|differences?|culprits?|ranks?)\b"
    r"|(?:stragglers?|missing(?: ranks)?|stuck|hung|culprits?|mismatch(?:es)?)\s{0,3}(?:count|found)?\s{0,3}[:=]\s{0,3}"
    r"(?:none|0(?![.\dx])|\[\]|\{\}|set\(\)|n/a|no|false|-\s*$)"
    r"|\b(?:recovered|resolved|caught up|resumed|rejoined|no longer|cleared|healthy"
    r"|detection (?:is )?(?:enabled|disabled)"
    r"|all ranks (?:have |are )?(?:match|agree|enter|reach))\b|\bnot (?:a |an )?(?:straggler|stuck|hung|behind)\b)"
)
_MAYBE = compiled(
    r"(?i:\b(?:if|when|whether|unless|until|in case|may|might|could|should|would|can(?!'t)|will|please|ensure|make sure"
    r"|re-?try\w*"
    r"|example|e\.g\.|simulat\w*|inject\w*|to (?:find|detect|avoid))\b)|\?\s*$|^\s{0,8}(?:#|//|\*|<!--|-\s|`|\|)"
    r"|^\s{0,8}[\w.\"'-]{1,60}\s{0,3}[=:]\s{0,3}[\w.\"'/-]{1,60},?\s*$|\bdef |\breturn\b|\bimport\b"
)
_HEAD = compiled(
    r"^\s{0,8}(?:(?:\[(?:rank|default)?\d{1,6}\]:?|\([\w.:<>/-]{1,80} pid=\d[^)]{0,60}\)|\d{1,6}:)\s{0,4}){1,3}"
)
"""Who prints is not who is spoken of."""

WORDS = (
    b"t enter", b"t reach", b"t arriv", b"t respond", b"t progress", b"t advanc", b"t check", b"t start", b"t call",
    b"t join", b"t finish", b"t complet", b"t return", b"t hear", b"t been ", b"not yet ", b" failed to ", b" yet to ",
    b" never ",
    b"not the same", b"not identical", b"not equal", b"not consistent", b"not match", b"t get subsequent",
    b"traggl", b"slower", b" behind", b" vs ", b" vs. ", b" versus", b"median", b"compared ", b"other ranks",
    b"other hosts", b"other nodes", b"other workers", b"others ", b" stuck", b"Stuck", b" hung", b"Hung ", b" hanging",
    b" stalled", b"lagging", b"nresponsive", b"eadlocked", b"eartbeat", b"eart beat", b"last report", b"no progress",
    b" still in", b" still at ", b" still wait", b" still load", b" still exec", b" still compil",
    b"ulprit", b"issing rank", b"issing worker", b"ranks reached", b"tasks reached",
    b"ranks entered", b"ranks joined", b"ranks have ",
    b"ot all ", b"ome ranks", b"ome workers", b"op.preamble.length", b"MPI_ERR_TRUNCATE", b"truncated", b"ismatch",
    b"MISMATCH", b"isagree", b"same model across", b"nconsistent", b"differ", b"DIFFER", b"but only ", b" same GPU",
    b" same device", b"ersion is incom", b"ersion is not com",
    b"order differs across", b"launch id than", b"Collective instance", b"joining group with", b"the same ",
    b"exhausted inputs", b" called ", b" calls ", b" is running ", b" is in ", b" is waiting ", b"t match across",
    b"ersion does not", b" same cuda", b" both use", b" both on", b" share", b"ranks do not", b"same param in",
)  # fmt: skip
"""A line without any of these is none of theirs."""
_ANY = compiled(any_of(WORDS).decode())
_OF_RANKS = compiled(
    r"(?i:\branks?|\bworker|\btrainer|\btask|\bproc|\bnode|\bhost|stragg)|NCCL|RCCL|MPI_|preamble|UCX_|FI_|mismatch"
    r"|MPIR?_|truncated|nvshmem|UCP |PMIx|\bthreads to |\blaunch id\b|\bCollective instance\b|\bDevice /job:"
)
MOST_RANKS = 4096
_HEAD_CHARS = 60
"""Where a text that explains says so."""
MOST = 1000
"""Characters of a line that are looked at: longer ones are data."""


def state_of(text: str) -> tuple[str, dict[str, str]] | None:
    """The kind of state, and what the line names: `ranks` (digits with commas), `host`, `what`, `one`. None for lines
    that say nothing of ranks. `told`: the line is a verdict of its writer."""
    if len(text) > MOST or _ANY.search(text) is None or _OF_RANKS.search(text) is None:
        return None
    said = _HEAD.sub("", text)
    found = _calls(said)
    if found is not None:
        return found
    if _GAVE_UP.search(said) is not None and (counted := _ONLY_SOME.search(said)) and _is_short(counted):
        return STALLED, {"told": "1"}
    if _DENIED.search(said) is not None or _MAYBE.search(said) is not None:
        return None
    if _LOOSE_CALLS.search(said) is not None and _HANDLED.search(said) is None:
        return _calls_of(said)
    return _differs(said) or _late(said) or _behind(said)


def is_said(text: str) -> bool:
    """Whether a line says that something is so: not what may come, and no question, advice or code."""
    return _MAYBE.search(text) is None


def tells_of_library(text: str) -> bool:
    """Whether a line says that a library is of another version than what uses it."""
    return _LIBRARIES_APART.search(text) is not None


def _calls(said: str) -> tuple[str, dict[str, str]] | None:
    """That ranks call different operations, in words that no healthy job prints."""
    found = _CULPRIT.search(said)
    if found is not None and (found["kind"] is None or "MISMATCH" in found["kind"]):
        who = found["who"] or next(iter(_ONE_OF.findall(said[: found.start()])), "")
        if "STATE" in (found["kind"] or ""):
            return STALLED, _given({"ranks": who, "told": "1"})
        return MISMATCH, _given({"ranks": who, "told": "1"})
    if _COUNTS.search(said) is not None:
        return STALLED, {"told": "1"}
    maybe = _MAYBE.search(said)
    if maybe is not None and maybe.start() < _HEAD_CHARS:
        return None
    return _calls_of(said) if _CALLS.search(said) is not None else _called_apart(said)


def _called_apart(said: str) -> tuple[str, dict[str, str]] | None:
    """Two ranks that a line names with operations that are not the same."""
    calls = dict(_CALLED.findall(said))
    if len({re.sub(r"[_ -]", "", call.lower()) for call in calls.values()}) < 2 or _HANDLED.search(said) is not None:
        return None
    return (MISMATCH, {"ranks": ",".join(calls), "told": "1"}) if _MAYBE.search(said) is None else None


def _calls_of(said: str) -> tuple[str, dict[str, str]]:
    return MISMATCH, _given({"ranks": ",".join(dict.fromkeys(_ONE_OF.findall(said))), "told": "1"})


def _differs(said: str) -> tuple[str, dict[str, str]] | None:
    """That a setting or a version is not the same everywhere, or that a GPU is, of two ranks."""
    if _ONE_GPU.search(said) is not None:
        return DIFFERS, {"what": GPU}
    if _LIBRARIES_APART.search(said) is not None:
        return DIFFERS, {"what": VERSION} if _WARNS.search(said) is not None else {"what": VERSION, "ends": "1"}
    what = VERSION if _VERSION_DIFFERS.search(said) else SETTING if _SETTING_DIFFERS.search(said) else ""
    return (DIFFERS, {"what": what}) if what and _ACROSS.search(said) is not None else None


def _late(said: str) -> tuple[str, dict[str, str]] | None:
    """That a rank takes longer than the others, by name or by two numbers."""
    place = _PLACE.search(said)
    if place is None:
        return None
    named = _given({"ranks": _numbers(place["ranks"]), "host": place["host"] or ""})
    if _FLAGGED.search(said) is not None:
        return LATE, named
    slower = _SLOWER.search(said)
    if slower is not None and _is_much(slower):
        return LATE, named
    compared = _COMPARED.search(said)
    if compared is not None and float(compared["own"]) > AHEAD * float(compared["others"]) > 0:
        return LATE, named
    return None


def _is_much(slower: re.Match[str]) -> bool:
    if slower["much"] is None:
        return True
    much = float(slower["much"])
    return much >= 100 * (AHEAD - 1) if slower["unit"] == "%" else much >= AHEAD


def _behind(said: str) -> tuple[str, dict[str, str]] | None:
    """That a rank is not where the others wait."""
    found = _BEHIND_RANK.search(said) or _RANK_BEHIND.search(said) or _UNHEARD.search(said)
    counted = (_OF_ALL.search(said) or _ONLY_SOME.search(said)) if found is None else None
    if counted is not None and headcounts.is_going_on(said):
        return None
    if found is not None:
        ranks = _numbers(found["ranks"])
    elif _NOT_ALL.search(said) is not None or (counted is not None and _is_short(counted)):
        ranks = ""
    else:
        return None
    if _MEETING.search(said) is not None:
        return "device", {"fault": "absent"}
    return STALLED, _given({"ranks": ranks, "told": "1"})


def _is_short(counted: re.Match[str]) -> bool:
    return int(counted["came"]) < int(counted["all"])


def _numbers(listed: str | None) -> str:
    """`0-3, 9` as `0,1,2,3,9`."""
    made: list[int] = []
    for first, last in re.findall(r"(\d{1,7})(?:-(\d{1,7}))?", listed or ""):
        made += range(int(first), min(int(last or first), int(first) + MOST_RANKS) + 1)
    return ",".join(map(str, made[:MOST_RANKS]))


def _given(named: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in named.items() if value}
