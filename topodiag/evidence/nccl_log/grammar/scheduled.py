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

from topodiag.evidence.nccl_log.grammar import job_sentences
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.signatures.literals import finder

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
MOST = 2000
"""Characters of a line that are looked at."""
_SCRIPT = compiled(r"\s{0,8}(?:#|//|\*|trap\b|echo\b|if\b|elif\b|case\b|print\b|export\b|raise\b|def\b|- )")
"""A line of a script, or of a text that explains: it says what may come."""

WORDS = (
    b"PREEMPTED", b"REVOKED", b"TIMEOUT", b"DEADLINE", b"NODE_FAIL", b"BOOT_FAIL", b"OUT_OF_ME", b"FAILED",
    b"CANCELLED", b"Job_id=",
)  # fmt: skip
"""A line without any of these is none of theirs."""
_ANY = finder(WORDS)


def end_of(text: str) -> tuple[str, dict[str, str]] | None:
    """`ended` and how, as `ends.end_of` says it; None for lines of jobs that run, wait or are complete."""
    named = job_sentences.job_end_of(text)
    if named is not None and named["how"] == "context":
        return "ended", {"how": "context", "root": "1"}
    text = text[:MOST]
    if not _ANY.any(text.encode("utf-8", "replace")) or _SCRIPT.match(text) is not None:
        return ("ended", named) if named is not None else None
    row = _ROW.match(text) or _SHOWN.search(text)
    if row is not None:
        return "ended", _of_state(row[row.lastindex or 1], text[row.end() :])
    return ("ended", named) if named is not None else None


def _of_state(word: str, rest: str) -> dict[str, str]:
    """By the state of a job, and by the code behind it: a signal, or what its program returned."""
    how = _STATES.get(word.rstrip("+"), "memory" if word.startswith("OUT_OF") else "exit")
    code = _CODE.search(rest)
    if how != "exit" or code is None:
        return {"how": how}
    number = int(code[1]) or 128 + int(code[2])
    return {"how": {137: "killed", 9: "killed", 143: "cancelled"}.get(number, "exit"), "code": str(number)}
