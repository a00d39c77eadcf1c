"""What DCGM says of GPUs: its fields, its findings on their health, and the states of NVLinks.

Fields: metrics of NVIDIA's DCGM exporter (`curl HOST:9400/metrics`), and `dcgmi dmon -e FIELDS`, with
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

What it says of a GPU's health, in `dcgmi health`, `dcgmi diag` or the log of a program that watches with it.

    Detected clocks event due to thermal violation in GPU 2. Verify that the cooling on this machine is functional ...
    GPU 3 Thermal violations totaling 12.4 seconds started at 30.0 seconds into the test
    Bandwidth of GPU 3 in direction h2d of 11.40 did not exceed minimum required bandwidth of 20.00.
    | PCIe                      | Fail - GPU: 3                                  |

Each sentence counts by itself; a table breaks it over lines. Sentences on memory and links are in the catalogue. What
DCGM calls a failure of NVLink or IMEX need be none: a card without a bridge has all links down, a tray without a job
needs no IMEX channel. These are not read. Sentences: DCGM, dcgmlib/dcgm_errors.h (DCGM_FR_CLOCKS_EVENT_THERMAL).

`dcgmi nvlink --link-status`: one letter for each NVLink of each GPU; `dcgmi nvlink --errors`: its counters.

    GPUs:
        gpuId 0:
            U U U U U U D U U U U U U U U U U U
    Key: Up=U, Down=D, Disabled=X, Not Supported=_

    | GPU 4                                                                        |
    | Link 3                      | Replay Error              30112                |

A card without a bridge has all links down. The links of NVSwitches are left out: no other source numbers them so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import MAX_LINE, reading, to_float, to_int
from topodiag.evidence.metrics_text import samples_of, whole
from topodiag.evidence.nvidia.nvidia_words import NUMBERS, UUID, bounded, event_reasons
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.lazy import dataclass
from topodiag.model.busid import normalise_bus_id
from topodiag.model.events import Event, Trust
from topodiag.model.provenance import NotObserved, Origin
from topodiag.model.tables import GPU, TOTAL, Row, Table
from topodiag.words.own_data import own_data, patterns

_NAMES = own_data("evidence/nvidia/names")
MAX_INDEX = 255
MAX_LINKS = 64
MAX_RECORDS = 20_000
MAX_XID = 9999
_BLANKS = range((1 << 31) - 16, (1 << 31) - 8)
_FP_BLANK = 1 << 47
_LIKE = patterns("evidence/nvidia/lines", "dcgm")
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
        for name, labels, value, number, text in samples_of(page.blob, "DCGM_"):
            hosts.setdefault(labels.get("Hostname", ""), number)
            index = to_int(labels.get("gpu"), low=0, high=MAX_INDEX)
            blank = value >= _FP_BLANK or value in _BLANKS
            if index is None or any(labels.get(part) for part in _PARTS) or blank or len(latest) >= MAX_RECORDS:
                continue
            if (bus_id := normalise_bus_id(labels.get("pci_bus_id", ""))) is not None:
                buses[index] = bus_id
            field = name.removeprefix("DCGM_FI_DEV_")
            key = (index, field, labels.get("xid", ""))
            latest.pop(key, None)
            latest[key] = GpuField(index, field, value, Line(page, number, text), labels)
        if len(hosts) > 1:
            why = f"metrics of {len(hosts)} hosts in one text: give each host's own"
            Line(page, sorted(hosts.values())[1], "").leave(why)
            return
        for record in latest.values():
            _offer(record, buses.get(record.index))
        totals = [
            record for record in latest.values() if (link := _LIKE["link"].fullmatch(record.field)) and not link[2]
        ]
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
    elif (link := _LIKE["link"].fullmatch(field)) is not None and link[2] and int(link[2]) < MAX_LINKS:
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
    """Clocks, their reasons, load, power and errors by DCGM's monitor: of each GPU the sample that says most, whole."""

    first = "Entity"
    """The column that numbers GPUs, behind date and time."""
    names: Mapping[str, str] = _NAMES["dcgm-short"]
    """DCGM's fields by the other columns."""

    def read_page(self, page: Page) -> None:
        columns: list[str] = []
        best: dict[int, _Sample] = {}
        for line in page.bare_lines():
            header = line.text.lstrip("# ").split() if line.text.startswith("#") else []
            words = line.text.removeprefix("GPU ").split()
            cells = dict(zip(columns, words, strict=False))
            index = to_int(cells.get(self.first), low=0, high=MAX_INDEX)
            if self.first in header[:3]:
                columns = header
            elif index is not None and len(words) == len(columns):
                sample = _Sample()
                for column, cell in cells.items():
                    value = to_int(cell) if cell.startswith("0x") else to_float(cell, low=0)
                    if value is not None and column in self.names:
                        sample[self.names[column]] = GpuField(index, self.names[column], value, line, {})
                best[index] = max(best.get(index, sample), sample, key=_weight)
            elif self.first != "Entity" and not header:
                columns = []  # nvidia-smi's table ends here
        for sample in best.values():
            for record in sample.values():
                _offer(record, None)


class NvidiaSmiDmon(DcgmDmon):
    """Load of the processors and of memory, power, and clock by nvidia-smi's monitor."""

    first = "gpu"
    names = _NAMES["dmon"]


def _weight(sample: _Sample) -> tuple[float, ...]:
    """Errors first, then the load, then how many reasons hold the clock: the moment that says most."""
    fields = ("ECC_DBE_VOL_TOTAL", "GPU_UTIL", "CLOCK_THROTTLE_REASONS")
    return tuple(sample[name].value if name in sample else -1 for name in fields)


