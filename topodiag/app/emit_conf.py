"""The wiring of `topodiag emit nccl-conf`: from nodes or logs over their findings to the file, which is read back."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.app.case.live import captured
from topodiag.app.case.nodes import case_of, node_case
from topodiag.app.case.opening import stream_for
from topodiag.app.judge.conf_file import ConfFile, conf_of
from topodiag.app.judge.nodes import judged
from topodiag.evidence.intake.gather import gather
from topodiag.model.errors import InputError
from topodiag.model.result import Result


def make_conf_file(sources: Sequence[str] = (), logs: Sequence[str] = ()) -> ConfFile:
    """The nccl.conf that follows from bundles (`fixture:NAME`, folders, files) and from the logs of a job; from this
    machine without either. Raises InputError."""
    results: list[Result] = []
    if sources:
        results.append(judged(node_case(gather(sources, stdin=stream_for(sources)))))
    if logs:
        from topodiag.app.case.jobs import job_case  # noqa: PLC0415 - numpy, which only logs need
        from topodiag.app.judge import jobs as of_jobs  # noqa: PLC0415

        results.append(of_jobs.judged(job_case(gather(logs, stdin=stream_for(logs), quick=True))))
    if not results:
        results.append(judged(case_of([captured()])))
    name = next(iter((*sources, *logs)), "this machine")
    nodes = tuple(node for result in results for node in result.nodes)
    jobs = tuple(job for result in results for job in result.jobs)
    if not nodes and not jobs:
        raise InputError(name, "holds no node and no job")
    findings = tuple(finding for result in results for finding in result.findings)
    return conf_of(Result(nodes=nodes, jobs=jobs, findings=findings), name)
