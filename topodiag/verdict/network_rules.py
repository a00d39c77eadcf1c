"""Conditions of rules on ports, RDMA, GPUDirect and plugins, and what contradicts their causes, by the name of the
rule."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.verdict import clearing
from topodiag.verdict.interface import Condition, Contradiction
from topodiag.verdict.job_errors import error_is, error_says
from topodiag.verdict.scene import Scene


def _is_of_this_node(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Whether what a node's own NICs bring about may follow: that a node lacks devices, or takes sockets, comes from
    no port of another node."""
    own = other.id in ("NIC005", "NET001") or (other.id == "NET007" and "Socket" in other.message)
    return not own or scene.same_node(cause, other)


def _was_in_use(cause: Finding, _: Finding, scene: Scene) -> bool:
    """A port that was down before the job began had no connection over it."""
    return not clearing.devices_left_out(scene, cause.where.nodes, cause.where.nics)


def _fails_by_name(_: Finding, other: Finding, scene: Scene) -> bool:
    return other.id != "JOB005" or error_is(other, scene, "plugin") or error_says(other, scene, "network", "NET/")


def _networks_meet(cause: Finding, other: Finding, scene: Scene) -> bool:
    if "differ" not in cause.message and cause.id != "NET007" and "some" not in cause.message:
        return False
    if other.id != "JOB005" or error_is(other, scene, "mismatch", "connect", "watchdog", "timeout"):
        return True
    return error_says(other, scene, "wrong type 3 != 4", "wrong type 4 != 3")


def _lists_the_devices(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    return clearing.devices_listed(scene, cause.where.nodes, cause.where.nics)


def _uses_rdma(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    return clearing.rdma_in_use(scene, cause.where.nodes)


def _uses_gpudirect(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    return clearing.gpudirect_in_use(scene, cause.where.nodes) if cause.id == "GDR001" else ()


HOLDS: Mapping[str, Condition] = {
    "PortDown": _is_of_this_node,
    "PortFails": _was_in_use,
    "PluginFailsJob": _fails_by_name,
    "NetworksMeet": _networks_meet,
}
CONTRADICTED_BY: Mapping[str, Contradiction] = {
    "PortDown": _lists_the_devices,
    "MissingNic": _lists_the_devices,
    "SocketsInUse": _uses_rdma,
    "NoGpuDirect": _uses_gpudirect,
}
