"""The network of a node: RoCE traffic in a class without flow control, by the settings of the interface or by its
counters, and RDMA whose counters of traffic do not move while something communicates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import compute_nics, is_efa
from topodiag.checks.shared.node.nic_counters import LIMITS, limit_name
from topodiag.model.devices import Counters, NetDev, Nic
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Counter, Fact, Origin
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_runs, in_s

LOSSES = frozenset(name for name, limit in LIMITS.items() if limit.ethernet_only) | {"local_ack_timeout_err"}
"""Counters that grow when RoCE packets are lost on the way."""

DSCP_PER_PRIORITY = 8
"""DSCP 8 to 15 ride priority 1, and so on, unless told otherwise (mlx5 default; mlnx_qos prints the table)."""

UNTAGGED = 0
"""The priority of a frame without a VLAN tag where the tag decides, and of traffic class 0."""

_PAUSES = frozenset(f"{way}_prio{priority}_pause" for way in ("rx", "tx") for priority in range(8))
_BYTES = {f"{way}_prio{priority}_bytes": priority for way in ("rx", "tx") for priority in range(8)}


class LossyClass(NodeCheck, id="NET009"):
    """NET009: RoCE traffic rides a class without flow control

    What it finds
        An interface without flow control (PFC) on any priority; traffic whose class leads to a priority that has none;
        RoCE packets that are lost while no pause frame moves; a class that was set for the kernel's queue pairs only.

    Why it matters
        RoCE repeats all that followed a lost packet: under load a loss of 0.1 % can take half of the bandwidth, and
        retries that run out end the job (completion status 12). Without load everything looks well: small messages
        and two nodes run at full speed, and large messages of several senders collapse.

    Evidence it reads
        `mlnx_qos -i IF` or `dcb pfc show dev IF` (trust, PFC, DSCP to priority); /sys/class/infiniband/DEVICE/tc/PORT/
        traffic_class; NCCL_IB_TC; two readings of `ethtool -S` (rx_prio*_pause, rx_prio*_bytes) and of hw_counters
        (out_of_sequence, packet_seq_err, local_ack_timeout_err, roce_adp_retrans).

    When it stays silent
        InfiniBand and EFA, which do not use PFC. Congestion marks (np_ecn_marked, rp_cnp_handled) without loss: that is
        ECN at work. The class of the traffic leads to a priority with flow control. Which class the traffic has is not
        in the evidence: only an interface without any flow control is reported. Without settings of the interface and
        without two readings of its counters: unknown.

    How to confirm
        mlnx_qos -i IF                                          which priority has PFC, which DSCP leads to it
        cat /sys/class/infiniband/DEVICE/tc/1/traffic_class
        ethtool -S IF | grep -E 'prio.*(bytes|pause|discards)'  twice, while the job runs: where the bytes go

    How to fix
        Give one priority flow control at every host and switch, and put NCCL's traffic on it with NCCL_IB_TC. The
        global traffic class of a device does not reach queue pairs that a GPU drives (GIN): for these set NCCL_IB_TC.

    References
        NVIDIA, Recommended Network Configuration Examples for RoCE; Linux mlx5 ethtool counters; NCCL user guide,
        NCCL_IB_TC; NCCL issue 2383 (traffic class and device-initiated queue pairs).
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        roce = [nic for nic in compute_nics(judged) if not is_efa(nic) and "InfiniBand" not in _layers(nic)]
        net_devs = [device for device in judged.netdevs if device.lossless.known and not _is_infiniband(judged, device)]
        if not (roce or net_devs):
            return self.not_applicable(judged, "no NIC with RoCE in the evidence")
        sampled = [nic for nic in roce if any(counter.delta is not None for counter in _pauses(judged, nic))]
        if not (net_devs or sampled):
            return self.unknown(judged, "neither PFC settings nor two readings of pause counters are in the evidence")
        settings = [self._by_settings(judged, device) for device in net_devs]
        return self.any_of(judged, [*settings, *(self._by_counters(judged, nic) for nic in sampled)])

    def _by_settings(self, node: Node, device: NetDev) -> Finding | None:
        lossless = device.lossless.value or ()
        if not lossless:
            trust = f", trust {device.trust.value}" if device.trust.value else ""
            meant = "PFC on the priority of the RoCE traffic, unless the network is lossy by design and has ECN"
            return self.finding(
                self.where(node, nics=(device.name,)),
                self.advice("lossy", meant=meant),
                f"{device.name}: no priority has flow control, so RoCE packets are dropped under load",
                observed=f"PFC off on all priorities{trust}",
                evidence=(device.lossless, device.trust),
            )
        wanted = f"flow control is on priority {', '.join(sorted(map(str, set(lossless))))}"
        classes = {port.traffic_class.value: port.traffic_class for nic in _nics_of(node, device) for port in nic.ports}
        classes.pop(None, None)
        setting = next((one for one in node.settings if one.name == "NCCL_IB_TC" and one.value.isdecimal()), None)
        shown = next(iter(classes.values())) if len(classes) == 1 else setting
        if shown is None or (isinstance(shown.value, str) and len(shown.value) > 3):
            return None
        tclass = int(shown.value or 0)
        priority = _priority(device, tclass)
        if priority is not None and priority not in lossless:
            return self.finding(
                self.where(node, nics=(device.name,)),
                self.advice("lossy", meant=wanted),
                f"{device.name}: traffic class {tclass} uses priority {priority}; {wanted}",
                observed=f"traffic class {tclass} (DSCP {tclass >> 2}), priority {priority}",
                evidence=(shown, device.lossless),
                confidence=Confidence.HIGH if device.trust.value == "dscp" else Confidence.MEDIUM,
            )
        if priority is None or setting is not None or UNTAGGED in lossless:
            return None
        # The global class is for the kernel's queue pairs: those that a GPU drives do not take it.
        return self.finding(
            self.where(node, nics=(device.name,)),
            self.advice("lossy", meant=f"NCCL_IB_TC={tclass} as well"),
            f"{device.name}: queue pairs that a GPU drives (GIN) do not take the global traffic class {tclass}, and"
            f" ride priority {UNTAGGED} without flow control unless NCCL_IB_TC is set",
            severity=Severity.INFO,
            observed=f"traffic class {tclass} for the kernel's queue pairs; {wanted}",
            evidence=(shown, device.lossless),
        )

    def _by_counters(self, node: Node, nic: Nic) -> Finding | None:
        """Packets are lost between two readings, and no pause frame was sent or received."""
        pauses = _pauses(node, nic)
        if not pauses or any(counter.delta != 0 for counter in pauses):
            return None
        devices = _interfaces_of(node, nic)
        of_devices = _grown(device.counters for device in devices)
        of_nic = _grown((nic.counters, *(port.counters for port in nic.ports)))
        grown = [counter for name, counter in (*of_nic, *of_devices) if limit_name(name) in LOSSES]
        if not grown:
            return None
        carried = {_BYTES[name]: counter for name, counter in of_devices if name in _BYTES}
        busiest = max(carried.items(), key=lambda pair: pair[1].delta or 0, default=None)
        rides = f"; the traffic uses priority {busiest[0]}" if busiest is not None else ""
        return self.finding(
            self.where(node, nics=(nic.name,)),
            self.advice("lossy", meant="flow control on the priority of the traffic: pause frames instead of loss"),
            f"{nic.name}: RoCE packets are lost and no pause frame moves{rides}",
            observed=", ".join(f"{counter.name} +{counter.delta}" for counter in grown[:4]) + "; all pause counters +0",
            evidence=(
                *(counter.later for counter in grown[:3]),
                pauses[0].later,
                busiest[1].later if busiest else None,
            ),
        )


