"""What a cause that ended a job costs, and since when, as far as the log shows it."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest

from tests.checks import jobs
from tests.tables import examples
from tests.verdict.pricing.machines import cause, finding
from topodiag.model.events import Progress
from topodiag.model.job import Event
from topodiag.model.provenance import Origin
from topodiag.model.result import Case
from topodiag.verdict.price import ended

ENDED_S = 1_766_280_682.0
"""When the first line about the end stands: 2025-12-21 01:31:22."""
MISSING = "100 %: no step ran after 2025-12-21 01:31:22 (the log's own clock)"
STOPPED = "100 %: the job stopped"


@pytest.mark.parametrize(
    ("world", "steps_until", "said"),
    [
        pytest.param(True, None, MISSING, id="the ranks had met"),
        pytest.param(True, ENDED_S - 60, MISSING, id="its last step stands before the end"),
        pytest.param(True, nan, MISSING, id="its steps have no clock"),
        pytest.param(True, ENDED_S + 60, STOPPED, id="a later run of the same log went on"),
        pytest.param(False, ENDED_S - 60, MISSING, id="steps, and nothing of NCCL's"),
        pytest.param(False, None, STOPPED, id="no step was seen that could be missed"),
    ],
)
def test_steps_are_missed_only_where_some_were_seen_and_none_came_later(
    *, world: bool, steps_until: float | None, said: str
) -> None:
    end = Event("ended", "out of memory", "", ts=ENDED_S, level="APP")
    job = jobs.job(1, events=(end,))
    if not world:
        job = replace(job, communicators=(), ranks=(), processes=())
    if steps_until is not None:
        lines = Origin("job.log", 1), Origin("job.log", 9)
        job = replace(job, progress=(Progress("progress.step", 9, *lines, last_s=steps_until),))
    price = ended(cause(finding("JOB009")), Case(jobs=(job,)))
    assert (price.share, price.text) == (1.0, said)


@examples("dated_s", "said")
def test_no_step_ran_since_a_watchdog_began_to_wait(dated_s: float | None, said: str) -> None:
    wait = Event("watchdog", "caught", "", ts=dated_s, level="APP", details={"ran_ms": "1800000"})
    end = Event("ended", "Sending process 1 closing signal SIGTERM", "", ts=ENDED_S + 1801, level="APP")
    price = ended(cause(finding("JOB006")), Case(jobs=(jobs.job(1, events=(wait, end)),)))
    assert price.text == said


@pytest.mark.parametrize(("inferred", "said"), [(False, "100 %: no step ran"), (True, STOPPED)])
def test_no_step_ran_where_init_is_seen_and_not_its_end(*, inferred: bool, said: str) -> None:
    job = jobs.job(1, events=(Event("ended", "out of memory", "", ts=ENDED_S, level="APP"),))
    started = replace(job.communicators[0], completed=np.zeros(8, bool), inferred=inferred)
    assert ended(cause(finding("JOB009")), Case(jobs=(replace(job, communicators=(started,)),))).text == said
