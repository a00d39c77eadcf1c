"""Fields of DCGM: metrics of NVIDIA's DCGM exporter (`curl HOST:9400/metrics`), and `dcgmi dmon -e FIELDS`, with
`nvidia-smi dmon`, which shows the same by other names.

    DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-...",pci_bus_id="00000000:07:00.0",modelName="...",Hostname="n1"} 1980

    #Entity   SMCLK        DVCCTR       TMPTR    GPUTL
    ID
    GPU 2     750          72           91       100

    # gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
    # Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
        0    112     35     40    100      0      0      0      0      0   2619   1980

Fields: dcgmlib/dcgm_fields.h of DCGM; each is what the driver's own tools say by another name. What a GPU does not have
is a number near the highest of its type (DCGM_INT32_BLANK and the like). Of several scrapes in one text the last
counts, of several samples of a monitor that with errors, else with the highest load. Totals over the NVLinks of a
GPU name no link, and are not read.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import reading, to_float, to_int
from topodiag.evidence.metrics_text import samples_of, whole
from topodiag.evidence.nvidia.nvidia_words import NUMBERS, UUID, bounded, event_reasons
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.events import Event, Trust
from topodiag.model.provenance import NotObserved, Origin
from topodiag.model.tables import GPU, TOTAL, Row, Table
from topodiag.words.own_data import own_data

_NAMES = own_data("evidence/nvidia/names")
MAX_INDEX = 255
MAX_LINKS = 64
MAX_RECORDS = 20_000
MAX_XID = 9999
_BLANKS = range((1 << 31) - 16, (1 << 31) - 8)
_FP_BLANK = 1 << 47
_LINK = regex(r"NVLINK_(CRC_FLIT|CRC_DATA|REPLAY|RECOVERY)_ERROR_COUNT_(?:L([0-9]{1,2})|TOTAL)")
_XID, _XID_COUNT = "XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT"
HEAT = "tviol"
"""What nvidia-smi's monitor calls it where heat holds the clock: 1 where it does."""
_PARTS = ("nvswitch", "nvlink", "cpu", "GPU_I_ID")
"""Labels of samples that are not of a whole GPU."""


@dataclass(frozen=True, slots=True)
class GpuField:
    """One field of one GPU, by DCGM's name without what all have in front, with the labels of its sample."""

    index: int
    field: str
    value: float
    line: Line
    labels: Mapping[str, str]


class DcgmExporter(OfPage):
    """Facts of GPUs from a scrape of the DCGM exporter."""

    def read_page(self, page: Page) -> None:
        latest: dict[tuple[int, str, str], GpuField] = {}
        hosts: dict[str, int] = {}
        buses: dict[int, str] = {}
        for sample in samples_of(page.blob, "DCGM_"):
            labels = sample.labels
            hosts.setdefault(labels.get("Hostname", ""), sample.line)
            index = to_int(labels.get("gpu"), low=0, high=MAX_INDEX)
            blank = sample.value >= _FP_BLANK or sample.value in _BLANKS
            if index is None or any(labels.get(part) for part in _PARTS) or blank or len(latest) >= MAX_RECORDS:
                continue
            if (bus_id := normalise_bus_id(labels.get("pci_bus_id", ""))) is not None:
                buses[index] = bus_id
            field = sample.name.removeprefix("DCGM_FI_DEV_")
            key = (index, field, labels.get("xid", ""))
            latest.pop(key, None)
            latest[key] = GpuField(index, field, sample.value, Line(page, sample.line, sample.text), labels)
        if len(hosts) > 1:
            why = f"metrics of {len(hosts)} hosts in one text: give each host's own"
            Line(page, sorted(hosts.values())[1], "").leave(why)
            return
        for record in latest.values():
            _offer(record, buses.get(record.index))
        totals = [record for record in latest.values() if (link := _LINK.fullmatch(record.field)) and not link[2]]
        page.draft.tables.append(Table(tuple(
            Row({GPU: str(total.index), f"{TOTAL}{total.field}": str(total.value)}, total.line.origin)
            for total in totals
        )))  # fmt: skip
        if any(total.value > 0 for total in totals):
            why = "the DCGM exporter gives totals of a GPU: its fields DCGM_FI_DEV_NVLINK_*_ERROR_COUNT_L0.. name links"
            page.draft.missing.append(NotObserved("which NVLinks have errors", why))


