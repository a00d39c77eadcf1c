"""How many of how many came to where a job meets, in any tool's words.

    Timed out after 600s: only 3 of 4 nodes joined           a wait that is over
    Timed out waiting for tasks to start.                     the same without a number
    1 of 2 workers did not report ready within 600 s          those that did not come
    3/4 workers joined, waiting                               a start that goes on: no fault, and told by nobody

A count that is short stands in each healthy start, so that one counts where its line says that the wait is over.

SOURCE: Horovod runner/common/util/timeout.py; torch TCPStore.cpp; TensorFlow and JAX coordination_service.cc; Ray's,
vLLM's and SGLang's launchers.
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.numbers import any_of, compiled

_NOUN = (
    r"(?i:(?:\w{1,14} ){0,2}(?:ranks?|workers?|trainers?|tasks?|proc(?:s|ess(?:es)?)?|nodes?|hosts?|agents?|members?"
    r"|participants?|clients?|peers?|PEs|executors?|actors?|replicas?|machines?|slots?|engines?))"
)
_CAME = r"(?:joined|connected|registered|showed up|came up|started|launched|(?:became |are |were )?ready)"
_COME = (
    r"(?:join|connect|register|show up|come up|start|launch|report ready|become ready|be ready|check in|initiali[sz]e"
    r"|rendezvous|arrive)"
)
_SHORT = compiled(
    rf"(?<![\w./])(?P<came>\d{{1,6}}) ?(?:/|of|out of) ?(?:the |all )?(?P<all>\d{{1,6}}) {_NOUN}\b"
    rf".{{0,40}}?\b{_CAME}\b"
)
_ABSENT = compiled(
    rf"(?<![\w./])(?P<lacks>\d{{1,6}}) ?(?:/|of|out of) ?(?:the |all )?(?P<all>\d{{1,6}}) {_NOUN} "
    rf"(?:did not|didn't|have not|has not|failed to|never) (?:yet )?{_COME}"
)
_EXPECTED = compiled(
    r"\b[Ee]xpected (?P<all>\d{1,6})\b.{0,60}?\b(?:got|saw|have|found|joined) (?:only )?(?P<came>\d{1,6})\b"
)
_WAITED = compiled(
    rf"\b[Tt]imed[ -]out (?:after [\d.]{{1,9}} ?\w{{1,8}} )?(?:while )?waiting for "
    rf"(?:(?:all|the|other|remaining|at least|\d{{1,6}}) ){{0,3}}{_NOUN}(?: to {_COME}\b|[.;:,]|\s*$)"
)
_OVER = compiled(
    r"(?i:\btimed[ -]?out\b|\btime-?out\b(?! ?[=:(\d]| of\b| is\b)|Timeout(?:Error|Exception|Expired)\b"
    r"|\bdeadline\b.{0,12}\bexceeded\b|\bg(?:ave|iving) up\b|\baborting\b)"
)
"""Words by which a wait is over."""
_WITHIN = compiled(r"\bwithin \d")
"""The same of those that did not come: who came within a time may only be the first."""
_GOES_ON = compiled(r"(?i:\b(?:so far|still|yet|re-?try\w*|will|(?<!timed out )(?<!timed-out )waiting)\b)")
_MEETS = compiled(
    r"(?i:\b(?:rendezvous|join\w*|regist\w*|connect\w*|init\w*|launch\w*|start\w*|ready|store|coordinat\w*|show\w* up"
    r"|c[oa]me up)\b)"
)
"""Where they come to a start, not to a collective."""

WORDS = (
    b"imed out", b"imed-out", b"imeout", b"IMED OUT", b"eadline", b"EADLINE", b"gave up", b"iving up", b"borting",
    b" within ",
)  # fmt: skip
"""A line without any of these says of no wait that it is over."""
MOST = 1000
"""Characters of a line that are looked at: longer ones are data."""
_ANY = compiled(any_of(WORDS).decode())


def absent_of(text: str) -> dict[str, str] | None:
    """`came` and `all`, where the line counts them, of a start that waited in vain; None for all other lines."""
    if len(text) > MOST or _ANY.search(text) is None or _MEETS.search(text) is None:
        return None
    if _GOES_ON.search(text) is not None:
        return None
    if _WAITED.search(text) is not None:
        return {}
    over, lacking = _OVER.search(text), _ABSENT.search(text)
    if lacking is not None and (over is not None or _WITHIN.search(text) is not None):
        return _counted(int(lacking["all"]) - int(lacking["lacks"]), int(lacking["all"]))
    if over is None:
        return None
    found = _SHORT.search(text) or _EXPECTED.search(text)
    return _counted(int(found["came"]), int(found["all"])) if found is not None else None


def _counted(came: int, of: int) -> dict[str, str] | None:
    return {"came": str(came), "all": str(of)} if 0 <= came < of else None


def is_going_on(text: str) -> bool:
    """Whether a line that counts who came says that the others are waited for."""
    return _GOES_ON.search(text) is not None
