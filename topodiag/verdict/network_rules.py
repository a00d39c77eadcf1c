"""Conditions of rules on ports, RDMA, GPUDirect and plugins, and what contradicts their causes, by the name of the
rule."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import regex
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


def _refuses_the_node(cause: Finding, other: Finding, _: Scene) -> bool:
    return "error code" in other.message and " by the word of " in cause.message


def _was_in_use(cause: Finding, _: Finding, scene: Scene) -> bool:
    """A port that was down before the job began had no connection over it."""
    return not clearing.devices_left_out(scene, cause.where.nodes, cause.where.nics)


def _is_of_mtu(cause: Finding, _: Finding, __: Scene) -> bool:
    return " MTU" in cause.message


def _fails_by_name(_: Finding, other: Finding, scene: Scene) -> bool:
    return other.id != "JOB005" or error_is(other, scene, "plugin") or error_says(other, scene, "network", "NET/")


def _networks_meet(cause: Finding, other: Finding, scene: Scene) -> bool:
    if "differ" not in cause.message and cause.id != "NET007" and "some" not in cause.message:
        return False
    if other.id != "JOB005" or error_is(other, scene, "mismatch", "connect", "watchdog", "timeout"):
        return True
    return error_says(other, scene, "wrong type 3 != 4", "wrong type 4 != 3")


def _finds_no_place(cause: Finding, other: Finding, _: Scene) -> bool:
    return "no node of the cluster has" in cause.message and "there is no place" in other.message


_BY_ITSELF = regex(r"\b(?:crashed|error code|an exception)\b")
"""How a program ends that met an error: nobody ended it from outside."""


def _refuses_memory(cause: Finding, other: Finding, _: Scene) -> bool:
    if "cannot be registered" not in cause.message:
        return False
    return other.id != "JOB009" or _BY_ITSELF.search(other.message) is not None


def _lists_the_devices(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    return clearing.devices_listed(scene, cause.where.nodes, cause.where.nics)


def _uses_rdma(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    return clearing.rdma_in_use(scene, cause.where.nodes)


def _uses_gpudirect(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    return clearing.gpudirect_in_use(scene, cause.where.nodes) if cause.id == "GDR001" else ()


HOLDS: Mapping[str, Condition] = {
    "PortDown": _is_of_this_node,
    "GateRefuses": _refuses_the_node,
    "PortFails": _was_in_use,
    "SmallPackets": _is_of_mtu,
    "PluginFailsJob": _fails_by_name,
    "NetworksMeet": _networks_meet,
    "AddressUnknown": _finds_no_place,
    "MemoryRefused": _refuses_memory,
}
CONTRADICTED_BY: Mapping[str, Contradiction] = {
    "PortDown": _lists_the_devices,
    "MissingNic": _lists_the_devices,
    "SocketsInUse": _uses_rdma,
    "NoGpuDirect": _uses_gpudirect,
}
