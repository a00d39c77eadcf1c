"""`rdma link show` and `rdma statistic show` of iproute2: state, interface and counters of each RDMA port.

    link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0
    link mlx5_0/1 rx_write_requests 12 out_of_sequence 41002 local_ack_timeout_err 2705

Older releases number the lines (`1/1: mlx5_0/1: state ...`), newer begin with `link`. The kernel says subnet and LID
of InfiniBand ports only (drivers/infiniband/core/nldev.c, fill_port_info), which tells the link layer.
"""

from __future__ import annotations

from topodiag.evidence.interface import Blob, Parsed, to_int
from topodiag.evidence.json_values import line_of, load, objects, opens_list
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Line, Page, RdmaRecord, RdmaSource
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_LINK = regex(r"(?:link|[0-9]{1,5}/[0-9]{1,5}:)\s+([^\s/]{1,64})/([0-9]{1,3}):?\s+(.*)\Z")
_NO_COUNTERS = {"ifindex", "port", "lmc", "subnet_prefix", "netdev_index"}
_MAX_PORTS = 4096


class RdmaLink(RdmaSource):
    """Ports from `rdma link show`, and their counters from `rdma statistic show`, with or without `-j`."""

    kind = "rdma-link"
    trust = 65

    def told(self, parsed: Parsed[RdmaRecord]) -> frozenset[Topic]:
        """Counters alone do not say which devices there are."""
        stated = any("state" in port.facts for record in parsed.records for port in record.ports.values())
        return super().told(parsed) if stated else frozenset()

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        if opens_list(blob.text):
            document, why = load(blob)
            if why:
                page.leave(Line(1, blob.text[:80]), why)
            for _, entry in objects(document, _MAX_PORTS):
                pairs = {key: str(cell)[:80] for key, cell in entry.items() if isinstance(cell, str | int)}
                quote = " ".join(f"{key} {cell}" for key, cell in list(pairs.items())[:12])
                name = pairs.get("ifname", "")
                _port(page, Line(line_of(blob.text, name), quote), name, pairs.get("port", ""), pairs)
            return parsed
        for line in page.lines():
            text = line.bare
            match = _LINK.match(text)
            if match:
                pieces = match[3].split()
                _port(page, line, match[1], match[2], dict(zip(pieces[::2], pieces[1::2], strict=False)))
            elif text and not text.startswith(("#", "$", "caps:")):
                page.leave(line, "not a line of rdma link")
        return parsed


def _port(page: Page[RdmaRecord], line: Line, device: str, place: str, pairs: dict[str, str]) -> None:
    name, number = words.device_name(device), to_int(place, low=0, high=MAX_PORT)
    if name is None or number is None:
        page.leave(line, "not a device and its port")
        return
    record = RdmaRecord(name, line.number)
    port = record.port(number, line.number)
    for key, cell in pairs.items():
        if key in words.PORT_KEYS:
            page.read(line, cell, port.facts, words.PORT_KEYS[key])
        elif key not in _NO_COUNTERS and (count := to_int(cell, low=0)) is not None:
            line.put(port.counters, key, count)
    if "subnet_prefix" in pairs or "lid" in pairs:
        line.put(port.facts, "link_layer", "InfiniBand")
    elif "netdev" in pairs:
        line.put(port.facts, "link_layer", "Ethernet")
    if port.facts or port.counters:
        page.parsed.records.append(record)