MAX_SENTENCES = 10_000

FAILED = "failed_tests"
"""The field of a GPU, or of a node whose GPU no row names, that holds the sentences on its failed tests."""
_REASONS = {"thermal": "hw_thermal_slowdown", "power": "hw_power_brake_slowdown"}
PASSED = "passed_tests"
"""The field of a node that holds the tests which all its GPUs passed."""

_Said = tuple[int, str, str]
"""Of one sentence: the GPU, the field of the model, its value. Of all GPUs the index is -1."""


class Dcgm(OfPage):
    """Clocks that are held down, memory errors and failed tests, by DCGM's sentences and tables."""

    def recognises(self, head: str) -> bool:
        """A report in which all pass is one as well: nothing is held against the GPUs."""
        if _LIKE["report"].search(head) is not None or _LIKE["no_time"].search(head) is not None:
            return True
        return any(True for _ in _sentences(enumerate(head.split("\n"), 1)))

    def read_page(self, page: Page) -> None:
        held: set[int] = set()
        """GPUs whose clocks are held down, which says why a test failed."""
        tests: dict[tuple[str, int], dict[str, Line]] = {}
        for number, text, (index, name, value) in islice(_sentences(page.blob.lines()), MAX_SENTENCES):
            line = Line(page, number, text)
            page.mark(number)
            if name in (FAILED, PASSED):
                tests.setdefault((name, index), {}).setdefault(value, line)
            else:
                held.add(index)
                line.put(page.draft.gpu(index=index), **{name: (value,)})
        # Below a bare `Fail` version 4 names the GPUs, and a clock that is held down names its own.
        named = {value for (name, index), lines in tests.items() if index >= 0 for value in lines}
        for (name, index), lines in tests.items():
            if index < 0 and name == FAILED:
                lines = {} if held else {value: line for value, line in lines.items() if value not in named}
            if lines and index not in held:
                entity = page.draft.single("node") if index < 0 else page.draft.gpu(index=index)
                entity.offer(name, tuple(lines), next(iter(lines.values())).origin)


def _sentences(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, _Said]]:
    """The sentences of a text; one that a table broke is joined with the cells above it."""
    before, test = "", ""
    for number, given in lines:
        text = given[:MAX_LINE].strip(" \t>")
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        row = text.startswith("|") and len(cells) == 2
        name, cell = (cells[0].strip("-"), cells[1]) if row else ("", text)
        if name:
            test, before = name, "" if _LIKE["fail"].match(cell) else before
        health_lines = [(text, one) for one in _failures(test, cell)] if row else []
        for sentence in dict.fromkeys((cell, f"{before} {cell}")):
            health_lines = health_lines or [(sentence, one) for one in _clocks(sentence)]
        yield from ((number, shown, one) for shown, one in health_lines if one[0] <= MAX_INDEX)
        before = "" if health_lines else f"{before} {cell}"[-MAX_LINE:] if row and not name else cell


def _failures(test: str, cell: str) -> Iterator[_Said]:
    """The GPUs that a row of the table of a diagnostic says failed, or that all passed."""
    if not any(word in test.lower() for word in _NAMES["dcgm-tests"]["of_gpus"]):
        return
    if cell == "Pass - All":
        yield -1, PASSED, test
    failed = _LIKE["fail"].match(cell)
    # What all GPUs fail is mostly of the machine: cards without NVLink fail the test of PCIe so.
    unnamed = "-1" if cell == "Fail" else ""
    for index in (failed["one"] or failed["several"] or unnamed).split(",") if failed is not None else ():
        if (number := to_int(index, low=-1)) is not None:
            yield number, FAILED, f"the test {test} failed"


def _clocks(text: str) -> Iterator[_Said]:
    """The clocks that a sentence says are held down."""
    clocks = _LIKE["clocks"].search(text)
    if clocks is not None and _LIKE["no_time"].search(text) is None:
        index, reason = int(clocks[2] or clocks[3] or clocks[6]), (clocks[1] or clocks[4] or clocks[5]).lower()
        yield index, "throttle", _REASONS[reason]


_COUNTERS = {"CRC FLIT": "crc_flit", "CRC Data": "crc_data", "Replay": "replay", "Recovery": "recovery"}
_STATES = {"U": "active", "D": "inactive"}
"""In the model's words. Disabled, and not supported, are no state of a link that should be up."""


class DcgmNvlink(OfPage):
    """States of NVLinks by `dcgmi nvlink`."""

    def read_page(self, page: Page) -> None:
        gpu: Entity | None = None
        for line in page.bare_lines():
            text = line.text
            if gpu is not None and (errors := _LIKE["errors"].match(text)) is not None:
                line.count(gpu.child("nvlink", int(errors[1])), _COUNTERS[errors[2]], int(errors[3]))
            elif text.startswith(("gpuId ", "GPU ")) and (index := text.split()[1].rstrip(":")).isdecimal():
                gpu = page.draft.gpu(index=int(index)) if len(index) < 4 and int(index) <= MAX_INDEX else None
            elif gpu is not None and (letters := text.split()) and set(letters) <= {*"UDX_"}:
                page.mark(line.number)
                for link, letter in enumerate(letters[:64]):
                    if letter in _STATES:
                        line.put(gpu.child("nvlink", link), state=_STATES[letter])
                gpu = None
            elif text.strip("+-= |"):
                gpu = None
