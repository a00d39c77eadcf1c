"""Rows and lists by which launchers and frameworks say that a process ended, or for which ranks others wait.

Their fixed sentences are entries of the catalogue (launcher.toml, process.toml); here stand those with structure: two
fingerprints on one line, Horovod's lists of ranks, rows of `kubectl get pods`, the summary of torchrun.

SOURCE: torch distributed/elastic/multiprocessing/errors.py, distributed/c10d/{Utils.hpp, ProcessGroupWrapper.cpp};
Horovod's stall_inspector.cc; kubectl pkg/printers.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar import exceptions, job_sentences, stack_frames
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.lazy import regex

LIMIT = 2000
"""Characters that are kept of such a line: torch prints two fingerprints on one."""

_POD = compiled(
    r"^\s{0,8}(?:\S{1,80}\s{1,60})?(\S{1,253})\s{1,60}\d{1,3}/\d{1,3}\s{1,60}(?:Init:)?(CrashLoopBackOff|Error|OOMKilled"
    r"|Evicted|ErrImagePull|ImagePullBackOff|(?:CreateContainer|RunContainer|UnexpectedAdmission)Error"
    r"|ContainerCannotRun|NodeLost)\s{1,60}\d"
)
"""A row of `kubectl get pods`: name, ready, status, restarts."""
_POD_STATUS = {"OOMKilled": "memory", "Evicted": "evicted", "NodeLost": "node failure", "CrashLoopBackOff": "died",
               "Error": "died"}  # fmt: skip
_DIED = compiled(
    r"\b(?i:worker|process|actor|task|rank|trainer|engine ?core|learner|replica|proc)s?\b[^.;:\n]{0,60}?"
    r"\b(?:(?:has |was |had )?died\b(?! down| out| away)|was killed\b|crashed\b|unexpectedly exit(?:s|ed)\b"
    r"|exited unexpectedly\b|terminated unexpectedly\b|is dead\b)"
)
"""That a process of the job is gone, in any launcher's words, and not how."""
_NOT_DIED = regex(r"\b(?:if|when|in case|unless|whether|until|before|may|might|could|would|no|not|never)\b|\?", re.I)
_SUMMARY_RANK = compiled(r"(?:^|[\s:\]])rank\s{1,8}: (\d{1,9}) \(local_rank: \d{1,9}\)")
_SUMMARY_HOST = compiled(r"(?:^|[\s:\]])host\s{2,8}: (\S{1,120})\s*$")
_MISSING = compiled(r"(?:^|[\s:>])Missing ranks:\s*$")
"""Horovod 0.20 and later: the lines below name a rank each."""
_STALLED = compiled(r"^(.{0,300}?) ?\[missing ranks: ?([\d, ]{1,2000})\]")
_MISSED = compiled(r"^\s{0,8}missing ranks: \{([\d, ]{1,2000})\}\s*$")
"""torch's analyzer of flight recorder dumps (torch/distributed/flight_recorder, fr_trace)."""
_READY = compiled(r"(\S{1,200}) \[ready ranks: ?([\d, ]{1,2000})\]")
"""Horovod before 0.20 names the ranks that came: who did not is what their numbers leave out."""
MOST_READY = 1 << 16
_FINGERPRINTS = compiled(
    r"mismatch between collectives on ranks\. Rank (\d{1,9}) is running collective: CollectiveFingerPrint\("
    r"(.{1,900}?)\), but Rank (\d{1,9}) is running collective: "
    r"(?:CollectiveFingerPrint\((.{1,900}?)\)|([A-Z_]{2,40})\b)"
)
_INCONSISTENT = compiled(
    r"mismatch between collectives on ranks\. Rank (\d{1,9}) is running inconsistent collective: "
    r"CollectiveFingerPrint\((.{1,900}?)\)"
)
"""torch 1.11 and earlier name one side."""
_PART = compiled(r"(SequenceNumber|OpType|TensorShape|TensorDtypes)=(\[[\d, ]{0,200}\]|\w{1,40}?)(?=OpType=|[,)]|$)")

