"""p2pBandwidthLatencyTest of CUDA's samples, and nvbandwidth: the GPUs that copies ran between, and who may reach whom.

    Device: 0, NVIDIA H100 80GB HBM3, pciBusID: 18, pciDeviceID: 0, pciDomainID:0
    Device=0 CANNOT Access Peer Device=1

    Device 0: NVIDIA RTX A6000 (00000000:01:00)

CUDA numbers devices by itself, so that only the bus id says which GPU one is; without it nothing does. The tables are
measurements, no state of a link, and are not judged. Format: cuda-samples 10 to 13 (numbers in hexadecimal),
nvbandwidth 0.5 and later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.model.busid import normalise_bus_id
from topodiag.model.topics import Topic

MAX_LINE = 400
MAX_RECORDS = 20_000
_HEX = r"([0-9a-fA-F]{1,4})"
_SAMPLE = re.compile(
    rf"^Device: ([0-9]{{1,3}}), (\S.{{0,80}}?), pciBusID: {_HEX}, pciDeviceID: {_HEX}, pciDomainID: ?{_HEX}\s*$"
)
_NVBANDWIDTH = re.compile(r"^Device ([0-9]{1,3}): (\S.{0,80}?) \(([0-9a-fA-F]{8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})\)\s*$")
_ACCESS = re.compile(r"^Device=([0-9]{1,3}) (CAN|CANNOT) Access Peer Device=([0-9]{1,3})\s*$")
_MARK = re.compile(
    r"^[ \t>|]{0,20}(?:\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]|nvbandwidth Version: v[0-9]"
    r"|Device: [0-9]{1,3}, [^\n]{1,80}, pciBusID: )",
    re.MULTILINE,
)
_REACHES = "OK"
"""That CUDA lets a device reach another's memory, in the words of `nvidia-smi topo -p2p`. Why it does not let it has
several words there, and none here."""


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """A device with name and bus id, or (`peer` from 0) whether it may reach a peer."""

    device: int
    line: int
    text: str
    name: str = ""
    bus_id: str = ""
    peer: int = -1
    access: str = ""


class CopyTests(Source[CopyRecord]):
    """GPUs, and access between them, from tests of copies."""

    kind = "cuda-copy-test"
    speaks_of = frozenset({Topic.GPUS})
    trust = 55

    def told(self, parsed: Parsed[CopyRecord]) -> frozenset[Topic]:
        """Nothing as a whole: CUDA_VISIBLE_DEVICES may hide others."""
        return frozenset()

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[CopyRecord]:
        parsed: Parsed[CopyRecord] = Parsed(partial=True)
        for record in _records(blob):
            parsed.lines = record.line
            if len(parsed.records) < MAX_RECORDS:
                parsed.records.append(record)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[CopyRecord], draft: NodeDraft) -> None:
        bus_ids = {record.device: record.bus_id for record in parsed.records if record.peer < 0 and record.bus_id}
        for record in parsed.records:
            here = bus_ids.get(record.device)
            origin = blob.origin(record.line, record.text)
            if here is None:
                continue
            if record.peer < 0:
                draft.gpu(bus_id=here).offer("name", record.name, origin)
            elif record.access and (there := bus_ids.get(record.peer)) is not None:
                draft.pair("p2p:read", draft.gpu(bus_id=here), draft.gpu(bus_id=there), record.access, origin)


def _records(blob: Blob) -> Iterator[CopyRecord]:
    for number, whole in blob.lines():
        text = whole[:MAX_LINE].strip(" \t>|")
        if (found := _SAMPLE.match(text)) is not None:
            place = f"{int(found[5], 16):04x}:{int(found[3], 16):02x}:{int(found[4], 16):02x}.0"
            yield CopyRecord(int(found[1]), number, text, found[2], normalise_bus_id(place) or "")
        elif (found := _NVBANDWIDTH.match(text)) is not None:
            yield CopyRecord(int(found[1]), number, text, found[2], normalise_bus_id(f"{found[3]}.0") or "")
        elif (found := _ACCESS.match(text)) is not None:
            yield CopyRecord(
                int(found[1]), number, text, peer=int(found[3]), access=_REACHES if found[2] == "CAN" else ""
            )
