"""What AMD's own tools say of each GPU.

`amd-smi metric` and `amd-smi static`, with `--json` or without: errors by block of the chip, clocks and what
holds them down, power, PCIe, product, place.

    {"gpu_data": [{"gpu": 5, "ecc_blocks": {"UMC": {"uncorrectable_count": 0}, "XGMI_WAFL": {"correctable_count": 41}},
                   "pcie": {"width": 16, "speed": {"value": 32, "unit": "GT/s"}, "replay_count": 0},
                   "clock": {"gfx_0": {"clk": {"value": 2100, "unit": "MHz"}}},
                   "throttle": {"ppt_violation_status": "NOT ACTIVE"}}]}

    GPU: 5
        ECC_BLOCKS:
            XGMI_WAFL:
                CORRECTABLE_COUNT: 41

ROCm 7 has the list below `gpu_data`, older releases have it bare. The text is the same tree, indented. UMC counts are
those of memory; the block of xGMI is counted apart, as errors of links. Of several clocks of the shader engines (one a
die) the highest counts: dies without work sleep. Format: amdsmi_commands.py (metric, static), ROCm 6 and 7.

`rocm-smi` without options, or any part of it as `--json`: clocks and load of AMD GPUs.

    Device  Node  IDs              Temp        Power     Partitions          SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
    0       2     0x74a1,   28851  61.0C       612.0W    NPS1, SPX, 0        2097Mhz  1300Mhz  0%   auto  750.0W  71%    100%

    {"card0": {"Card Series": "AMD Instinct MI300X", "PCI Bus": "0000:05:00.0", "sclk clock speed:": "(132Mhz)"}}

    GPU[0]          : Device Name:          AMD Instinct MI300X VF
    GPU[0]          : sclk clock level: 1: (1259Mhz)
    GPU[0]          : GPU use (%): 100

The listing of `-a` has the keys of the JSON, a line each. Older releases begin the header with `GPU  Temp (DieEdge)  AvgPwr  SCLK`. Only what the columns say is read: the highest
clock, the product and the links are not in this table. Format: ROCm 3 to 7, rocm_smi.py, showAllConcise, printLog.

`rocminfo`: the agents of the runtime, CPUs and GPUs.

      Marketing Name:          AMD Instinct MI300X
      Device Type:             GPU
      BDFID:                   1280

BDFID is bus, device and function as one number. Format: ROCm 1.9 to 7, rocminfo.cc (DisplayAgentInfo).
"""  # noqa: E501 - a row of the table is that long

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import Any

from topodiag.evidence import json_values as values
from topodiag.evidence.host.pcie import GENERATIONS, MAX_WIDTH
from topodiag.evidence.interface import MAX_GPUS, MAX_LINE, Blob, reading, to_float, to_int
from topodiag.evidence.page import OfPage, Page
from topodiag.model.busid import unplaced
from topodiag.model.devices import AMD as AMD_ID
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data
from topodiag.words.units import in_mhz

MAX_COUNT = 2**63
MEMORY, LINKS = "UMC", "XGMI_WAFL"
"""The blocks of the memory controllers, and of xGMI (amdgpu_ras.h of Linux)."""
_UNITS = ("GT/s", "MHz", "W", "%", "C", "°C")
_NAMES = own_data("evidence/amd/names")
_HELD_BY: Mapping[str, str] = _NAMES["held_by"]
MAX_MHZ, MAX_W, MAX_PERCENT, MAX_GTPS = 10_000, 100_000, 100, 1_000
MAX_LINES = 200_000


_FIELD, _COUNTER, _PCI = "field", "counter", "field of the function"
_Value = tuple[str, str, Any, str]
"""One value of a GPU: what it is of these, its name, the value, None where the document has none, and the quote."""


