"""Short logs judged as a whole, in process: what the checks of jobs make of a few lines."""

from topodiag.app.judge.judged import judged_jobs
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild
from topodiag.evidence.nccl_log.tables.facts import SourceFile
from topodiag.evidence.nccl_log.tables.resolve import merge_facts
from topodiag.model.finding import Finding
from topodiag.model.job import Job
from topodiag.model.result import Case, Result

HEAD = "n0:310:351 [0] NCCL INFO "
WARN = "n0:310:351 [0] file.cc:1 NCCL WARN "


def jobs_of(*logs: str) -> tuple[Job, ...]:
    parts = [extract(text.encode(), i, 0) for i, text in enumerate(logs)]
    return rebuild(merge_facts(parts), [SourceFile(f"{i}.log") for i in range(len(logs))])


def result_of(*logs: str) -> Result:
    return judged_jobs(Case(jobs=jobs_of(*logs)))


def found(check: str, *lines: str) -> list[Finding]:
    """What a check finds in these lines."""
    return [finding for finding in result_of("".join(f"{line}\n" for line in lines)).findings if finding.id == check]


def one(check: str, *lines: str) -> Finding:
    (finding,) = found(check, *lines)
    return finding