WORDS = (
    *exceptions.WORDS, *stack_frames.WORDS, b"    @ ", b"PC: @", b"BackOff", b"OOMKilled", b"Evicted", b"NodeLost",
    b"ErrImagePull", b"ContainerCannotRun", b"unexpectedly", b"died", b"was killed", b" crashed", b" is dead",
    b"issing ranks", b"ready ranks", b"between collectives", b"(local_rank: ", b"host  ",
)  # fmt: skip
"""A line without any of these is none of theirs."""


def label_of(text: str) -> str:
    """The rank that such a line names for itself, as digits; "" without."""
    tasks = job_sentences.tasks_of(text)
    if tasks:
        return tasks if tasks.isdecimal() and len(tasks) < 10 else ""
    return exceptions.rank_of(text)


def end_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Kind (`ended`, `stalled`, `mismatch`) and what the line names; None for all others.

    `how` of an end: no room, memory, limit, preempted, evicted, node failure, cancelled, stopped, crash, exception,
    killed, terminated, aborted, hung up, exit, died, not launched, loader, port taken, or context (a line of
    torch's summary that names rank or host).
    """
    found = _FINGERPRINTS.search(text)
    if found is not None:
        return "mismatch", _fingerprints(found)
    found = _INCONSISTENT.search(text)
    if found is not None:
        return "mismatch", {"ranks": found[1], "one": _words(found[2])}
    found = _STALLED.search(text)
    if found is not None:
        return "stalled", {"ranks": found[2].replace(" ", ""), "op": found[1].strip()[-120:]}
    waited = job_sentences.stalled_of(text)
    if waited is not None:
        return "stalled", waited
    found = _MISSED.match(text)
    if found is not None:
        return "stalled", {"ranks": found[1].replace(" ", ""), "op": ""}
    found = _READY.search(text)
    if found is not None:
        return "stalled", {"ranks": _left_out(found[2]), "op": found[1][-120:]}
    if _MISSING.search(text):
        return "stalled", {"ranks": "", "op": ""}
    return _ended(text)


def _ended(text: str) -> tuple[str, dict[str, str]] | None:
    named = (
        job_sentences.end_of(text)
        or exceptions.lone_of(text)
        or _of_row(text)
        or _of_context(text)
        or exceptions.exception_of(text)
    )
    if named is not None:
        return "ended", named
    operation = exceptions.waited_in(text)
    return ("stalled", {"ranks": "", "op": operation}) if operation else None


def _of_row(text: str) -> dict[str, str] | None:
    pod = _POD.match(text)
    if pod is not None:
        return {"how": _POD_STATUS.get(pod[2], "not launched"), "what": pod[2] if pod[2] != "Error" else ""}
    died = _DIED.search(text)
    return {"how": "died"} if died is not None and _NOT_DIED.search(text[: died.end()]) is None else None


def _of_context(text: str) -> dict[str, str] | None:
    """Lines that only name who ended: a function of NCCL in a stack, a rank or host of a summary."""
    frame = stack_frames.frame_of(text)
    if frame is not None:
        return {"how": "context", "symbol": frame[0], "so": frame[1]}
    found = _SUMMARY_RANK.search(text)
    if found is not None:
        return {"how": "context", "named_rank": found[1]}
    found = _SUMMARY_HOST.search(text)
    return {"how": "context", "host": found[1]} if found is not None else None


def _fingerprints(found: re.Match[str]) -> dict[str, str]:
    made = {"ranks": f"{found[1]},{found[3]}"}
    for side, text in (("one", found[2]), ("other", found[4] or f"OpType={found[5]},")):
        parts = dict(_PART.findall(text))
        made[side] = _words(text)
        if "SequenceNumber" in parts:
            made[f"{side}_seq"] = parts["SequenceNumber"]
    return made


def _words(fingerprint: str) -> str:
    """Operation, shape and type of a fingerprint, as far as it has them."""
    parts = dict(_PART.findall(fingerprint))
    return " ".join(word for name in ("OpType", "TensorShape", "TensorDtypes") if (word := parts.get(name, "")))


def _left_out(ready: str) -> str:
    """The ranks below the highest that a list leaves out; "" where it leaves out none: the missing one is above."""
    came = {int(word) for word in re.findall(r"\d{1,6}", ready)}
    highest = max(came, default=0)
    if highest >= MOST_READY:
        return ""
    return ",".join(str(rank) for rank in range(highest) if rank not in came)
