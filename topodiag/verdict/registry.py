"""The rules, one line each, in the order in which they are tried for a finding that several could explain: what stands
higher can produce what stands lower, hardly ever the reverse (hardware, port, fabric, limits, settings, library,
application, placement)."""

from __future__ import annotations

from topodiag.verdict import gpu_rules, job_rules, network_rules, placement_rules, setting_rules
from topodiag.verdict.interface import Rule

RULES: tuple[type[Rule], ...] = (
    job_rules.AbsentAtMeeting,
    job_rules.NumbersDoNotFit,
    job_rules.ErrorKeepsRanksOut,
    gpu_rules.FirmwareStartsNoGpu,
    gpu_rules.LostGpuOnItsNode,
    gpu_rules.FabricNotReady,
    gpu_rules.DomainsApart,
    gpu_rules.LinksThatTheKernelReported,
    gpu_rules.GpuErrorEndsLinks,
    gpu_rules.GpuAsksForReset,
    gpu_rules.FaultMetByTest,
    gpu_rules.SlowGpuForAll,
    gpu_rules.GpuFaultHangsTools,
    gpu_rules.GpuFaultEndsJob,
    gpu_rules.HungDriverHoldsJob,
    gpu_rules.StorageHoldsJob,
    gpu_rules.FabricFailsJob,
    gpu_rules.FewerLinksOnItsNode,
    gpu_rules.FewerLinksForAll,
    gpu_rules.SlowPcieOnItsPath,
    gpu_rules.SlowPcieForAll,
    setting_rules.SettingLeavesOut,
    network_rules.PortDown,
    network_rules.GateRefuses,
    network_rules.PortFails,
    network_rules.MissingNic,
    network_rules.SlowPort,
    network_rules.PartSlowsGroups,
    network_rules.NicsUnlike,
    network_rules.SmallPackets,
    network_rules.LossyClass,
    network_rules.PortDrops,
    setting_rules.LimitReached,
    setting_rules.MemoryRemoved,
    network_rules.MemoryRefused,
    setting_rules.ContainerSeesLess,
    setting_rules.DriverRefuses,
    setting_rules.FileRefused,
    setting_rules.FileDecides,
    gpu_rules.AcsOrIommu,
    setting_rules.SettingDoesIt,
    network_rules.PluginMissing,
    network_rules.PluginFailsJob,
    job_rules.VersionsMixed,
    setting_rules.SettingsDiffer,
    job_rules.GpuShared,
    job_rules.RanksUneven,
    network_rules.SocketsInUse,
    network_rules.NetworksMeet,
    network_rules.WrongInterface,
    network_rules.AddressUnknown,
    network_rules.SlowInterface,
    network_rules.FarNic,
    network_rules.NoGpuDirect,
    network_rules.TransportAndChannels,
    network_rules.LinksInUse,
    job_rules.LibraryFault,
    job_rules.ResultsAreWrong,
    job_rules.ProcessDied,
    network_rules.RdmaErrorEndsJob,
    gpu_rules.ClocksHeldDown,
    job_rules.LateArriver,
    job_rules.RankBehind,
    job_rules.ErrorEndsInit,
    placement_rules.RankOrder,
    placement_rules.PlacementCosts,
)

Relations = tuple[tuple[tuple[str, ...], str], ...]
"""Ids of checks, and how one leads to the other."""


def relations_of(check_id: str) -> tuple[Relations, Relations]:
    """What the fault of a check can lead to, and what can explain it: ids and the reason of each rule."""
    leads_to = tuple((rule.leads_to, rule.because) for rule in RULES if check_id in rule.causes)
    explained_by = tuple((rule.causes, rule.because) for rule in RULES if check_id in rule.leads_to)
    return leads_to, explained_by