class AmdSmiJson(OfPage):
    """Counters and facts of AMD's GPUs."""

    def read_page(self, page: Page) -> None:
        blob, draft = page.blob, page.draft
        is_json = blob.data.lstrip()[:1] in (b"{", b"[")
        document = values.document_of(blob, page.parsed) if is_json else _of_text(blob)
        gpus = document.get("gpu_data") if isinstance(document, dict) else document
        for _, gpu in values.objects(gpus, MAX_GPUS):
            number = values.integer(gpu.get("gpu"), high=MAX_GPUS - 1)
            if number is None:
                continue
            bus_id = values.text(values.member(gpu.get("bus"), "bdf")) or values.text(gpu.get("bdf"))
            entity = draft.gpu(index=number, bus_id=bus_id)
            for kind, name, value, quote in _of_gpu(gpu, bus_id):
                if value is not None:
                    owner = draft.pci(bus_id or unplaced(number)) if kind == _PCI else entity
                    origin = blob.origin(text=f"gpu {number}: {quote}")
                    (owner.count if kind == _COUNTER else owner.offer)(name, value, origin)
                    page.parsed.records.append(0)


def _of_gpu(gpu: dict[str, Any], bus_id: str | None) -> Iterator[_Value]:
    if bus_id is not None:
        yield _PCI, "vendor", AMD_ID, f"bdf {bus_id}"
        for key, field in (("max_pcie_width", "max_width"), ("max_pcie_speed", "max_gen")):
            held = values.member(gpu.get("bus"), key)
            number = _width(held) if field == "max_width" else _gen(held)
            yield _PCI, field, number, f"{key} {values.shown(held)}"
    numa = values.integer(values.member(gpu.get("numa"), "node"), low=0, high=4095)
    yield _FIELD, "numa", numa, f"numa node {numa}"
    name = values.text(values.member(gpu.get("asic"), "market_name"))
    if name is not None and name.upper() != "N/A":
        yield _FIELD, "name", name, f"market_name {name}"
    yield from _errors(gpu)
    yield from _pcie(gpu.get("pcie"))
    yield from _load(gpu)
    yield from _clocks(gpu)


def _errors(gpu: dict[str, Any]) -> Iterator[_Value]:
    blocks = gpu.get("ecc_blocks")
    if not isinstance(blocks, dict) or not isinstance(blocks.get(MEMORY), dict):
        yield from _counts("ecc_volatile", gpu.get("ecc"), "total_")
        return
    yield from _counts("ecc_volatile", blocks[MEMORY], "", f"{MEMORY} ")
    yield from _counts("xgmi", blocks.get(LINKS), "", f"{LINKS} ")
    others = [counts for block, counts in list(blocks.items())[:64] if block not in (MEMORY, LINKS)]
    lost = sum(values.integer(values.member(counts, "uncorrectable_count"), high=MAX_COUNT) or 0 for counts in others)
    yield _COUNTER, "ras_uncorrected", lost, f"uncorrectable_count {lost} in other blocks"


def _counts(family: str, counts: object, prefix: str, block: str = "") -> Iterator[_Value]:
    for word in ("uncorrect", "correct"):
        key = f"{prefix}{word}able_count"
        count = values.integer(values.member(counts, key), high=MAX_COUNT)
        yield _COUNTER, f"{family}_{word}ed", count, f"{block}{key} {count}"


def _load(gpu: dict[str, Any]) -> Iterator[_Value]:
    limits = [gpu.get("limit")]
    limits += [held for key, held in _lower(gpu.get("limit")) if key in ("ppt", "ppt0")]
    drawn = (values.member(gpu.get("power"), key) for key in _NAMES["drawn"])
    limit = (values.member(held, key) for held in limits for key in _NAMES["limits"])
    for name, kind, held in (
        ("utilization", int, values.member(gpu.get("usage"), "gfx_activity")),
        ("memory_utilization", int, values.member(gpu.get("usage"), "umc_activity")),
        ("power_w", float, next(filter(None, drawn), None)),
        ("power_limit_w", float, next(filter(None, limit), None)),
    ):
        value = _measured(held, MAX_PERCENT if kind is int else MAX_W)
        if value is not None:
            yield _FIELD, name, kind(value), f"{name} {value:g}"


