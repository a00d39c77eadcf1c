"""Ends of processes for want of host memory, by whoever ended them: the kernel, a scheduler, systemd, Kubernetes.

SOURCE: Linux mm/oom_kill.c; Slurm's states (OUT_OF_MEMORY, cut in tables of sacct) and its cgroup plug-in; PBS Pro's
mom_limits; LSF's TERM_MEMLIMIT; systemd-oomd; Ray's memory monitor; the kubelet.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar.numbers import compiled

OF_JOB = r"(?:python[\d.]{0,6}|pt_main_thread|pt_data_worker|torchrun|ray::|deepspeed|\w{1,24}_perf)"
"""Processes of jobs: the kernel's log tells of others, too."""
KILLED = compiled(
    rf"[Dd]etected \d{{1,9}} oom[-_]kill event|[Oo]ut of memory: Kill(?:ed)? process \d{{1,9}} \({OF_JOB}"
    r"|killed due to (?:memory pressure \(OOM\)|the node running low on memory)"
    r"|\bOOMKilled\b|TERM_MEMLIMIT|[Ee]xceeded (?:job |step )?memory limit"
    r"|killed by the (?:cgroup )?(?:OOM|oom)[- ]killer|\bOUT_OF_ME(?:MORY\b|\+)|PBS: job killed: \w{0,6}mem"
    r" \S{1,30} exceeded"
    r"|systemd-oomd killed \d{1,6} process|systemd-oomd\[\d{1,9}\]: Killed /|Failed with result 'oom-kill'"
)
_NOT_YET = re.compile(r"\b(?:will|would|may|might|can|could|if|when|means?|indicates?)\b[^.;]{0,60}$", re.I)
"""What stands before the same words where a text explains them."""


def only_spoken_of(text: str, found: re.Match[str]) -> bool:
    """Whether a line explains such an end, or expected it."""
    return _NOT_YET.search(text[: found.start()]) is not None or " as expected" in text[found.end() :]
