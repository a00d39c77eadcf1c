"""BEN001 by a test of RDMA: what `ib_write_bw` and its kin carried, against the rate of the port."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.lazy import regex
from topodiag.model.devices import Nic, NicPort
from topodiag.model.finding import Cost, Coverage, Finding, Outcome
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.units import in_gbps, percent

LOW = 0.5
"""A test below this share of the port's rate is low: of 64 KiB and more one queue pair carries nine tenths and more
between neighbours, and a PCIe link of the next lower generation or half the lanes still this much."""
_PLACE = regex(r"p\d{1,4}s\d{1,4}(?:f\d{1,3})?")
"""Where a device is, in the names that udev gives to RDMA devices (`rocep1s0f0`) and interfaces (`enp1s0f0np0`)."""


class RdmaTestLow(NodeCheck, id="BEN001"):
    """BEN001 by a test of RDMA: it carried less than half of what the port's rate allows."""

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        tested = [(nic, port) for nic in judged.nics for port in nic.ports if port.tested_gbps.value]
        if not tested:
            return self.not_applicable(judged, "no test of RDMA in the evidence")
        rated = [(nic, port, rate) for nic, port in tested if (rate := _rate(judged, nic, port)) is not None]
        if not rated:
            return self.unknown(judged, "the rate of the port that was tested is not in the evidence")
        low = [row for row in rated if row[1].tested_gbps.get(0.0) < LOW * row[2][0]]
        findings = [self._report(judged, nic, port, *rate) for nic, port, rate in low]
        return self.any_of(judged, findings, Coverage(len(rated), len(tested), "ports that were tested"))

    def _report(self, node: Node, nic: Nic, port: NicPort, rate: float, negotiated: Fact[float] | Fact[int]) -> Finding:
        """A port whose test fell short, its rate in Gb/s, and where that is said."""
        tested = port.tested_gbps.get(0.0)
        lost = 1 - tested / rate
        return self.finding(
            self.where(node, nics=[nic.name]),
            self.advice("rdma test", rate=in_gbps(rate)),
            f"{nic.name}: a test of RDMA carried {in_gbps(tested)} of {in_gbps(rate)}",
            observed=in_gbps(tested),
            cost=Cost(share=lost, text=f"{percent(lost)} of the port's bandwidth"),
            evidence=[port.tested_gbps, negotiated],
        )


def _rate(node: Node, nic: Nic, port: NicPort) -> tuple[float, Fact[float] | Fact[int]] | None:
    """The rate of a port in Gb/s, by itself or by the interface at the same place of the bus; None where not told."""
    if port.rate_gbps.value:
        return port.rate_gbps.value, port.rate_gbps
    place = _PLACE.search(nic.rdma_name or "")
    for other in node.netdevs:
        own = _PLACE.search(other.name)
        same = other.name in nic.netdevs or (place is not None and own is not None and own[0] == place[0])
        if same and other.speed_mbps.value:
            return other.speed_mbps.value / 1000, other.speed_mbps
    return None