def _clocks(gpu: dict[str, Any]) -> Iterator[_Value]:
    engines = [held for key, held in _lower(gpu.get("clock")) if key.partition("_")[0] == "gfx"]
    clocks, tops = (
        [_measured(values.member(engine, key), MAX_MHZ) or 0 for engine in engines] for key in ("clk", "max_clk")
    )
    clock, top = max(clocks, default=0), max(tops, default=0)
    if clock:
        yield _FIELD, "sm_clock_mhz", int(clock), f"gfx clk {in_mhz(int(clock))}"
    states = {key: values.member(gpu.get("throttle"), f"{key}_violation_status") for key in _HELD_BY}
    if not {"ACTIVE", "NOT ACTIVE"} & set(map(str, states.values())):
        return
    active = [key for key, state in states.items() if state == "ACTIVE"]
    reasons = tuple(dict.fromkeys(_HELD_BY[key] for key in active))
    yield _FIELD, "throttle", reasons, f"violations active: {', '.join(active) or 'none'}"
    if top:
        # Without the reasons a power limit would look like a clock that is stuck: then its peers say what is usual.
        yield _FIELD, "max_sm_clock_mhz", int(top), f"gfx max_clk {in_mhz(int(top))}"


def _lower(held: object) -> list[tuple[str, Any]]:
    """The members of an object, by their names in lower case: the text has those of engines in capitals."""
    return [(str(key).lower(), value) for key, value in list(held.items())[:64]] if isinstance(held, dict) else []


def _measured(held: object, most: int) -> float | None:
    """A number within bounds, with its unit apart or without; None for anything else."""
    return values.number(held.get("value") if isinstance(held, dict) else held, most)


def _pcie(pcie: object) -> Iterator[_Value]:
    width, gen = _width(values.member(pcie, "width")), _gen(values.member(pcie, "speed"))
    replays = values.integer(values.member(pcie, "replay_count"), high=MAX_COUNT)
    yield _PCI, "width", width, f"pcie width {width}"
    yield _PCI, "gen", gen, f"pcie speed {values.shown(values.member(pcie, 'speed'))}"
    yield _COUNTER, "pcie_replay", replays, f"replay_count {replays}"


def _width(held: object) -> int | None:
    return values.integer(held, low=1, high=MAX_WIDTH)


def _gen(held: object) -> int | None:
    return GENERATIONS.get(_measured(held, MAX_GTPS) or 0.0)


def _of_text(blob: Blob) -> list[dict[str, Any]]:
    """The GPUs of the text as the JSON has them: what stands further to the right is below. Keys of fields are in lower
    case, those of the chip's blocks as they stand."""
    gpus: list[dict[str, Any]] = []
    stack: list[tuple[int, dict[str, Any]]] = []
    for _, whole in islice(blob.lines(), MAX_LINES):
        line = whole[:MAX_LINE].rstrip().lstrip(">|")
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not key.isidentifier():
            continue
        at = len(line) - len(line.lstrip())
        while stack and stack[-1][0] >= at:
            stack.pop()
        if key == "GPU" and value:
            gpus.append({"gpu": _scalar(value)})
            stack = [(at, gpus[-1])]
        elif stack and value:
            stack[-1][1][key.lower()] = _scalar(value)
        elif stack:
            above, name = stack[-1][1], key if len(stack) > 1 else key.lower()
            stack.append((at, above.setdefault(name, {}) if isinstance(above.get(name, {}), dict) else {}))
    return gpus


def _scalar(text: str) -> Any:
    digits, _, unit = text.partition(" ")
    if unit in _UNITS and (value := to_float(digits, low=0)) is not None:
        return {"value": value, "unit": unit}
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else text


_COLUMNS = {"SCLK", "MCLK", "GPU%"}
_PRODUCTS = ("Device Name", "Card Series", "Card series", "Card SKU")
"""Keys that hold the product, the plainest first; the last tells it on cards that name no series."""

_READ_KEYS = {*_PRODUCTS, "sclk clock level", "GPU use (%)", "GPU Memory Allocated (VRAM%)", "PCI Bus"}


