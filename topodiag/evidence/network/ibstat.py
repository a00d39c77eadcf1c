"""`ibstat`: RDMA devices and their ports as rdma-core's infiniband-diags prints them.

Two forms: all devices with indentation (`CA 'mlx5_0'`), and one port without (`CA: 'mlx5_0'`, from `ibstat CA PORT`).
Both are read by their keys, so that indentation and quoting marks of a paste do not matter. `Effective speed` is
left aside: `Rate` is what the other sources call the port's rate. Format: infiniband-diags/ibstat.c.

`ibstatus`: one block of sysfs' words for each RDMA port, as the script of infiniband-diags prints them.

    Infiniband device 'mlx5_0' port 1 status:
            state:           4: ACTIVE
            rate:            400 Gb/sec (4X NDR)

Read by its keys, so that indentation and quoting marks of a paste do not matter. The default GID is left aside: it
says neither its index nor its type.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import (
    MAX_PORT,
    Line,
    Page,
    PortRecord,
    RdmaRecord,
    RdmaSource,
    Target,
    fill_rdma,
)
from topodiag.evidence.sentences import report
from topodiag.lazy import regex
from topodiag.model.events import Trust
from topodiag.model.provenance import NotObserved
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
"""What a quotation or a table puts before a line."""

_HEADER = regex(r"^[ \t>|]*CA:? '[^'\n]{1,64}'[ \t]*$", re.MULTILINE)
_BODY = regex(r"^[ \t>|]*(?:CA type:|Physical state:|State: )", re.MULTILINE)
_CA = regex(r"CA:?\s+'([^']{1,64})'\s*\Z")
_PORT = regex(r"[Pp]ort ([0-9]{1,3}):\s*\Z")
_FIELD = regex(r"([A-Za-z][A-Za-z ]{0,40}):(.*)\Z")
_FAILED = regex(r"(?:stat of IB device '([^']{1,64})' failed|'([^']{1,64})' IB device can't be found)")

_NO_FILES = "No such file or directory"
"""umad_get_ca of a device whose name sysfs listed: it went away, beside others that are there."""

_DEVICE_FIELDS: dict[str, Target] = {
    "CA type": ("hca_type", words.value_text),
    "Firmware version": ("firmware", words.firmware),
    "Node GUID": ("node_guid", words.guid),
    "System image GUID": ("sys_image_guid", words.guid),
}
_PORT_FIELDS: dict[str, Target] = {
    "State": ("state", words.port_state),
    "Physical state": ("phys_state", words.phys_state),
    "Base lid": ("lid", words.lid),
    "SM lid": ("sm_lid", words.lid),
    "Port GUID": ("guid", words.guid),
    "Link layer": ("link_layer", words.link_layer),
}
_NUMBERED = "Port"
"""In the place of the first field of a port, where lines with the numbers of ports stand."""
_OTHER_FIELDS = frozenset({"Number of ports", "Hardware version", "Effective speed", "LMC", "Capability mask"})


class Ibstat(Source[RdmaRecord]):
    """RDMA devices from `ibstat`."""

    kind = "ibstat"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 70

    def recognises(self, head: str) -> bool:
        return _HEADER.search(head) is not None and _BODY.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        device: RdmaRecord | None = None
        port: PortRecord | None = None
        opens = ""
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            header, numbered = _CA.match(text), _PORT.match(text)
            if header:
                name = words.device_name(header[1])
                device, port, opens = RdmaRecord(name or "", line.number), None, ""
                parsed.records.append(device)
                if name is None:
                    page.leave(line, "not a device name")
            elif numbered and device is not None:
                number = int(numbered[1])
                # Facts of a port that cannot be must not fall to the port before it.
                port = device.port(number, line.number) if number <= MAX_PORT else PortRecord(number, line.number)
                opens = _NUMBERED
            elif text and not text.startswith(("#", "$")):
                key = text.partition(":")[0]
                if device is not None and _begins_port(key, opens):
                    # `ibstat | grep State` leaves no line with the number: ports stand in their order.
                    port, opens = device.port(len(device.ports) + 1, line.number), key
                _read(page, line, device, port)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)
        for left in parsed.unread:
            failed = _FAILED.search(left.text)
            if failed:
                draft.missing.append(NotObserved(f"ibstat of {failed[1] or failed[2]}", left.text))
            if parsed.records and failed and failed[1] and _NO_FILES in left.text and left.line:
                said = left.text.strip()[:200]
                draft.reports.append(report("nic.missing", said, blob, left.line, left.text, trust=Trust.PERSON))


def _begins_port(key: str, opens: str) -> bool:
    """Whether a field is the first of a port without its number: `opens` is the field that began the last one, "" where
    the device has none yet."""
    return (key in _PORT_FIELDS or key == "Rate") and opens in {"", key}


def _read(page: Page[RdmaRecord], line: Line, device: RdmaRecord | None, port: PortRecord | None) -> None:
    text = line.text.strip(_MARGIN)
    if _FAILED.search(text):
        page.leave(line, "the tool could not read this device")
        return
    match = _FIELD.match(text)
    key, cell = (match[1], match[2]) if match else ("", "")
    if key in _OTHER_FIELDS:
        return
    if key in _DEVICE_FIELDS and device is not None:
        page.read(line, cell, device.facts, _DEVICE_FIELDS[key])
    elif key in _PORT_FIELDS and port is not None:
        page.read(line, cell, port.facts, _PORT_FIELDS[key])
    elif key == "Rate" and port is not None:
        rate = words.ibstat_rate(cell)
        page.read(line, cell, port.facts, ("rate_gbps", lambda _: rate.gbps if rate else None))
        if rate is not None and rate.name is not None:
            line.put(port.facts, "speed_name", rate.name)
    else:
        known = key in _DEVICE_FIELDS or key in _PORT_FIELDS or key == "Rate"
        page.leave(line, "no device or port named before it" if known else "not a line of ibstat")


_STATUS_HEADER = regex(r"Infiniband device '([^'\n]{1,64})' port ([0-9]{1,3}) status:")
_STATUS_FIELD = regex(r"(default gid|base lid|sm lid|state|phys state|rate|link_layer):(.*)\Z")

_FIELDS: dict[str, Target] = {
    "base lid": ("lid", words.lid),
    "sm lid": ("sm_lid", words.lid),
    "state": ("state", words.port_state),
    "phys state": ("phys_state", words.phys_state),
    "link_layer": ("link_layer", words.link_layer),
}


class Ibstatus(RdmaSource):
    """RDMA ports from `ibstatus`."""

    kind = "ibstatus"
    trust = 70

    def recognises(self, head: str) -> bool:
        return _STATUS_HEADER.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        devices: dict[str, RdmaRecord] = {}
        port: PortRecord | None = None
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            header = _STATUS_HEADER.match(text)
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
                _read_status(page, line, text, port)
        return parsed


def _read_status(page: Page[RdmaRecord], line: Line, text: str, port: PortRecord | None) -> None:
    match = _STATUS_FIELD.match(text)
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
