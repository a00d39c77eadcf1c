"""Labels and conditions of a node in Kubernetes whose value is a verdict of some agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pasted import loud, said
from topodiag.evidence.host.node_verdicts import verdicts

ROWS = "dcgm.level.3=ERR_2024-11-04_09.32.03UTC_page_retirement_row_remap.0"
NODE = """\
Name:               w7
Roles:              worker
Labels:             beta.kubernetes.io/arch=amd64
                    {}
                    kubernetes.io/hostname=w7
                    nvidia.com/gpu.count=8
"""
CONDITIONS = """\
Name:               w7
Conditions:
  Type                      Status  LastHeartbeatTime                 Reason               Message
  ----                      ------  -----------------                 ------               -------
  MemoryPressure            False   Tue, 09 Jun 2026 15:35:57 +0000   KubeletHasSufficientMemory   it has
  Ready                     True    Tue, 09 Jun 2026 15:35:57 +0000   KubeletReady         kubelet is ready
  {}
"""


@pytest.mark.parametrize(
    ("label", "check"),
    [
        (f"autopilot.ibm.com/{ROWS}", "GPU002"),
        ("example.org/gpu-health.dcgm=FAIL_memory.3", "GPU002"),
        ("health.example.org/nvlink=DEGRADED_nvlink.2", "NVL001"),
        ("monitor.example.com/gpu=unhealthy-ecc-uncorrectable", "GPU002"),
        ("agent.io/gpu-check=failed.row_remap_pending", "GPU002"),
    ],
)
def test_a_label_whose_value_is_a_verdict_names_its_part(tmp_path: Path, label: str, check: str) -> None:
    assert loud(tmp_path, NODE.format(label)) == [check]
    key, value = label.split("=")
    assert loud(tmp_path, f'kind: Node\nmetadata:\n  labels:\n    {key}: "{value}"\n    other.io/a: b\n') == [check]
    row = f"w7   Ready   worker   12d   v1.29.3   beta.kubernetes.io/arch=amd64,{label},kubernetes.io/hostname=w7\n"
    assert loud(tmp_path, f"NAME STATUS ROLES AGE VERSION LABELS\n{row}") == [check]


def test_a_verdict_without_a_part_is_listed_and_the_node_not_called_healthy(tmp_path: Path) -> None:
    made = said(tmp_path, NODE.format("autopilot.ibm.com/gpuhealth=EVICT"))
    assert made["findings"] == []
    assert "gpuhealth=EVICT" in str(made["verdict"])


@pytest.mark.parametrize(
    "label",
    [
        "autopilot.ibm.com/gpuhealth=PASS",
        "autopilot.ibm.com/gpuhealth=OK",
        "autopilot.ibm.com/gpuhealth=TESTING",
        "autopilot.ibm.com/dcgm.level.3=PASS_2024-11-04_09.32.03UTC",
        "example.org/gpu-health=healthy",
        "example.org/gpu-health=errata-fixed",
        "nvidia.com/cuda.driver.major=550",
        "nvidia.com/gpu.family=hopper",
        "nvidia.com/gpu-driver-upgrade-state=upgrade-failed",
        "nvidia.com/gpu-driver-upgrade-state=drain-required",
        "nvidia.com/mig.config.state=failed",
        "example.org/gpu-on-failure-policy=evict",
        "nvidia.com/gpu.ecc-errors-remapped=0",
        "example.org/team=failsafe",
        "example.org/team=bad-row_remap",
    ],
)
def test_good_verdicts_versions_counts_and_policies_are_silent(tmp_path: Path, label: str) -> None:
    text = NODE.format(label)
    assert not any(any(verdicts(line)) for line in text.split("\n"))
    assert loud(tmp_path, text) == []


@pytest.mark.parametrize(
    "line",
    [
        f"$ kubectl get nodes -l autopilot.ibm.com/{ROWS}",
        f"The label autopilot.ibm.com/{ROWS} says which GPU it was.",
        f"kubectl label node w7 autopilot.ibm.com/{ROWS}",
        f"# autopilot.ibm.com/{ROWS}",
    ],
)
def test_commands_and_sentences_about_a_label_are_none(line: str) -> None:
    assert list(verdicts(line)) == []


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("AcceleratedHardwareReady  False  NvidiaXID48Error  GPU 3 has a double bit ECC error", "gpu-memory"),
        ("GpuHealthy  False  Tue, 09 Jun 2026 15:35:57 +0000  RowRemap  GPU 1 row remap failure", "gpu-memory"),
        ("NvlinkFailure  True  Tue, 09 Jun 2026 15:35:57 +0000  Inactive  NVLink 4 of GPU 2 is down", "nvlink"),
        ("AcceleratedHardwareReady  False  DCGMHealthCode122  DCGM detected issues with error code 122", ""),
        ("AcceleratedHardwareReady  False  Crc  GPU 3 NvLink link 9 CRC error counter is 2 since driver load", ""),
    ],
)
def test_a_condition_with_a_bad_value_names_its_part_where_it_tells_one(condition: str, part: str) -> None:
    assert [found for found, _ in verdicts(f"  {condition}")] == [part]


@pytest.mark.parametrize(
    "condition",
    [
        "AcceleratedHardwareReady  True  Healthy  GPUs have no ECC error",
        "NvlinkFailure  False  Tue, 09 Jun 2026 15:35:57 +0000  NoFault  NVLinks are up",
        "GpuUnhealthy  False  Tue, 09 Jun 2026 15:35:57 +0000  NoFault  all GPUs answer",
        "Ready  False  Tue, 09 Jun 2026 15:35:57 +0000  KubeletNotReady  container runtime is down",
        "GpuWatch  True  Tue, 09 Jun 2026 15:35:57 +0000  Watching  ECC errors are watched",
    ],
)
def test_good_conditions_are_silent(tmp_path: Path, condition: str) -> None:
    assert list(verdicts(f"  {condition}")) == []
    assert loud(tmp_path, CONDITIONS.format(condition)) == []


@given(st.text(max_size=300) | st.text(alphabet='a.b/c=ERR_:" Labels,gpu', max_size=300))
def test_any_line_is_read_or_left(line: str) -> None:
    for part, words in verdicts(line):
        assert isinstance(part, str)
        assert words
