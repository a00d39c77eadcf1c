"""How a job, a step or a pod stands, in the tables, records and events of schedulers, operators and launchers.

    88122.0  PREEMPTED  0:15  03:11:04  gpu-[01-16]        sacct, in any order of columns
    JobId=88122 JobState=TIMEOUT Reason=TimeLimit          scontrol show job
    Warning  Preempted  pod/train-3  Preempted by ..       kubectl get events
    PyTorchJob sft is failed because 1 Worker replica(s) failed.

SOURCE: Slurm src/common/slurm_protocol_defs.c (job_state_string); LSF lsbatch.h (TERM_*); Kubernetes
pkg/scheduler/framework/preemption, pkg/controller/job (BackoffLimitExceeded, DisruptionTarget), kubectl's describe;
Kubeflow's training operator (common/job.go); Open MPI help-prterun.txt, help-orterun.txt; Ray's job manager.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar import notices
from topodiag.evidence.nccl_log.grammar.any_of import any_of
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.nccl_log.grammar.signals import how_of_code

_STATES = {
    "PREEMPTED": "preempted", "REVOKED": "preempted", "TIMEOUT": "limit", "DEADLINE": "limit",
    "NODE_FAIL": "node failure", "BOOT_FAIL": "node failure", "OUT_OF_MEMORY": "memory", "FAILED": "exit",
    "CANCELLED": "cancelled",
}  # fmt: skip
"""Slurm's states of a job that ended, by `how` of `ends.end_of`."""
_STATE = r"(PREEMPTED|REVOKED|TIMEOUT|DEADLINE|NODE_FAIL|BOOT_FAIL|OUT_OF_ME[MORY+]{0,5}|FAILED|CANCELLED)\b"
_ROW = compiled(
    rf"^\s{{0,8}}\d{{1,12}}(?:[_.+][\w\[\]%-]{{1,24}}){{0,3}}[\s|,](?:.{{0,200}}?[\s|,])?{_STATE}\+?"
    r"(?=.{0,200}(?:(?<![\d:])\d{1,3}:\d{1,3}(?![\d:])|\d\d:\d\d:\d\d))"
)
"""A row of sacct: a job, a state, and an exit code or a time somewhere."""
_SHOWN = compiled(rf"\bJobState={_STATE}|\bSlurm (?:\w{{1,12}} ){{0,3}}Job_id=.{{1,200}}?, {_STATE}")
"""`scontrol show job`, and the subject of Slurm's mail."""
_CODE = compiled(r"(?<![\d:.])(\d{1,3}):(\d{1,3})(?![\d:])")
_WORDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "preempted",
        compiled(
            r"\b(?i:job|workload|pod|task|instance|node|worker|run) [^.;\n]{0,60}\b(?:was|were|has been|got"
            r"|is being) preempted\b"
            r"|\s(?:Preempted|PreemptionByScheduler|PreemptionByKueueManager)\s|\bPreempted by (?:pod|a pod|job)\b"
            r"|\bJobNodePreempted\b|\bEvictedDueToPreempt\w{0,8}\b|\bTERM_PREEMPT"
            r"|\b[Pp]reempted (?:to accommodate|in order to admit) "
            r"|(?:[Rr]eceived|[Gg]ot|[Cc]aught) (?:signal )?SIG(?:TERM|USR\d|INT|CONT)\b.{0,40}\bpreempt"
            r"|\bpreempt\w{0,8}\b.{0,40}\b(?:[Rr]eceived|[Gg]ot|[Cc]aught|sent) (?:signal )?SIG(?:TERM|USR\d)\b"
        ),
    ),
    ("limit", compiled(r"\bjob \d{1,12}\.\d{1,9} exceeded (?:hard|soft) wallclock time\b")),
    (
        "node failure",
        compiled(r"\b[Nn]ode \S{1,80} .{0,80}?\bmarked (?:as )?dead\b"),
    ),
    (
        "evicted",
        compiled(
            r"\b(?:TaintManagerEviction|DeletionByTaintManager|EvictionByEvictionAPI|TerminationByKubelet"
            r"|DeletionByPodGC)\b|[Rr]eason: {1,12}(?:NodeShutdown|Terminated)\b"
        ),
    ),
    (
        "exit",
        compiled(
            r"\bis failed because \d{1,6} \w{1,30} replica\(s\) failed|\bBackoffLimitExceeded\b"
            r"|\bJob has reached the specified backoff limit\b|\bPod: \S{1,253} exited with code (?!0\b)(\d{1,3})\b"
            r"|^\s{0,12}Exit Code: {2,12}(?!0\b)(\d{1,3})\s*$"
            r"|\bentrypoint command failed with exit code (-?\d{1,5})"
            r"|\b(?i:process(?:es)?|tasks?(?:\(s\))?|workers?|pod|container|ranks?|replica|child|command|trainer"
            r"|launcher"
            r"|node|job|script)\b(?![^\n]{0,60}\b(?:if|when|unless|would|may)\b).{0,80}?"
            r"\b(?:exited|exits|terminated|failed|returned|died|finished|ended)\b.{0,12}?\bwith (?:a |an |the )?"
            r"(?:non-?zero )?(?:exit |status )?(?:code|status)[ :=]{1,3}(?!0\b)(-?\d{1,5})\b"
            r"|\bfailed due to one or more job failures\b|\b[Ff]irst failed job: "
            r"|\bdetected that one or more processes exited with non-zero status"
            r"|\bprocess(?:es)? (?:returned|exited with) a non-zero (?:exit code|status)"
            r"|\bAbort\(-?\d{1,12}\) on node \d{1,7} \(rank (\d{1,7}) in comm"
            r"|^\s{0,8}\*\*\* MPI_ERRORS_ARE_FATAL \("
            r"|^\s{0,8}Process name: \[(?:\[\d{1,9},\d{1,6}\]|[\w.@-]{1,120}),(\d{1,7})\]"
        ),
    ),
    (
        "cancelled",
        compiled(
            r"\bTERM_(?:FORCE_)?(?:OWNER|ADMIN)\b|\bscancel\b.{0,40}\bby (?:user|uid)\b"
            r"|\bJob deleted at request of \S"
        ),
    ),
)  # fmt: skip
_ROOT = compiled(r"\bRoot Cause \(first observed failure\)")
"""torch distributed/elastic/multiprocessing/errors: the record of the process that failed first follows."""

