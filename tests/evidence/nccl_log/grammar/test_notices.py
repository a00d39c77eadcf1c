"""JOB009 by notices that a machine will be taken, of any cloud; and texts that only speak of such notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud


@pytest.mark.parametrize(
    "text",
    [
        "Dec 17 16:03:58Z worker1 start-worker 2024/12/17 16:03:58 GCP Metadata Service says termination is imminent\n",
        "Dec 17 16:04:09 worker1 systemd-logind[812]: Power key pressed short.\n",
        "2025-09-18 08:20:01 [ERROR] agent: Received spot termination notice, leaving in 120 s\n",
        "2025-09-18 08:20:01 agent[2211]: spot interruption notice received, time 2025-09-18T08:22:00Z\n",
        '{"DocumentIncarnation":1,"Events":[{"EventId":"A1","EventType":"Preempt","ResourceType":"VirtualMachine",'
        '"Resources":["vmss_3"],"EventStatus":"Scheduled","NotBefore":"Mon, 19 Sep 2025 18:29:47 GMT"}]}\n',
        "2025-02-11 03:12:09 node-7 agent: maintenance-event = TERMINATE_ON_HOST_MAINTENANCE\n",
        "W0211 03:12:09 controller.go:88] node/gpu-7 is being preempted\n",
        "2025-04-04 11:00:01 WARNING trainer: this VM will be reclaimed in 30 seconds\n",
    ],
)
def test_a_machine_that_is_announced_to_go_takes_the_job_with_it(text: str, tmp_path: Path) -> None:
    finding = first_of(tmp_path, f"[rank0]: step 10 loss 2.31\n{text}")
    assert finding["id"] == "JOB009"


@pytest.mark.parametrize(
    "text",
    [
        "INFO agent: listening for spot interruption notices\n",
        "INFO agent: no preemption notice received\n",
        "Started the monitor: a termination notice gives the job 30 seconds\n",
        "If the instance is about to be preempted, a checkpoint is written first.\n",
        "# the node will be terminated two minutes after the notice\n",
        "2025-02-11 03:12:09 node-7 agent: maintenance-event = MIGRATE_ON_HOST_MAINTENANCE\n",
        "2025-02-11 03:12:09 node-7 agent: maintenance-event = NONE\n",
        '{"DocumentIncarnation":2,"Events":[]}\n',
        "instance/preempted: FALSE\n",
        "terminationGracePeriodSeconds: 30\n",
        "Received SIGUSR1 signal, writing a checkpoint\n",
        "y.  Fixed a bug that caused a terminating signal received during `echo' to run\n",
        "The `Http2Session` instance will be shut down automatically when the `'goaway'`\n",
    ],
)
def test_who_listens_explains_or_hears_nothing_of_it_loses_no_machine(text: str, tmp_path: Path) -> None:
    assert not loud(tmp_path, f"[rank0]: step 10 loss 2.31\n{text}")
