"""`rdma link show` of iproute2: state and interface of each RDMA port, as text or as JSON (`-j`).

Older releases number the lines (`1/1: mlx5_0/1: state ...`), newer begin with `link`. The kernel says subnet and LID
of InfiniBand ports only (drivers/infiniband/core/nldev.c, fill_port_info), which tells the link layer.

`rdma statistic show` of iproute2: the hw_counters of RDMA ports.

    link mlx5_0/1 rx_write_requests 12 out_of_sequence 41002 local_ack_timeout_err 2705

With `-p` the counters stand on lines of their own below the port. Format: iproute2, rdma/stat.c.

`amd-smi static --nic` and `amd-smi metric --nic`: AMD's own adapters with their ports, as indented fields.

    NIC: 4
        PORTS:
            PORT_0:
                NETDEV: enp229s0
                CARRIER: 0
                LINK_STATE: down
        RDMA_DEVICES:
            RDMA_DEVICE_0:
                NAME: rocep229s0
                PORT_0:
                    NETDEV: enp229s0
                    PORT_NUM: 1
                    STATE: DOWN

Format: ROCm 7, amdsmi_commands.py (static_nic).
"""

from __future__ import annotations

import json
import re
from typing import Any

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.json_values import opens_list
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Line, Page, PortRecord, RdmaRecord, Target, fill_rdma
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
_LINK = regex(r"(?:link|[0-9]{1,5}/[0-9]{1,5}:)\s+([^\s/]{1,64})/([0-9]{1,3}):?\s+(.*)\Z")
_MARK = regex(
    r"^[ \t>|]*(?:link|[0-9]{1,5}/[0-9]{1,5}:)[ \t]+[^\s/]{1,64}/[0-9]{1,3}:?[ \t]+"
    r"(?:(?:subnet_prefix|lid|sm_lid|lmc) \S{1,40} )*state [A-Z_]{2,20} physical_state ",
    re.MULTILINE,
)

_FIELDS: dict[str, Target] = {
    "state": ("state", words.port_state),
    "physical_state": ("phys_state", words.phys_state),
    "lid": ("lid", words.lid),
    "sm_lid": ("sm_lid", words.lid),
    "netdev": ("netdev", words.device_name),
}


class RdmaLink(Source[RdmaRecord]):
    """Ports from `rdma link show`, with or without `-j`."""

    kind = "rdma-link"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 65

    def recognises(self, head: str) -> bool:
        start = head[:64].lstrip()
        as_json = start.startswith(("[{", "[ {", "[\n")) and '"ifname"' in head and '"physical_state"' in head
        return as_json or _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        if opens_list(blob.text):
            _parse_json(page)
            return parsed
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            match = _LINK.match(text)
            if match:
                pieces = match[3].split()
                pairs = dict(zip(pieces[::2], pieces[1::2], strict=False))
                _port(page, line, (match[1], int(match[2])), pairs)
            elif text and not text.startswith(("#", "$", "caps:")):
                page.leave(line, "not a line of rdma link")
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)


def _port(page: Page[RdmaRecord], line: Line, place: tuple[str, int], pairs: dict[str, str]) -> None:
    device, number = place
    name = words.device_name(device)
    if name is None or not 0 <= number <= MAX_PORT:
        page.leave(line, "not a device and its port")
        return
    record = RdmaRecord(name, line.number)
    page.parsed.records.append(record)
    port = record.port(number, line.number)
    for key, target in _FIELDS.items():
        if key in pairs:
            page.read(line, pairs[key], port.facts, target)
    if "subnet_prefix" in pairs or "lid" in pairs:
        line.put(port.facts, "link_layer", "InfiniBand")
    elif "netdev" in pairs:
        line.put(port.facts, "link_layer", "Ethernet")


def _parse_json(page: Page[RdmaRecord]) -> None:
    text = page.blob.text
    page.parsed.lines = text.count("\n") + 1
    try:
        entries: Any = json.loads(text)
    except (ValueError, RecursionError):
        page.leave(Line(1, text[:80]), "not JSON, or cut off")
        return
    lines = _lines_of_names(text)
    for place, entry in enumerate(entries if isinstance(entries, list) else []):
        line = lines[place] if place < len(lines) else Line(1, "")
        number = entry.get("port") if isinstance(entry, dict) else None
        if not isinstance(number, int) or isinstance(number, bool) or not isinstance(entry.get("ifname"), str):
            page.leave(line, "not a port of rdma link")
            continue
        pairs = {key: str(cell)[:80] for key, cell in entry.items() if isinstance(cell, str | int)}
        quote = " ".join(f"{key} {cell}" for key, cell in list(pairs.items())[:12])
        _port(page, Line(line.number, quote), (entry["ifname"], number), pairs)


