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

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import MAX_LINE, to_int
from topodiag.evidence.metrics_text import samples_of, whole
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.words.own_data import own_data, patterns

_PREFIX = "node_infiniband_"
_WORD = 4
"""Bytes that port_rcv_data and port_xmit_data count as one."""
_TIMES = ("node_boot_time_seconds", "node_time_seconds")
MAX_DEVICES = 1024


class NodeExporter(OfPage):
    """RDMA devices, their ports and counters from a scrape of the node exporter. Of several scrapes in one text the
    last counts."""

    def read_page(self, page: Page) -> None:
        page.parsed.partial = True
        samples = list(samples_of(page.blob, "node_"))
        instances: dict[str, int] = {}
        last = {}
        for sample in samples:
            name = sample.labels.get("device", "")
            number = to_int(sample.labels.get("port"), low=0, high=words.MAX_PORT)
            if sample.name in _TIMES:
                last[sample.name, "", 0] = sample
            elif sample.name.startswith(_PREFIX):
                instances.setdefault(sample.labels.get("instance", ""), sample.line)
                if words.device_name(name) is None:
                    page.parsed.leave(page.blob, sample.line, sample.text, "not a device name")
                elif number is not None:
                    last[sample.name, name, number] = sample
        if len(instances) > 1:
            why = f"metrics of {len(instances)} hosts in one text: give each host's own"
            page.parsed.leave(page.blob, sorted(instances.values())[1], "", why)
            return
        for (metric, name, number), sample in last.items():
            if name:
                port = page.draft.nic(rdma=name).child("port", number)
                _offer(Line(page, sample.line, sample.text), port, metric, sample.value)
        boot, now = (last.get((name, "", 0)) for name in _TIMES)
        if page.parsed.records and boot is not None and now is not None and 0 < boot.value < now.value < 1e11:
            Line(page, boot.line, boot.text).offer(page.draft.single("os"), "uptime_s", now.value - boot.value)


def _offer(line: Line, port: Entity, metric: str, value: float) -> None:
    names, count = own_data("evidence/network/counters"), whole(value)
    name = metric.removeprefix(_PREFIX).removesuffix("_total")
    if name == "state_id":
        line.offer(port, "state", words.port_state(f"{count}: id"))
    elif name == "physical_state_id":
        line.offer(port, "phys_state", words.phys_state(f"{count}: id"))
    elif name == "rate_bytes_per_second":
        line.offer(port, "rate_gbps", value * 8 / 1e9 if 0 < value < 1e13 else None)
    elif (counter := names["node-exporter"].get(name)) is not None:
        line.count(port, counter, count)
    elif (counter := names["node-exporter-bytes"].get(name)) is not None and count is not None:
        line.count(port, counter, count // _WORD)


_LIKE = patterns("evidence/network/lines", "counters")
_OTHERWISE = {"symbol_errors": "symbol_error", "rx_crc_err_phy": "rx_crc_errors_phy"}


class CounterLines(OfPage):
    """Error counters by port."""

    def read_page(self, page: Page) -> None:
        page.parsed.partial = True
        rows = [(line, match) for line in page.lines() if (match := _LIKE["line"].match(line.text[:MAX_LINE]))]
        if 1 < len({match[1] for _, match in rows}) <= MAX_DEVICES:
            for line, match in rows:
                port = page.draft.nic(rdma=match[1]).child("port", 1)
                line.count(port, _OTHERWISE.get(match[2], match[2]), to_int(match[3], low=0))
