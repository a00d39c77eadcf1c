"""Metrics of Prometheus' node exporter: RDMA ports and their counters, `curl HOST:9100/metrics`.

    node_infiniband_link_downed_total{device="mlx5_0",port="1"} 3
    node_infiniband_rate_bytes_per_second{device="mlx5_0",port="1"} 5e+10

SOURCE: prometheus/node_exporter, collector/infiniband_linux.go: what the kernel shows in /sys/class/infiniband by other
names; data in bytes where the kernel counts words of four. All else that the exporter tells is left aside.

Counters of several ports, each line with the port's name before the counter's, as a loop of a shell prints them.

    mlx5_0 link_downed 0
    rdma2      link_down_events_phy: 41
    host7 mlx5_3/1: symbol_error = 8123

Only names of counters that are known, and ports that call themselves so. Format: none, `for d in ..; do ..; done`.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.metrics_text import Sample, samples_of, whole
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Cell, Cells, Page, RdmaRecord, Value, fill_rdma
from topodiag.lazy import regex
from topodiag.model.provenance import MAX_QUOTE
from topodiag.model.topics import Topic

MAX_DEVICES = 1024
_PREFIX = "node_infiniband_"
_MARK = regex(r"^(?:[ \t]{0,16}node_infiniband_[a-z0-9_]{1,80}\{|# (?:HELP|TYPE) node_[a-z])", re.MULTILINE)
_WORD = 4
"""Bytes that port_rcv_data and port_xmit_data count as one."""
_COUNTERS = {
    "duplicate_requests_packets": "duplicate_request",
    "excessive_buffer_overrun_errors": "excessive_buffer_overrun_errors",
    "implied_nak_seq_errors": "implied_nak_seq_err",
    "link_downed": "link_downed",
    "link_error_recovery": "link_error_recovery",
    "local_ack_timeout_errors": "local_ack_timeout_err",
    "local_link_integrity_errors": "local_link_integrity_errors",
    "np_cnp_packets_sent": "np_cnp_sent",
    "np_ecn_marked_roce_packets_received": "np_ecn_marked_roce_packets",
    "out_of_buffer_drops": "out_of_buffer",
    "out_of_sequence_packets_received": "out_of_sequence",
    "packet_sequence_errors": "packet_seq_err",
    "port_constraint_errors_received": "port_rcv_constraint_errors",
    "port_constraint_errors_transmitted": "port_xmit_constraint_errors",
    "port_discards_transmitted": "port_xmit_discards",
    "port_errors_received": "port_rcv_errors",
    "port_packets_received": "port_rcv_packets",
    "port_packets_transmitted": "port_xmit_packets",
    "port_receive_remote_physical_errors": "port_rcv_remote_physical_errors",
    "port_receive_switch_relay_errors": "port_rcv_switch_relay_errors",
    "port_transmit_wait": "port_xmit_wait",
    "rnr_nak_retry_packets_received": "rnr_nak_retry_err",
    "roce_adp_retransmits": "roce_adp_retrans",
    "rp_cnp_packets_handled": "rp_cnp_handled",
    "rx_icrc_encapsulated_errors": "rx_icrc_encapsulated",
    "symbol_error": "symbol_error",
    "vl15_dropped": "VL15_dropped",
}
_TIMES = ("node_boot_time_seconds", "node_time_seconds")
_DATA = {
    "port_data_received_bytes_total": "port_rcv_data",
    "port_data_transmitted_bytes_total": "port_xmit_data",
}


class NodeExporter(Source[RdmaRecord]):
    """RDMA devices, their ports and counters from a scrape of the node exporter."""

    kind = "node-exporter"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 65
    a_piece = "the lines that somebody searched for look the same"

    def recognises(self, head: str) -> bool:
        return "node_" in head and _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed(partial=True)
        parsed.lines = blob.data.count(b"\n") + 1
        devices: dict[str, RdmaRecord] = {}
        instances: dict[str, int] = {}
        for sample in samples_of(blob, _PREFIX):
            instances.setdefault(sample.labels.get("instance", ""), sample.line)
            name = words.device_name(sample.labels.get("device", ""))
            if name is None or (name not in devices and len(devices) >= MAX_DEVICES):
                parsed.leave(blob, sample.line, sample.text, "not a device name")
                continue
            _take(devices.setdefault(name, RdmaRecord(name, sample.line)), sample)
        if len(instances) > 1:
            why = f"metrics of {len(instances)} hosts in one text: give each host's own"
            parsed.leave(blob, sorted(instances.values())[1], "", why)
            return parsed
        parsed.records.extend(devices.values())
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)
        times = {each.name: each for each in samples_of(blob, "node_") if each.name in _TIMES}
        if parsed.records and len(times) == len(_TIMES):
            boot, now = (times[name] for name in _TIMES)
            if 0 < boot.value < now.value < 1e11:
                draft.single("os").offer("uptime_s", now.value - boot.value, blob.origin(boot.line, boot.text))


def _take(device: RdmaRecord, sample: Sample) -> None:
    """Put one sample into its device. Of several scrapes in one text the last counts."""
    name, labels = sample.name.removeprefix(_PREFIX), sample.labels
    if name == "info":
        _put(device.facts, "hca_type", words.value_text(labels.get("hca_type", "")), sample)
        _put(device.facts, "firmware", words.firmware(labels.get("firmware_version", "")), sample)
        _put(device.facts, "board_id", words.value_text(labels.get("board_id", "")), sample)
        return
    number = labels.get("port", "")
    if not re.fullmatch("[0-9]{1,3}", number) or int(number) > MAX_PORT:
        return
    port = device.port(int(number), sample.line)
    count = whole(sample.value)
    if name == "state_id":
        _put(port.facts, "state", words.port_state(f"{count}: id"), sample)
    elif name == "physical_state_id":
        _put(port.facts, "phys_state", words.phys_state(f"{count}: id"), sample)
    elif name == "rate_bytes_per_second":
        _put(port.facts, "rate_gbps", sample.value * 8 / 1e9 if 0 < sample.value < 1e13 else None, sample)
    elif name in _DATA and count is not None:
        _put(port.counters, _DATA[name], count // _WORD, sample)
    elif (counter := _COUNTERS.get(name.removesuffix("_total"))) is not None:
        _put(port.counters, counter, count, sample)


def _put(cells: Cells, name: str, value: Value | None, sample: Sample) -> None:
    if value is not None:
        cells[name] = Cell(value, sample.line, sample.text[:MAX_QUOTE])


MAX_LINE = 300
MAX_PORTS = 1024
_LINE_COUNTERS = (
    r"link_down(?:ed|_events(?:_phy)?)|link_error_recovery|symbol_errors?|port_rcv_errors|local_link_integrity_errors"
    r"|excessive_buffer_overrun_errors|port_xmit_discards|rx_(?:crc|symbol)_err(?:ors)?(?:_phy)?|rx_icrc_encapsulated"
    r"|out_of_sequence|packet_seq_err|local_ack_timeout_err|rx_discards_phy|req_transport_retries_exceeded"
)
_LINE = regex(
    r"\s{0,20}(mlx[45]_\d{1,3}|rdma\d{1,3}|ib\d{1,3}|hsn\d{1,2}|en[opsx]\w{1,12}|eth\d{1,3})(?:/(?:port)?\d{1,2}|:\d)?[\s:|,=-]{1,20}"
    rf"(?:port ?\d{{1,2}}[\s:|]{{1,8}})?({_LINE_COUNTERS})[\s:|,=]{{1,20}}(\d{{1,18}})\s{{0,20}}$"
)
_OTHERWISE = {"symbol_errors": "symbol_error", "rx_crc_err_phy": "rx_crc_errors_phy"}


class CounterLines(Source[RdmaRecord]):
    """Error counters by port."""

    kind = "counter-lines"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 50
    a_piece = "the counters that somebody asked for"

    def recognises(self, head: str) -> bool:
        if not re.search(_LINE_COUNTERS, head):
            return False
        return len({found[1] for line in head.split("\n") if (found := _LINE.match(line[:MAX_LINE]))}) > 1

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed(partial=True)
        page = Page(blob, parsed)
        devices: dict[str, RdmaRecord] = {}
        for line in page.lines():
            found = _LINE.match(line.text[:MAX_LINE])
            if found is not None and (found[1] in devices or len(devices) < MAX_PORTS):
                record = devices.setdefault(found[1], RdmaRecord(found[1], line.number))
                name = _OTHERWISE.get(found[2], found[2])
                line.put(record.port(1, line.number).counters, name, to_int(found[3], low=0))
        parsed.records.extend(devices.values())
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)