def _offer(record: GpuField, bus_id: str | None) -> None:
    line, page, labels = record.line, record.line.page, record.labels
    page.mark(line.number)
    origin, draft = line.origin, page.draft
    uuid = labels["UUID"] if UUID.fullmatch(labels.get("UUID", "")) else None
    gpu, os = draft.gpu(index=record.index, bus_id=bus_id, uuid=uuid), draft.single("os")
    for entity, name, value in (
        (gpu, "uuid", uuid), (gpu, "name", reading(labels.get("modelName"))),
        (os, "driver_version", reading(labels.get("DCGM_FI_DRIVER_VERSION"))),
    ):  # fmt: skip
        if name not in entity.offers:
            entity.offer(name, value, origin)
    count, field, pci = whole(record.value), record.field, draft.pci(bus_id) if bus_id else None
    if field == HEAT and record.value == 1:
        text = f"GPU {record.index} is held down by heat (tviol): {' '.join(line.text.split())}"
        line.report("gpu.clocks", text, Trust.PERSON)
    elif field in (_XID, _XID_COUNT):
        _xid(record, bus_id, draft)
    elif (name := _NAMES["dcgm-gpu"].get(field)) == "throttle":
        gpu.offer(name, None if count is None else event_reasons(count), origin)
    elif name is not None:
        gpu.offer(name, bounded(name, record.value), origin)
    elif (name := _NAMES["dcgm-counters"].get(field)) is not None:
        gpu.count(name, count, origin)
    elif pci is not None and (name := _NAMES["dcgm-pci"].get(field)) is not None:
        pci.offer(name, bounded(name, record.value), origin)
    elif pci is not None and field == "PCIE_REPLAY_COUNTER":
        pci.count("replay", count, origin)
    else:
        _offer_nvlink(gpu, record, origin)


def _offer_nvlink(gpu: Entity, record: GpuField, origin: Origin) -> None:
    """What a field says of the fabric, or of one NVLink."""
    count, field = whole(record.value), record.field
    if field == "FABRIC_MANAGER_STATUS" and record.value <= 4:
        gpu.child("fabric", 0).offer("state", NUMBERS["fabric-states"].get(min(count or 0, 3)), origin)
        if record.value == 3:
            gpu.child("fabric", 0).offer("status", "success", origin)
    elif field == "FABRIC_MANAGER_ERROR_CODE" and count:
        gpu.child("fabric", 0).offer("status", NUMBERS["nvml-errors"].get(count, f"error {count}"), origin)
    elif (link := _LINK.fullmatch(field)) is not None and link[2] and int(link[2]) < MAX_LINKS:
        gpu.child("nvlink", int(link[2])).count(link[1].lower(), count, origin)


def _xid(record: GpuField, bus_id: str | None, draft: NodeDraft) -> None:
    """The last Xid of a GPU, or one that was counted within the exporter's window: an event without a time."""
    code = whole(record.value) if record.field == _XID else to_int(record.labels.get("xid"), low=1)
    if not code or code > MAX_XID or not record.value:
        return
    if any(event.code == code and event.fields.get("gpu") == record.index for event in draft.events):
        return
    why = record.labels.get("err_msg", "")[:120]
    text = f"Xid {code} by DCGM" + (f": {why}" if why else "")
    fields = {"code": code, "gpu": record.index} | ({"bus_id": bus_id} if bus_id is not None else {})
    draft.events.append(Event("xid", "", text, record.line.origin, fields, trust=Trust.AGENT))


_Sample = dict[str, GpuField]


class DcgmDmon(OfPage):
    """Clocks, their reasons, load, power and errors by DCGM's monitor."""

    def read_page(self, page: Page) -> None:
        _read_samples(page, "Entity", _NAMES["dcgm-short"])


class NvidiaSmiDmon(OfPage):
    """Load of the processors and of memory, power, and clock by nvidia-smi's monitor."""

    def read_page(self, page: Page) -> None:
        _read_samples(page, "gpu", _NAMES["dmon"])


def _columns(line: str) -> list[str]:
    """The columns of a header, none of another line."""
    return line.lstrip("# ").split() if line.startswith("#") else []


def _read_samples(page: Page, first: str, names: Mapping[str, str]) -> None:
    """Offers of each GPU the sample that says most, whole. `first` is the column that numbers GPUs, behind date and
    time, `names` are DCGM's fields by the other columns."""
    columns: list[str] = []
    best: dict[int, _Sample] = {}
    for line in page.bare_lines():
        if first in _columns(line.text)[:3]:
            columns = _columns(line.text)
            continue
        words = line.text.removeprefix("GPU ").split()
        cells = dict(zip(columns, words, strict=False))
        index = to_int(cells.get(first), low=0, high=MAX_INDEX)
        if index is None or len(words) != len(columns):
            columns = columns if first == "Entity" or line.text.startswith("#") else []  # nvidia-smi's table ends here
            continue
        sample = _Sample()
        for column, cell in cells.items():
            value = to_int(cell) if cell.startswith("0x") else to_float(cell, low=0)
            if value is not None and column in names:
                sample[names[column]] = GpuField(index, names[column], value, line, {})
        best[index] = max(best.get(index, sample), sample, key=_weight)
    for sample in best.values():
        for record in sample.values():
            _offer(record, None)


def _weight(sample: _Sample) -> tuple[float, ...]:
    """Errors first, then the load, then how many reasons hold the clock: the moment that says most."""
    fields = ("ECC_DBE_VOL_TOTAL", "GPU_UTIL", "CLOCK_THROTTLE_REASONS")
    return tuple(sample[name].value if name in sample else -1 for name in fields)