class RocmSmi(OfPage):
    """Clock and load of AMD GPUs."""

    def read_page(self, page: Page) -> None:
        if page.blob.text.lstrip()[:1] == "{":
            _read_json(page)
            return
        in_table = False
        cards: dict[int, tuple[Origin, dict[str, str]]] = {}
        for line in page.bare_lines():
            gpu, _, listed = line.text.partition(": ")
            if gpu.startswith("GPU[") and (number := to_int(gpu[4:], low=0, high=MAX_GPUS - 1)) is not None:
                key, _, value = listed.partition(":")
                cards.setdefault(number, (line.origin, {}))[1].setdefault(key, value.strip())
                continue
            words = line.text.split()
            in_table = in_table or set(words) >= _COLUMNS
            # A GPU that does not answer shows None, N/A.
            clocks = (word for word, after in pairwise(words) if word[-3:] == "Mhz" and after[-3:] in ("Mhz", "N/A"))
            index = to_int(words[0], low=0, high=MAX_GPUS - 1) if in_table and line.text.endswith("%") else None
            if index is not None:
                used = words[-2] if words[-2].endswith("%") else None
                line.put(page.draft.gpu(index=index), **_fields(next(clocks, None), words[-1], used))
        for number, (origin, texts) in cards.items():
            if _READ_KEYS.intersection(texts):  # others are of the way between GPUs, which links.py reads
                _read_card(page, number, origin, texts)


def _fields(clock: str | None, load: str | None, used: str | None) -> dict[str, object]:
    """The shader clock in MHz, the load, and what is used of the memory in percent."""
    share = to_int(used, low=0, high=MAX_PERCENT)
    return {
        "sm_clock_mhz": to_int(clock, low=1, high=MAX_MHZ),
        "utilization": to_int(load, low=0, high=MAX_PERCENT),
        "memory_used_share": None if share is None else share / MAX_PERCENT,
    }


def _read_json(page: Page) -> None:
    document = values.document_of(page.blob, page.parsed)
    for key, card in list(document.items())[:MAX_GPUS] if isinstance(document, dict) else ():
        number = to_int(str(key).removeprefix("card"), low=0, high=MAX_GPUS - 1)
        if number is None or not isinstance(card, dict):
            continue
        origin = page.blob.origin(text=f"{key}: {', '.join(f'{name}: {card[name]}' for name in list(card)[:4])}"[:400])
        _read_card(page, number, origin, {name: values.text(str(value)) for name, value in card.items()})


def _read_card(page: Page, number: int, origin: Origin, texts: Mapping[str, str | None]) -> None:
    """What a GPU's keys say, in the JSON or in the listing."""
    clocks = (text for name, text in texts.items() if name.startswith("sclk clock ") and text is not None)
    clock = next((text.rpartition("(")[2] for text in clocks if "Mhz" in text), None)
    place = texts.get("PCI Bus")
    product = next(filter(None, (reading(texts.get(name)) for name in _PRODUCTS)), None)
    cells = _fields(clock, texts.get("GPU use (%)"), texts.get("GPU Memory Allocated (VRAM%)"))
    page.draft.gpu(index=number, bus_id=place).put(origin, name=product, **cells)
    if place is not None:
        page.draft.pci(place).offer("vendor", AMD_ID, origin)
    page.parsed.records.append(0)


class Rocminfo(OfPage):
    """Product and place of AMD's GPUs. Partitions of one GPU are agents of one place."""

    def read_page(self, page: Page) -> None:
        name, kind = "", ""
        for line in page.lines():
            field, _, value = (part.strip() for part in line.bare.partition(":"))
            if field == "Marketing Name":
                name = value
            elif field == "Device Type":
                kind = value
            elif field == "BDFID" and kind == "GPU" and (place := to_int(value, low=0, high=0xFFFF)) is not None:
                bus_id = f"0000:{place >> 8:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"
                line.offer(page.draft.gpu(bus_id=bus_id), "name", name or None)
