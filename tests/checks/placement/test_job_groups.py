"""PLC001, PLC002, PLC004: groups of ranks against NVLink domains and rails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.checks import jobs
from topodiag.checks.placement.job_groups import ExpertGroupSplit, PeersOnOtherRails, TensorGroupSplit
from topodiag.model.dimensions import Role
from topodiag.model.finding import Confidence, Severity, Status
from topodiag.model.job import Communicator, Job


def group(index: int, ranks: list[int], role: Role = Role.TP, sure: Confidence = Confidence.HIGH) -> Communicator:
    at = tuple(dict.fromkeys(f"n{rank // 8}" for rank in ranks))
    return Communicator(
        index,
        len(ranks),
        np.array(ranks, np.int64),
        role=role,
        role_sure=sure,
        parent=0,
        color=index,
        nodes=len(at),
        hosts=at,
        graphs={host: (jobs.graph(channels=8, bw_inter=24.0),) for host in at},
        origin=jobs.origin(f"Init START color {index}"),
    )


def scattered(sure: Confidence = Confidence.HIGH, role: Role = Role.TP) -> Job:
    groups = [group(1 + at, list(range(at, 16, 2)), role, sure) for at in range(2)]
    return jobs.job(communicators=groups)


def packed(role: Role = Role.TP) -> Job:
    return jobs.job(communicators=[group(1 + at, list(range(8 * at, 8 * at + 8)), role) for at in range(2)])


def test_tensor_groups_over_two_nodes_are_one_error_with_their_cost() -> None:
    outcome = TensorGroupSplit().judge(scattered())
    [finding] = outcome.findings
    assert finding.severity is Severity.ERROR
    assert finding.message == "2 of 2 TP groups of 8 ranks span 2 NVLink domains"
    assert finding.where.nodes == ("n0", "n1")
    assert finding.where.ranks == tuple(range(16))
    assert finding.cost.gbs_lost == pytest.approx(370.8 - 192)
    assert finding.evidence


def test_packed_tensor_groups_are_clean() -> None:
    assert TensorGroupSplit().judge(packed()).status is Status.CLEAN


def test_the_root_that_groups_were_split_from_is_no_group_itself() -> None:
    job = packed()
    root = replace(job.communicators[0], role=Role.TP, name="TP")
    assert TensorGroupSplit().judge(replace(job, communicators=(root, *job.communicators[1:]))).status is Status.CLEAN


def test_an_inferred_role_makes_a_warning_and_a_guess_makes_nothing() -> None:
    [finding] = TensorGroupSplit().judge(scattered(Confidence.MEDIUM)).findings
    assert finding.severity is Severity.WARNING
    assert TensorGroupSplit().judge(scattered(Confidence.LOW)).status is Status.UNKNOWN


def test_without_tensor_groups_there_is_nothing_to_judge() -> None:
    assert TensorGroupSplit().judge(jobs.job()).status is Status.NOT_APPLICABLE


def test_a_group_larger_than_a_node_is_only_told() -> None:
    [finding] = TensorGroupSplit().judge(jobs.job(communicators=[group(1, list(range(16)))])).findings
    assert finding.severity is Severity.INFO
    assert "a domain has 8 GPUs" in finding.message


def test_trays_joined_by_nvlink_are_one_domain() -> None:
    rows = [*jobs.healthy_rows(2, 8, 8), {"rank": 0, "peer": 8, "via": "P2P/MNNVL"}]
    outcome = TensorGroupSplit().judge(replace(scattered(), connections=jobs.job(rows=rows).connections))
    assert outcome.status is Status.CLEAN


def test_an_expert_group_is_told_only_where_it_would_fit() -> None:
    [finding] = ExpertGroupSplit().judge(scattered(role=Role.EP)).findings
    assert finding.severity is Severity.WARNING
    large = jobs.job(communicators=[group(1, list(range(16)), Role.EP)])
    assert ExpertGroupSplit().judge(large).status is Status.CLEAN


def rails(*groups: list[int], **changes: Any) -> Any:
    made = [group(1 + at, ranks, Role.DP) for at, ranks in enumerate(groups)]
    return PeersOnOtherRails().judge(jobs.job(communicators=made, **changes))


def test_peers_on_the_same_gpu_position_share_a_rail() -> None:
    assert rails([0, 8], [1, 9]).status is Status.CLEAN


def test_peers_on_other_gpu_positions_are_told() -> None:
    [finding] = rails([0, 9], [1, 8]).findings
    assert "2 of 2 DP groups" in finding.message
    assert "n0: GPU 0; n1: GPU 1" in finding.observed


def test_there_are_no_rails_with_fewer_nics_than_gpus() -> None:
    assert rails([0, 9], nics=4).status is Status.NOT_APPLICABLE
    assert rails([0, 9], nics=0).status is Status.UNKNOWN


def test_groups_that_use_all_positions_of_a_node_cross_no_rail() -> None:
    assert rails(list(range(16))).status is Status.CLEAN
