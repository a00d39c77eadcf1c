"""Clocks of hosts, and the words for faults that a job's lines name."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.checks import jobs
from tests.checks.excerpts import HEAD, result_of
from tests.checks.wanted import expect
from topodiag.checks.job.end.errors import FirstError
from topodiag.checks.registry import Subject, check_of, ids_of
from topodiag.checks.shared.job.faults import FaultInLog, named_faults
from topodiag.checks.shared.job.first_error import first_error
from topodiag.checks.shared.job.text import clocks_of
from topodiag.model.job import Job

NOON = 1.7e9


def job_with(ends: Mapping[str, float], errors: Mapping[str, float]) -> Job:
    """Two nodes whose members completed init at these seconds, with an error of CUDA on each at those."""
    events = [jobs.event("cuda", "Cuda failure 'unknown error'", host, ts=NOON + at) for host, at in errors.items()]
    job = jobs.job(2, events=events)
    world = job.communicators[0]
    host_of = {rank.rank: rank.host for rank in job.ranks}
    times = [NOON + ends[host_of[int(rank)]] if ends else np.nan for rank in world.ranks]
    return replace(job, communicators=(replace(world, completed_ts=np.array(times)), *job.communicators[1:]))


def test_the_order_is_that_of_the_common_clock() -> None:
    job = job_with({"n0": 0.0, "n1": 62.0}, {"n0": 100.0, "n1": 110.0})
    first = first_error(job)
    assert first.host == "n1"
    expect(FirstError().judge(job), observed="*the clock of n1 is 1 min 2 s ahead*", confidence="HIGH")


def test_clocks_that_agree_within_the_barrier_are_left_alone() -> None:
    assert clocks_of(job_with({"n0": 0.0, "n1": 1.5}, {})).ahead_s == {"n0": 0.0, "n1": 0.0}


def test_without_a_common_init_the_finding_says_that_the_clocks_were_not_compared() -> None:
    outcome = FirstError().judge(job_with({}, {"n0": 100.0, "n1": 110.0}))
    expect(outcome, observed="*no common init compares the clocks of n0 and n1*", confidence="MEDIUM")


# --- where a check of the links looks, in a job whose log shows no machine; what lines show alone is in tests/outputs


def test_without_a_print_it_is_said_where_a_narrow_link_is_seen() -> None:
    (outcome,) = (outcome for outcome in result_of(HEAD + "Using network IB\n").outcomes if outcome.check == "PCI001")
    assert "topodiag scan" in outcome.why


# --- the words for faults that a job's lines name, and who may find each


OF_CHECKS = {check.id for check in (check_of(Subject.JOB, name) for name in ids_of(Subject.JOB))
             if issubclass(check, FaultInLog)}  # fmt: skip


def test_each_entry_is_of_a_check_and_each_check_has_an_entry() -> None:
    assert {check for check, _ in named_faults()} == OF_CHECKS


@pytest.mark.parametrize("named", named_faults(), ids=" ".join)
def test_an_entry_says_what_is_wrong_and_what_to_do(named: tuple[str, str]) -> None:
    message, advice = named_faults()[named]
    assert message[0].islower() or message.startswith("CUDA")
    assert not any(text.endswith(".") for text in (message, advice.expected, advice.cost.text, *advice.fix))
    assert advice.fix
    assert all(len(step) < 400 and "  " not in step for step in advice.fix)
