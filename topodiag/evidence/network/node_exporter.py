"""Metrics of Prometheus' node exporter: RDMA ports and their counters, `curl HOST:9100/metrics`.

    node_infiniband_link_downed_total{device="mlx5_0",port="1"} 3
    node_infiniband_rate_bytes_per_second{device="mlx5_0",port="1"} 5e+10

SOURCE: prometheus/node_exporter, collector/infiniband_linux.go: what the kernel shows in /sys/class/infiniband by other
names; data in bytes where the kernel counts words of four. All else that the exporter tells is left aside.

Counters of several ports, each line with the port's name before the counter's, as a loop of a shell prints them.

    mlx5_0 link_downed 0
    rdma2      link_down_events_phy: 41
    host7 mlx5_3/1: symbol_error = 8123

Only names of counters that are known, and two ports at least that call themselves so. Format: none,
`for d in ..; do ..; done`.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, to_int
from topodiag.evidence.metrics_text import Sample, samples_of, whole
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Line, Page, PortRecord, RdmaRecord, RdmaSource
from topodiag.lazy import regex
from topodiag.words.own_data import own_data

MAX_DEVICES = 1024
_PREFIX = "node_infiniband_"
_MARK = regex(r"^(?:[ \t]{0,16}node_infiniband_[a-z0-9_]{1,80}\{|# (?:HELP|TYPE) node_[a-z])", re.MULTILINE)
_WORD = 4
"""Bytes that port_rcv_data and port_xmit_data count as one."""
_TIMES = ("node_boot_time_seconds", "node_time_seconds")
_COUNTERS = "evidence/network/counters"


class NodeExporter(RdmaSource):
    """RDMA devices, their ports and counters from a scrape of the node exporter."""

    kind = "node-exporter"
    trust = 65
    a_piece = "the lines that somebody searched for look the same"

    def recognises(self, head: str) -> bool:
        return "node_" in head and _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed(partial=True)
        devices: dict[str, RdmaRecord] = {}
        instances: dict[str, int] = {}
        for sample in samples_of(blob, _PREFIX):
            instances.setdefault(sample.labels.get("instance", ""), sample.line)
            name = words.device_name(sample.labels.get("device", ""))
            number = to_int(sample.labels.get("port"), low=0, high=MAX_PORT)
            if name is None or (name not in devices and len(devices) >= MAX_DEVICES):
                parsed.leave(blob, sample.line, sample.text, "not a device name")
            elif number is not None:
                port = devices.setdefault(name, RdmaRecord(name, sample.line)).port(number, sample.line)
                _take(port, sample.name.removeprefix(_PREFIX).removesuffix("_total"), sample)
        if len(instances) > 1:
            why = f"metrics of {len(instances)} hosts in one text: give each host's own"
            parsed.leave(blob, sorted(instances.values())[1], "", why)
            return parsed
        parsed.records.extend(devices.values())
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        super().fill(blob, parsed, draft)
        times = {sample.name: sample for sample in samples_of(blob, "node_") if sample.name in _TIMES}
        if parsed.records and len(times) == len(_TIMES):
            boot, now = (times[name] for name in _TIMES)
            if 0 < boot.value < now.value < 1e11:
                draft.single("os").offer("uptime_s", now.value - boot.value, blob.origin(boot.line, boot.text))


def _take(port: PortRecord, name: str, sample: Sample) -> None:
    """Put one sample into its port. Of several scrapes in one text the last counts."""
    names = own_data(_COUNTERS)
    count = whole(sample.value)
    line = Line(sample.line, sample.text)
    if name == "state_id":
        port.facts["state"] = line.cell(words.port_state(f"{count}: id"))
    elif name == "physical_state_id":
        port.facts["phys_state"] = line.cell(words.phys_state(f"{count}: id"))
    elif name == "rate_bytes_per_second":
        port.facts["rate_gbps"] = line.cell(sample.value * 8 / 1e9 if 0 < sample.value < 1e13 else None)
    elif (counter := names["node-exporter"].get(name)) is not None and count is not None:
        port.counters[counter] = line.cell(count)
    elif (counter := names["node-exporter-bytes"].get(name)) is not None and count is not None:
        port.counters[counter] = line.cell(count // _WORD)


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


class CounterLines(RdmaSource):
    """Error counters by port."""

    kind = "counter-lines"
    trust = 50
    a_piece = "the counters that somebody asked for"

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed(partial=True)
        page = Page(blob, parsed)
        devices: dict[str, RdmaRecord] = {}
        for line in page.lines():
            match = _LINE.match(line.text[:MAX_LINE])
            if match is not None and (match[1] in devices or len(devices) < MAX_PORTS):
                record = devices.setdefault(match[1], RdmaRecord(match[1], line.number))
                name = _OTHERWISE.get(match[2], match[2])
                line.put(record.port(1, line.number).counters, name, to_int(match[3], low=0))
        parsed.records.extend(devices.values() if len(devices) > 1 else ())
        return parsed
