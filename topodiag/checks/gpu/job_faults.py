"""GPUs whose faults a job's own output names."""

from __future__ import annotations

from topodiag.checks.shared.job.faults import FaultInLog


class GpuLostInLog(FaultInLog, id="GPU001"):
    """GPU001 by a job's output: NVML no longer reaches a GPU."""


class GpuMemoryInLog(FaultInLog, id="GPU002"):
    """GPU002 by a job's output: CUDA met an uncorrectable memory error."""


class NvlinkErrorInLog(FaultInLog, id="GPU003"):
    """GPU003 by a job's output: CUDA met an uncorrectable NVLink error."""