MOST = 2000
"""Characters of a line that are looked at."""
_SCRIPT = compiled(r"\s{0,8}(?:#|//|\*|trap\b|echo\b|if\b|elif\b|case\b|print\b|export\b|raise\b|def\b|- )")
"""A line of a script, or of a text that explains: it says what may come."""

WORDS = (
    b"oot Cause (", b"PREEMPTED", b"REVOKED", b"TIMEOUT", b"DEADLINE", b"NODE_FAIL", b"BOOT_FAIL", b"OUT_OF_ME",
    b"FAILED",
    b"CANCELLED", b"reempt", b"TaintManager", b"EvictionAPI", b"ByKubelet", b"ByPodGC", b"NodeShutdown", b"Terminated",
    b"is failed because", b"BackoffLimit", b"backoff limit", b" with code", b"exit code",
    b"exit status", b"failed job", b"Exit Code:", b"entrypoint command",
    b"non-zero", b"MPI_ERRORS_ARE", b"Process name: [", b"Abort(", b" dead", b"Job_id=", b"TERM_",
    b"scancel", b"Job deleted at", b"NodePreempted", b"wallclock time", *notices.WORDS,
)  # fmt: skip
"""A line without any of these is none of theirs."""
_ANY = compiled(any_of(WORDS).decode())


def end_of(text: str) -> tuple[str, dict[str, str]] | None:
    """`ended` and how, as `ends.end_of` says it; None for lines of jobs that run, wait or are complete."""
    text = text[:MOST]
    if _ANY.search(text) is None or _SCRIPT.match(text) is not None:
        return None
    if _ROOT.search(text) is not None:
        return "ended", {"how": "context", "root": "1"}
    row = _ROW.match(text) or _SHOWN.search(text)
    if row is not None:
        word = row[row.lastindex or 1]
        return "ended", _of_state(word, text[row.end() :])
    for how, pattern in _WORDS:
        found = pattern.search(text)
        if found is not None:
            number = next((part for part in found.groups() if part), "")
            if "Process name" in found[0] or "Abort(" in found[0]:
                return "ended", {"how": how, "named_rank": number}
            return "ended", {"how": _how(how, number), "code": number} if number else {"how": how}
    return ("ended", {"how": "announced"}) if notices.is_notice(text) else None


def _how(how: str, code: str) -> str:
    """That of a signal whose number a code tells, where it is one that ends a process by itself."""
    by_code = how_of_code(int(code)) if how == "exit" else how
    return by_code if by_code in ("killed", "crash") else how


def _of_state(word: str, rest: str) -> dict[str, str]:
    """By the state of a job, and by the code behind it: a signal, or what its program returned."""
    how = _STATES.get(word.rstrip("+"), "memory" if word.startswith("OUT_OF") else "exit")
    code = _CODE.search(rest)
    if how != "exit" or code is None:
        return {"how": how}
    number = int(code[1]) or 128 + int(code[2])
    return {"how": {137: "killed", 9: "killed", 143: "cancelled"}.get(number, "exit"), "code": str(number)}
