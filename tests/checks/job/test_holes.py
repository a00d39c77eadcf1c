"""Checks of jobs on evidence with holes: no exception, and a part of a healthy job makes no fault."""

from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks import registry
from topodiag.checks.interface import JobCheck
from topodiag.model.connections import no_connections
from topodiag.model.finding import Severity
from topodiag.model.job import Job

WHOLE = jobs.job()
HOLES = {
    "whole": WHOLE,
    "one node": jobs.job(1),
    "one rank": jobs.job(1, 1),
    "no connections": replace(WHOLE, connections=no_connections()),
    "no communicators": replace(WHOLE, communicators=(), connections=no_connections()),
    "communicators lost": replace(WHOLE, communicators=()),
    "half of the processes silent": jobs.job(
        process=lambda rank, host, process: replace(process, hcas=(), network="", bootstrap="") if host else process
    ),
    "no systems": jobs.job(systems=lambda host, system: None),
    "systems of one node": jobs.job(systems=lambda host, system: None if host else system),
    "no ranks": replace(WHOLE, ranks=()),
    "no processes": replace(WHOLE, processes=(), ranks=()),
    "nothing": Job("job", -1, (), (), (), no_connections(), ()),
    "one rank per node": jobs.job(4, 1, nics=1),
    "no NVLink": jobs.job(systems=lambda host, system: jobs.system(host, nvlink_gbs=0)),
}
CHECKS = [
    cls
    for check_id in registry.ids()
    if check_id[:3] in {"NET", "NIC", "GDR", "P2P", "NUM", "TOP"}
    for cls in registry.check_classes(check_id)
    if issubclass(cls, JobCheck)
]


@pytest.mark.parametrize("name", HOLES)
@pytest.mark.parametrize("cls", CHECKS, ids=lambda cls: cls.__name__)
def test_a_part_of_a_healthy_job_makes_no_fault(cls: type[JobCheck], name: str) -> None:
    outcome = cls().judge(HOLES[name])
    assert outcome.check == cls.id
    assert all(finding.severity is Severity.INFO for finding in outcome.findings), outcome.findings
