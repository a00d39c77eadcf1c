"""The scheduler that a job's evidence shows, and commands in its words."""

import pytest

from tests.checks import jobs
from topodiag.checks.shared.job.schedulers import commands_of, scheduler_of

COMMANDS = ("sacct -j JOB --format=JobID,State", "kubectl describe pod POD", "dmesg -T")


@pytest.mark.parametrize(
    ("texts", "commands"),
    [
        pytest.param(("TERM_RUNLIMIT: job killed",), ("bhist -l JOB", "dmesg -T"), id="LSF"),
        pytest.param(("   Exit Status:        271 (Linux Signal 15)",), ("qstat -xf JOB", "dmesg -T"), id="PBS"),
        pytest.param(("\t(0) Abnormal termination (signal 9)",), ("condor_history -l JOB", "dmesg -T"), id="HTCondor"),
        pytest.param(("Reason: OOMKilled",), ("kubectl describe pod POD", "dmesg -T"), id="Kubernetes"),
        pytest.param(("srun: error: n0: task 0: Killed",), (COMMANDS[0], "dmesg -T"), id="Slurm"),
        pytest.param(("Killed",), COMMANDS, id="none"),
        pytest.param(("srun: error: n0: task 0: Killed", "Reason: OOMKilled"), COMMANDS, id="two"),
    ],
)
def test_commands_are_those_of_the_one_scheduler_that_shows_itself(
    texts: tuple[str, ...], commands: tuple[str, ...]
) -> None:
    job = jobs.job(1, events=[jobs.event("ended", text, "") for text in texts])
    assert commands_of(scheduler_of(job), COMMANDS) == commands