def _grown(places: Iterable[Counters]) -> list[tuple[str, Counter]]:
    return [pair for counters in places for pair in counters.items() if pair[1].delta]


def _layers(nic: Nic) -> set[str]:
    return {port.link_layer.value for port in nic.ports if port.link_layer.value}


def _nics_of(node: Node, device: NetDev) -> tuple[Nic, ...]:
    """The RDMA devices of an interface; where nothing joins them, the ones that no interface is known of."""
    named = tuple(nic for nic in node.nics if device.name in _names(nic))
    return named or tuple(nic for nic in node.nics if nic.rdma_name and not _names(nic))


def _names(nic: Nic) -> set[str]:
    return {*nic.netdevs, *(port.netdev.value for port in nic.ports if port.netdev.value)}


def _is_infiniband(node: Node, device: NetDev) -> bool:
    layers = set().union(*(_layers(nic) for nic in _nics_of(node, device)))
    return device.kind.value == "infiniband" or "InfiniBand" in layers


def _priority(device: NetDev, tclass: int) -> int | None:
    """The priority of a traffic class; None where the table of the interface was cut before its DSCP."""
    if device.trust.value == "pcp":
        return UNTAGGED
    table = dict(pair.split(":") for pair in device.priority_of.value or ())
    code = tclass >> 2
    if not table:
        return code // DSCP_PER_PRIORITY
    priority = table.get(str(code))
    return int(priority) if priority is not None else None


def _interfaces_of(node: Node, nic: Nic) -> list[NetDev]:
    named = [device for device in node.netdevs if device.name in _names(nic)]
    single = len(compute_nics(node)) == 1 and len(node.netdevs) == 1
    return named or (list(node.netdevs) if single else [])


def _pauses(node: Node, nic: Nic) -> list[Counter]:
    counters = (pair for device in _interfaces_of(node, nic) for pair in device.counters.items())
    return [counter for name, counter in counters if name in _PAUSES]


TRAFFIC = frozenset(own_data("checks/network/names")["traffic"])
"""Counters of RDMA traffic."""

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
