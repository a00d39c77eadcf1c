"""The nccl.conf that follows from findings, read back before it is handed over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.case.live import captured
from topodiag.app.case.opening import case_of, gathered, node_case
from topodiag.app.judge.judged import judged_jobs, judged_nodes
from topodiag.checks.env.conf_file import advise, misread
from topodiag.emit.nccl_conf import UnwritableError, to_text
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.nccl_conf import ConfAdvice
from topodiag.model.result import Result
from topodiag.words.units import few


@dataclass(frozen=True, slots=True)
class ConfFile:
    """An nccl.conf ready to be written, and what was decided for it. `text` is "" where nothing follows."""

    text: str
    advice: ConfAdvice


def conf_of(result: Result, name: str) -> ConfFile:
    """The nccl.conf that follows from the findings on these nodes and jobs. Errors name `name` as their input. Raises
    InputError where no file can hold it."""
    nodes, jobs = result.nodes, result.jobs
    subject = few([node.host for node in nodes] or [job.name for job in jobs], 3)
    printed = {setting: next(iter(values), "") for job in jobs for setting, values in job.settings().items()}
    advice = advise(nodes, result.findings, subject, printed)
    if not advice.follows:
        return ConfFile("", advice)
    try:
        text = to_text(advice.entries, advice.elsewhere, subject)
    except UnwritableError as error:
        raise InputError(name, f"cannot be made an nccl.conf: {error}") from None
    _read_back(text, advice, name)
    return ConfFile(text, advice)


def _read_back(text: str, advice: ConfAdvice, name: str) -> None:
    """What NCCL would read has to be what was decided: each setting once, to the letter."""
    read: dict[str, str] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            if misread(line) is not None or key in read:
                raise InputError(name, f"makes an nccl.conf that NCCL reads otherwise than meant: {line[:80]}")
            read[key] = value
    if read != {entry.name: entry.value for entry in advice.entries if entry.value is not None}:
        raise InputError(name, "makes an nccl.conf that NCCL reads otherwise than meant")


def make_conf_file(sources: Sequence[str] = (), logs: Sequence[str] = ()) -> ConfFile:
    """The nccl.conf that follows from bundles (`fixture:NAME`, folders, files) and from the logs of a job; from this
    machine without either. Raises InputError."""
    result = Result()
    if sources or not logs:
        result = judged_nodes(node_case(gathered(sources)) if sources else case_of([captured()]))
    if logs:
        from topodiag.app.case.jobs import job_case  # noqa: PLC0415 - numpy, which only logs need

        of_logs = judged_jobs(job_case(gathered(logs, quick=True)))
        result = replace(result, jobs=of_logs.jobs, findings=(*result.findings, *of_logs.findings))
    name = next(iter((*sources, *logs)), "this machine")
    if not result.nodes and not result.jobs:
        raise InputError(name, "holds no node and no job")
    return conf_of(result, name)
