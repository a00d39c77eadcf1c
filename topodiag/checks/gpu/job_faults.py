"""GPUs whose faults a job's own output names."""

from __future__ import annotations

from topodiag.checks.shared.job.faults import FaultInLog


class GpuLostInLog(FaultInLog):
    """GPU001 by a job's output: NVML no longer reaches a GPU."""

    id = "GPU001"


class GpuMemoryInLog(FaultInLog):
    """GPU002 by a job's output: CUDA met an uncorrectable memory error."""

    id = "GPU002"


class NvlinkErrorInLog(FaultInLog):
    """GPU003 by a job's output: CUDA met an uncorrectable NVLink error."""

    id = "GPU003"
