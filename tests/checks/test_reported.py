"""What schedulers and health checks say of a node: a finding of the check that judges it, never above what it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from topodiag.api import diagnose
from topodiag.checks.registry import Subject, ids_of
from topodiag.checks.reported import OF_JOBS, WORDS
from topodiag.evidence.host.reasons import PARTS

HEADER = "REASON               USER      TIMESTAMP           NODELIST\n"


def said(tmp_path: Path, text: str) -> dict[str, list[dict[str, Any]]]:
    file = tmp_path / "said.txt"
    file.write_text(text)
    made: dict[str, list[dict[str, Any]]] = json.loads(diagnose(str(file)).to_json())
    return made


def test_each_part_of_a_reason_has_words_and_each_word_a_check() -> None:
    assert {name for name, _ in PARTS} <= set(WORDS)
    assert {check for check, *_ in WORDS.values()} <= {*ids_of(Subject.NODE), *OF_JOBS}


@pytest.mark.parametrize(
    ("reason", "check"),
    [
        ("gres/gpu count reported lower than configured (7 < 8)", "GPU001"),
        ("NHC: check_hw_ib:  No IB port mlx5_4:1 is ACTIVE", "NIC001"),
        ("NHC: check_fs_mount:  /scratch not mounted", "HST006"),
        ("Xid 94 on GPU 2", "GPU002"),
    ],
)
def test_a_drained_node_has_the_fault_that_its_reason_names(tmp_path: Path, reason: str, check: str) -> None:
    text = f"NodeName=n1 Arch=x86_64\n   State=IDLE+DRAIN\n   Reason={reason} [root@2024-05-06T08:11:01]\n"
    [finding] = said(tmp_path, text)["findings"]
    assert (finding["id"], finding["severity"], finding["confidence"]) == (check, "error", "medium")
    assert reason in finding["message"]


def test_a_reason_without_a_part_is_listed_and_makes_no_finding(tmp_path: Path) -> None:
    text = f"{HEADER}Kill task failed     root      2024-05-05T01:11:01 n3\n"
    made = said(tmp_path, text)
    assert made["findings"] == []
    assert [line["text"] for line in made["unexplained"]] == ["n3 is out of service: Kill task failed"]


def test_maintenance_is_no_fault(tmp_path: Path) -> None:
    text = f"{HEADER}maintenance          root      2024-05-05T01:11:01 n3\n"
    made = said(tmp_path, text)
    assert (made["findings"], made["unexplained"]) == ([], [])


def test_devices_that_cannot_be_opened_are_told_beside_those_that_can(tmp_path: Path) -> None:
    device = "hca_id: mlx5_0\n        transport:                      InfiniBand (0)\n        phys_port_cnt:  1\n"
    assert [each["id"] for each in said(tmp_path, f"Failed to open device\n{device}")["findings"]] == ["HST002"]
    assert said(tmp_path, device)["findings"] == []


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        ('  XidCriticalError     True    Mon, 23 Jun 2025   Mon, 23 Jun 2025   {"95":true}   6e43', ["GPU002"]),
        ('  XidCriticalError     False   Mon, 23 Jun 2025   Mon, 23 Jun 2025   {}   6e43', []),
    ],
)  # fmt: skip
def test_the_condition_of_a_node_names_its_xid(tmp_path: Path, line: str, ids: list[str]) -> None:
    made = said(tmp_path, f"$ ulimit -l\nunlimited\n$ kubectl describe node n1 | grep Xid\n{line}\n")
    assert [each["id"] for each in made["findings"]] == ids


def test_faults_of_two_nodes_in_one_table_are_of_these_nodes(tmp_path: Path) -> None:
    rows = (
        "Xid 79 on GPU 2      root      2024-05-05T01:11:01 n3\n"
        "mlx5_3 is down       root      2024-05-05T01:11:01 n[4-5]\n"
    )
    made = said(tmp_path, HEADER + rows)["findings"]
    assert [(each["id"], each["where"]["nodes"]) for each in made] == [
        ("GPU001", ["n3"]),
        ("NIC001", ["n[4-5]"]),
    ]
