"""RDMA is there, and its counters of traffic do not move while something communicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import compute_nics
from topodiag.model.devices import Nic
from topodiag.model.finding import Finding, Outcome
from topodiag.model.node import Node
from topodiag.model.provenance import Counter, Fact, Origin
from topodiag.words.units import fold_runs, in_s

TRAFFIC = frozenset({
    "port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets", "unicast_xmit_packets",
    "unicast_rcv_packets", "rx_write_requests", "rx_read_requests", "tx_bytes", "rx_bytes", "rdma_write_bytes",
    "rdma_read_bytes", "send_bytes", "recv_bytes", "rx_vport_rdma_unicast_bytes", "tx_vport_rdma_unicast_bytes",
})  # fmt: skip
"""Counters of RDMA traffic (sysfs counters and hw_counters, EFA's, mlx5's `ethtool -S`)."""

OF_KERNEL = frozenset({"tx_bytes", "rx_bytes"})
"""The same names are the kernel's own counters on an interface, where they count TCP and nothing of RDMA."""

TCP_BYTES = 1_000_000_000
"""Growth of an interface between two readings from which it carries a job's data: management stays far below."""

SETTINGS = frozenset({("NCCL_NET", "socket"), ("NCCL_IB_DISABLE", "1")})
"""Settings that send NCCL's traffic over TCP, their values in lower case."""

_INSIDE = ("veth", "docker", "br-", "cni", "flannel", "cali", "virbr", "lxc")


class RdmaUnused(NodeCheck, id="NET010"):
    """NET010: RDMA is configured and its counters do not move

    What it finds
        Two readings of the traffic counters of all RDMA devices are equal, and a setting keeps NCCL from RDMA. Without
        such a setting: info, also where an interface carries a lot over TCP meanwhile.

    Why it matters
        The traffic goes another way, as a rule over TCP: a tenth of the bandwidth or less. What was configured did not
        reach the process: an old container, another image, a variable that was not exported.

    Evidence it reads
        Two readings (`--sample`, or pasted before and after) of port_xmit_data, port_rcv_data and packets in
        /sys/class/infiniband, of EFA's hw_counters; bytes of the interfaces; NCCL's settings.

    When it stays silent
        One reading only: not applicable. Any of the counters moved: clean. In a captured bundle where nothing else
        moved: the node was at rest, or the job stayed on the node: clean. Counters that went back: unknown.

    How to confirm
        grep . /sys/class/infiniband/*/ports/1/counters/port_{xmit,rcv}_packets      before and after a request
        NCCL_DEBUG=INFO, and look for `Using network`

    How to fix
        Look at the environment of the running process (/proc/PID/environ), not at the file: start it anew after a
        change. Remove NCCL_NET=Socket and NCCL_IB_DISABLE=1.

    References
        Linux Documentation/ABI/stable/sysfs-class-infiniband; NCCL user guide, NCCL_NET, NCCL_IB_DISABLE.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        nics = compute_nics(judged)
        if not nics:
            return self.not_applicable(judged, "no RDMA NIC that carries the job's traffic")
        counters = {nic.name: _traffic(judged, nic) for nic in nics}
        read = {name: own for name, own in counters.items() if any(counter.later.known for counter in own)}
        if not read:
            return self.not_applicable(judged, "one reading of the traffic counters: `--sample` takes two")
        readings = [counter for counters in read.values() for counter in counters if counter.later.known]
        if any(counter.delta is None for counter in readings):
            return self.unknown(judged, "the counters went back between the readings (reset)")
        if any(counter.delta for counter in readings):
            return self.clean(judged, "RDMA traffic moved between the readings")
        interval = max(counter.interval_s for counter in readings)
        if not (_setting(judged) or _interface(judged)[0]) and (interval > 0 or len(read) < len(nics)):
            return self.clean(judged, "nothing else moved between the readings either: the node was at rest")
        return self.any_of(judged, [self._report(judged, list(read), readings, interval)])

    def _report(self, node: Node, nics: Sequence[str], readings: Sequence[Counter], interval: float) -> Finding:
        """NICs whose counters stood still, and what else moved or was set."""
        setting = _setting(node)
        instead, shown = setting or _interface(node)
        when = f"in {in_s(interval)}" if interval else "between the readings"
        return self.finding(
            self.where(node, nics=nics),
            "rdma unused",
            f"{fold_runs(nics)}: no RDMA traffic {when}"
            + (f", {instead}" if instead else ": if a job communicated, it went another way"),
            sure=setting is not None,
            observed=", ".join(f"{counter.name} +0" for counter in readings[:4]),
            evidence=[*shown, *(counter.later for counter in readings[:2])],
        )


def _traffic(node: Node, nic: Nic) -> list[Counter]:
    own = [nic.counters, *(port.counters for port in nic.ports)]
    counters = [counter for place in own for name, counter in place.items() if name in TRAFFIC]
    for device in node.netdevs:
        if device.name in nic.netdevs:
            counters += [counter for name, counter in device.counters.items() if name in TRAFFIC - OF_KERNEL]
    return counters


def _setting(node: Node) -> tuple[str, tuple[Fact[Any] | Origin | None, ...]] | None:
    """The setting that sends NCCL's traffic over TCP, where there is one."""
    for setting in node.settings:
        if (setting.name, setting.value.strip().lower()) in SETTINGS:
            return f"and {setting.name}={setting.value.strip()} is set", (setting.origin,)
    return None


def _interface(node: Node) -> tuple[str, tuple[Fact[Any] | Origin | None, ...]]:
    """The interface that carried a lot meanwhile; what stays on the host does not count."""
    for device in node.netdevs:
        for name in sorted(OF_KERNEL):
            counter = device.counters.get(name)
            grown = counter.delta if counter is not None else None
            outside = device.name != "lo" and not device.name.startswith(_INSIDE)
            if counter is not None and grown and grown >= TCP_BYTES and outside:
                return f"while {device.name} carried {grown / 1e9:.1f} GB over TCP", (counter.later,)
    return "", ()