def _lines_of_names(text: str) -> list[Line]:
    """The line of each `"ifname"`: one per entry, in their order."""
    return [
        Line(number, line)
        for number, line in enumerate(text.split("\n"), start=1)
        for _ in range(line.count('"ifname"'))
    ]


_PORT = regex(r"(?:link|[0-9]{1,5}/[0-9]{1,5}:)\s{1,8}([^\s/]{1,64})/([0-9]{1,3}):?(?:\s{1,8}(.*))?\Z")
_NAME = regex(r"[a-z][a-z0-9_]{2,60}")
_COUNT = regex(r"[0-9]{1,20}")
_RDMA_STATISTIC_MARK = regex(
    r"^[ \t>|]{0,20}(?:link|[0-9]{1,5}/[0-9]{1,5}:)[ \t]{1,8}[^\s/]{1,64}/[0-9]{1,3}:?\s{1,12}"
    r"(?:rx_|tx_|out_of_|active_|resp_|req_|rnr_|duplicate_|packet_|local_ack)[a-z0-9_]{1,50} [0-9]",
    re.MULTILINE,
)


class RdmaStatistic(Source[RdmaRecord]):
    """Counters of ports from `rdma statistic show`."""

    kind = "rdma-statistic"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 65

    def recognises(self, head: str) -> bool:
        return _RDMA_STATISTIC_MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed(partial=True)
        page = Page(blob, parsed)
        port: PortRecord | None = None
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            head = _PORT.match(text)
            name = words.device_name(head[1]) if head else None
            if head and name and int(head[2]) <= MAX_PORT:
                record = RdmaRecord(name, line.number)
                parsed.records.append(record)
                port = record.port(int(head[2]), line.number)
                _take(line, port, head[3] or "")
            elif port is not None and not _take(line, port, text) and text:
                port = None
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)


def _take(line: Line, port: PortRecord, text: str) -> bool:
    """Keep the counters of a line of names and numbers; False where it is no such line."""
    cells = text.split()
    pairs = list(zip(cells[::2], cells[1::2], strict=False))
    if not pairs or not all(_NAME.fullmatch(name) and _COUNT.fullmatch(count) for name, count in pairs):
        return False
    for name, count in pairs:
        line.put(port.counters, name, int(count))
    return True


_NIC_MARK = regex(
    r"^[ \t>|]{0,20}NIC: \d{1,3}[ \t]*$(?=[\s\S]{0,8000}^[ \t>|]{1,40}RDMA_DEVICES:[ \t]*$)", re.MULTILINE
)
_FIELD = regex(r"([A-Z][A-Z0-9_ ]{0,40}):(?: {1,4}(\S.{0,120}))?\s*\Z")
_NIC_FIELDS: dict[str, Target] = {"STATE": ("state", words.port_state), "NETDEV": ("netdev", words.device_name)}


class AmdSmiNic(Source[RdmaRecord]):
    """RDMA devices of AMD's adapters, with the state of their ports."""

    kind = "amd-smi-nic"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 65

    def recognises(self, head: str) -> bool:
        return _NIC_MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        record: RdmaRecord | None = None
        port: dict[str, Line] = {}
        within = False
        for line in page.lines():
            found = _FIELD.match(line.text.strip(" \t>|"))
            if found is None:
                continue
            name, value = found[1], found[2]
            if value is None or name == "NIC":
                _close(page, record, port)
                port = {}
                within = name.startswith("RDMA_DEVICE") or (within and name.startswith("PORT_"))
                record = record if name.startswith("PORT_") and within else None
            elif within and name == "NAME" and (device := words.device_name(value)) is not None:
                record = RdmaRecord(device, line.number)
                parsed.records.append(record)
            elif record is not None and name in ("PORT_NUM", *_NIC_FIELDS):
                port[name] = Line(line.number, value)
        _close(page, record, port)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)


def _close(page: Page[RdmaRecord], record: RdmaRecord | None, told: dict[str, Line]) -> None:
    """Keep what was told of a port of this device."""
    number = to_int(told["PORT_NUM"].text, low=0, high=MAX_PORT) if "PORT_NUM" in told else None
    if record is None or number is None:
        return
    port = record.port(number, told["PORT_NUM"].number)
    told["PORT_NUM"].put(port.facts, "link_layer", "Ethernet")
    for key, target in _NIC_FIELDS.items():
        if key in told:
            page.read(told[key], told[key].text, port.facts, target)
