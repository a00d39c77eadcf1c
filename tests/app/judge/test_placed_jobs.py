"""A launcher's file in a diagnosis: judged as `topodiag place audit` does, at the same price."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.checks import jobs
from tests.placement.test_job_groups import comms
from topodiag.app.case.placement import PlaceOptions
from topodiag.app.judge.placing import NO_TALK, NOT_PLACED, place_jobs
from topodiag.app.place import audit_placement
from topodiag.evidence.intake.one_file import open_blob
from topodiag.evidence.layout.rank_files import read_slurm_hostfile
from topodiag.model.cluster import RankHosts
from topodiag.model.finding import Cost
from topodiag.model.job import Job
from topodiag.model.layout import Layout
from topodiag.model.result import Case
from topodiag.placement.job_groups import PlacedJobs

SIZES = Layout(tp=8)
CYCLIC = tuple(f"n{rank % 2}" for rank in range(16))
BLOCK = tuple(f"n{rank // 8}" for rank in range(16))


def written(folder: Path, hosts: Sequence[str]) -> tuple[str, RankHosts]:
    """A hostfile of Slurm, and what it says."""
    path = folder / "hosts"
    path.write_text("".join(f"{host}\n" for host in hosts))
    return str(path), read_slurm_hostfile(open_blob(str(path)))


def costs(placed_jobs: PlacedJobs) -> dict[str, Cost]:
    return {finding.id: finding.cost for outcome in placed_jobs.outcomes for finding in outcome.findings}


def job(hosts: Sequence[str] = BLOCK) -> Job:
    """A job that names its groups and whose ranks ran on these hosts."""
    document = jobs.job(2, communicators=comms(SIZES, 16, ("tp", "dp")))
    seen: dict[str, int] = {}
    ranks = []
    for rank, host in zip(document.ranks, hosts, strict=True):
        gpu = seen.setdefault(host, 0)
        seen[host] += 1
        ranks.append(replace(rank, host=host, nvml_dev=gpu, cuda_dev=gpu, bus_id=jobs.bus_id(gpu)))
    return replace(document, ranks=tuple(ranks))


def test_a_hostfile_that_the_job_followed_is_silent(tmp_path: Path) -> None:
    _, layout = written(tmp_path, BLOCK)
    placed_jobs = place_jobs(Case(layouts=(layout,), jobs=(job(),)))
    assert placed_jobs.outcomes
    assert costs(placed_jobs) == {}


def test_ranks_that_ran_elsewhere_than_declared_are_named(tmp_path: Path) -> None:
    _, layout = written(tmp_path, BLOCK)
    placed_jobs = place_jobs(Case(layouts=(layout,), jobs=(job(CYCLIC),)))
    finding = next(
        finding for outcome in placed_jobs.outcomes for finding in outcome.findings if "declares" in finding.message
    )
    assert finding.id == "PLC006"
    assert finding.where.jobs == ("job",)


def test_a_hostfile_of_other_hosts_is_not_of_the_job(tmp_path: Path) -> None:
    _, layout = written(tmp_path, ("m0", "m1"))
    placed_jobs = place_jobs(Case(layouts=(layout,), jobs=(job(),)))
    assert placed_jobs.outcomes == place_jobs(Case(jobs=(job(),))).outcomes
    assert [(gap.what, NO_TALK in gap.why) for gap in placed_jobs.not_observed] == [(NOT_PLACED, True)]


def test_where_nobody_says_who_talks_to_whom_a_hostfile_is_not_judged(tmp_path: Path) -> None:
    _, layout = written(tmp_path, CYCLIC)
    placed_jobs = place_jobs(Case(layouts=(layout,), jobs=(jobs.job(2),)))
    assert placed_jobs.outcomes == ()


def test_of_two_hostfiles_nobody_knows_which_was_used(tmp_path: Path) -> None:
    _, layout = written(tmp_path, CYCLIC)
    outcomes = place_jobs(Case(jobs=(job(),))).outcomes
    assert place_jobs(Case(layouts=(layout, layout), jobs=(job(),))).outcomes == outcomes


def test_a_log_alone_is_judged_by_where_it_shows_the_ranks() -> None:
    """What `place audit` says of the log, with the lines that place the ranks; nothing where nobody says who talks."""
    logged = job(CYCLIC)
    placed_jobs = place_jobs(Case(jobs=(logged,)))
    findings = [finding for outcome in placed_jobs.outcomes for finding in outcome.findings]
    assert {"PLC001"} <= {finding.id for finding in findings}
    assert all(finding.where.jobs == (logged.name,) and finding.evidence for finding in findings)
    assert all(finding.cost.step_share is None for finding in findings)
    assert place_jobs(Case(jobs=(jobs.job(16),))).outcomes == ()
    assert not place_jobs(Case(jobs=(jobs.job(16),))).not_observed


@pytest.mark.parametrize("hosts", [BLOCK, CYCLIC])
def test_the_step_is_that_of_place_audit(hosts: Sequence[str], tmp_path: Path) -> None:
    """One model of the traffic: what a step waits for is the same number in both."""
    path, _ = written(tmp_path, hosts)
    (step,) = place_jobs(Case(jobs=(job(hosts),), sizes=SIZES)).steps
    audited, _ = audit_placement(PlaceOptions(slurm_hostfile=path, layout=SIZES))
    assert np.isclose(step.models[0].step_us, audited.step_us)
