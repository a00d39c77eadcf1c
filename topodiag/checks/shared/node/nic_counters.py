"""What each error counter of a NIC means and how much of it is a fault. Data; nic_errors.py decides."""

from __future__ import annotations

import re

from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Severity


@dataclass(frozen=True, slots=True)
class Limit:
    """What growth of a counter between two samples means. `per_flap` is how much one link flap adds (0: no flap)."""

    meaning: str
    severity: Severity
    cost: str
    fix: tuple[str, ...]
    confidence: Confidence = Confidence.HIGH
    per_flap: int = 0
    ethernet_only: bool = False


PRIORITY_DISCARDS = "rx_prio*_discards"
"""Stands for `rx_prio0_discards` to `rx_prio7_discards` of mlx5."""

_FLAP_COST = "while the link is down every ring through it stands still, and NCCL's retries last seconds"
_BAD_COST = "packets that arrive broken are sent again; a link that gets worse retrains or goes down"
_JAM_COST = "packets wait or are dropped at this port: the collectives run at the pace of the congested path"
_LOSS_COST = "a lost packet makes the sender repeat all that followed it: little loss costs much bandwidth"
_DEAD_COST = "a connection whose retries run out ends the job (NCCL reports completion status 12)"

_CABLE = (
    "Clean or swap the cable or transceiver of this port, and look at the other end's counters",
    "If the errors go on with another cable, try another switch port, then replace the NIC",
)
_CONGESTION = (
    "Look for the congested path: several flows on one uplink, or a slow receiver; adaptive routing spreads them",
)
_LOSSY = (
    "Check that PFC (on the priority in use) and ECN are on and equal at hosts and switches, and that NCCL_IB_TC"
    " puts the traffic on that priority",
    "If they are, look for a bad cable on the path: CRC errors on the switches",
)
_PEER = ("See which peer does not answer: its port, its node, or the path between",)

E, W = Severity.ERROR, Severity.WARNING
M = Confidence.MEDIUM


def _flap(meaning: str, severity: Severity, per_flap: int) -> Limit:
    return Limit(meaning, severity, _FLAP_COST, _CABLE, per_flap=per_flap)


def _bad(meaning: str) -> Limit:
    return Limit(meaning, W, _BAD_COST, _CABLE)


def _loss(meaning: str) -> Limit:
    return Limit(meaning, W, _LOSS_COST, _LOSSY, confidence=M, ethernet_only=True)


def _peer(meaning: str) -> Limit:
    return Limit(meaning, W, _DEAD_COST, _PEER, confidence=M)


LIMITS = {
    # InfiniBand port counters (Documentation/ABI/stable/sysfs-class-infiniband). Thresholds: growth of one, as node
    # health checks have it; error_thresholds of rdma-core speak of totals since nobody knows when.
    "link_downed": _flap("the link went down", E, 1),
    "link_error_recovery": _bad("the link recovered from errors"),
    "local_link_integrity_errors": _bad("local errors passed the link's own threshold"),
    "port_rcv_errors": _bad("packets arrived broken"),
    "excessive_buffer_overrun_errors": _bad("the receive buffer overran"),
    "symbol_error": _bad("symbol errors"),
    "port_xmit_discards": Limit("packets were discarded before sending", W, _JAM_COST, _CONGESTION),
    # The interface (Documentation/ABI/testing/sysfs-class-net). Up and down count one each in carrier_changes, so
    # carrier_down_count says the same: it is left out.
    "carrier_changes": _flap("the interface lost or regained its carrier", E, 2),
    "rx_crc_errors": _bad("frames arrived with CRC errors"),
    # mlx5 and bnxt_en, ethtool -S: the wire.
    "link_down_events_phy": _flap("the link went down", E, 1),
    "link_down_events": _flap("the link went down", E, 1),
    "rx_crc_errors_phy": _bad("frames arrived with CRC errors"),
    "rx_fcs_err_frames": _bad("frames arrived with CRC errors"),
    "rx_fec_uncorrectable_blocks": _bad("error correction failed"),
    "rx_icrc_encapsulated": _bad("RDMA packets arrived with CRC errors"),
    "module_unplug": _bad("the transceiver was unplugged"),
    "module_bus_stuck": _bad("the transceiver does not answer"),
    "module_high_temp": _bad("the transceiver is too hot"),
    # RoCE: loss and reordering (mlx5 and bnxt_re hw_counters, mlx5 ethtool -S). Adaptive routing and lossy InfiniBand
    # restarts count some of these too, so InfiniBand links are not judged by them.
    "out_of_sequence": _loss("packets arrived out of sequence"),
    "packet_seq_err": _loss("peers asked for packets again"),
    "roce_adp_retrans": _loss("packets were sent again"),
    "oos_drop_count": _loss("packets arrived out of sequence"),
    "seq_err_naks_rcvd": _loss("peers asked for packets again"),
    "to_retransmits": _loss("packets were sent again after a timeout"),
    "rx_roce_discards": _loss("received packets were discarded"),
    "rx_discards_phy": _loss("received packets were discarded for want of buffers"),
    PRIORITY_DISCARDS: _loss("received packets of a priority were discarded"),
    "tx_pause_storm_error_events": Limit("a pause storm: this host stopped its senders", W, _JAM_COST, _CONGESTION),
    # Any RDMA: peers that do not answer.
    "local_ack_timeout_err": _peer("acknowledgements did not come in time"),
    "req_transport_retries_exceeded": _peer("retries ran out"),
    "max_retry_exceeded": _peer("retries ran out"),
    # EFA (drivers/infiniband/hw/efa, hw_counters).
    "retrans_timeout_events": _peer("retransmission timeouts"),
    "impaired_remote_conn_events": _peer("connections to peers became impaired"),
    "unresponsive_remote_events": _peer("peers did not answer"),
    "rx_drops": Limit("received packets were dropped", W, _LOSS_COST, _PEER, confidence=M),
}
"""By the kernel's and the drivers' names. Others (traffic, congestion notifications, flushes) are not errors."""


def limit_name(name: str) -> str:
    """The name of a counter in LIMITS."""
    return PRIORITY_DISCARDS if re.fullmatch(r"rx_prio[0-7]_discards", name) else name
