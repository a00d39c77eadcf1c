"""`ibstatus`: one block of sysfs' words for each RDMA port, as the script of infiniband-diags prints them.

    Infiniband device 'mlx5_0' port 1 status:
            state:           4: ACTIVE
            rate:            400 Gb/sec (4X NDR)

Read by its keys, so that indentation and quoting marks of a paste do not matter. The default GID is left aside: it
says neither its index nor its type.
"""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Line, Page, PortRecord, RdmaRecord, Target, fill_rdma
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
"""What a quotation or a table puts before a line."""

_HEADER = regex(r"Infiniband device '([^'\n]{1,64})' port ([0-9]{1,3}) status:")
_FIELD = regex(r"(default gid|base lid|sm lid|state|phys state|rate|link_layer):(.*)\Z")

_FIELDS: dict[str, Target] = {
    "base lid": ("lid", words.lid),
    "sm lid": ("sm_lid", words.lid),
    "state": ("state", words.port_state),
    "phys state": ("phys_state", words.phys_state),
    "link_layer": ("link_layer", words.link_layer),
}


class Ibstatus(Source[RdmaRecord]):
    """RDMA ports from `ibstatus`."""

    kind = "ibstatus"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 70

    def recognises(self, head: str) -> bool:
        return _HEADER.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        devices: dict[str, RdmaRecord] = {}
        port: PortRecord | None = None
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            header = _HEADER.match(text)
            if header:
                port = None
                name, number = words.device_name(header[1]), int(header[2])
                if name is None or number > MAX_PORT:
                    page.leave(line, "not a port of a device")
                    continue
                if name not in devices:
                    devices[name] = RdmaRecord(name, line.number)
                    parsed.records.append(devices[name])
                port = devices[name].port(number, line.number)
            elif text and not text.startswith(("#", "$")):
                _read(page, line, text, port)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)


def _read(page: Page[RdmaRecord], line: Line, text: str, port: PortRecord | None) -> None:
    match = _FIELD.match(text)
    if match is None or port is None:
        page.leave(line, "not a line of ibstatus" if match is None else "no port named before it")
    elif match[1] in _FIELDS:
        page.read(line, match[2], port.facts, _FIELDS[match[1]])
    elif match[1] == "rate":
        rate = words.sysfs_rate(match[2])
        page.read(line, match[2], port.facts, ("rate_gbps", lambda _: rate.gbps if rate else None))
        if rate is not None and rate.lanes is not None:
            line.put(port.facts, "lanes", rate.lanes)
        if rate is not None and rate.name is not None:
            line.put(port.facts, "speed_name", rate.name)
