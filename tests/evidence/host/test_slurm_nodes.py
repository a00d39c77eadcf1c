"""Nodes that Slurm holds out of service: which of its outputs say it, with what reason, and which say nothing."""

from __future__ import annotations

import pytest

from topodiag.evidence.host.slurm_nodes import SlurmNodes
from topodiag.evidence.interface import Blob

SCONTROL = """\
NodeName=gpu-017 Arch=x86_64 CoresPerSocket=48
   Gres=gpu:h100:8
   OS=Linux 5.15.0-91-generic #101-Ubuntu SMP
   State={state} ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   CfgTRES=cpu=192,mem=2063000M,billing=192,gres/gpu=8
{reason}"""
LOW = "   Reason=gres/gpu count reported lower than configured (7 < 8) [slurm@2024-05-06T08:11:01]\n"
SINFO = """\
REASON               USER      TIMESTAMP           NODELIST
NHC: check_hw_ib:  N root      2024-05-06T08:11:01 gpu-[012,017]
Kill task failed     root      2024-05-05T01:11:01 gpu-003
"""
LONG = """\
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
gpu-001        1      gpu*        idle 192    2:48:2 206300        0      1     h100 none
gpu-002        1      gpu*     drained 192    2:48:2 206300        0      1     h100 NHC: check_hw_ib:  N
gpu-003        1      gpu*       down* 192    2:48:2 206300        0      1     h100 Not responding
"""


def read(text: str) -> list[tuple[str, str]]:
    source = SlurmNodes()
    assert source.recognises(text)
    return [
        (record.nodes, record.reason)
        for record in source.parse(Blob("slurm.txt", text.encode())).records
        if record.held
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            SCONTROL.format(state="IDLE+DRAIN", reason=LOW),
            [("gpu-017", "gres/gpu count reported lower than configured (7 < 8)")],
        ),
        (SINFO, [("gpu-[012,017]", "NHC: check_hw_ib:  N"), ("gpu-003", "Kill task failed")]),
        (LONG, [("gpu-002", "NHC: check_hw_ib:  N"), ("gpu-003", "Not responding")]),
    ],
    ids=["scontrol", "sinfo -R", "sinfo -N -l"],
)
def test_a_node_out_of_service_has_its_reason(text: str, told: list[tuple[str, str]]) -> None:
    assert read(text) == told


@pytest.mark.parametrize(
    "text",
    [
        SCONTROL.format(state="IDLE", reason=""),
        SCONTROL.format(state="MIXED", reason=LOW),
        "REASON               USER      TIMESTAMP           NODELIST\n",
        "\n".join(LONG.split("\n")[:2]),
    ],
    ids=["idle", "a reason left from before", "an empty table", "all idle"],
)
def test_a_node_in_service_says_nothing(text: str) -> None:
    assert read(text) == []


PLAIN = """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
h200*        up   infinite      2  down* ds-[043-044]
h200*        up   infinite      1  drain ds-017
h200*        up   infinite     61  alloc ds-[001-016,018-042]
"""


def test_a_plain_sinfo_names_the_nodes_that_do_not_answer_and_no_others() -> None:
    assert read(PLAIN) == [("ds-[043-044]", "not responding")]


def test_each_node_that_is_listed_has_its_state_and_generic_resources() -> None:
    text = SCONTROL.format(state="ALLOCATED", reason="").replace("   State", "   Gres=gpu:h100:8(S:0-1)\n   State")
    shown = SlurmNodes().parse(Blob("x", text.encode())).records
    assert [(state.nodes, state.state, state.gres) for state in shown] == [
        ("gpu-017", "ALLOCATED", "gpu:h100:8(S:0-1)")
    ]
    rows = SlurmNodes().parse(Blob("x", PLAIN.encode())).records
    assert [(row.nodes, row.state) for row in rows][1:] == [("ds-017", "drain"), ("ds-[001-016,018-042]", "alloc")]
