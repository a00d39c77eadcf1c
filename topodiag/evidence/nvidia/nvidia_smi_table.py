"""`nvidia-smi` alone and `nvidia-smi -L`: which GPUs there are, and the little that the table says of each.

    |   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |
    | N/A   41C    P0             69W /  700W |       0MiB /  81559MiB |      0%      Default |
    |                                         |                        |             Disabled |

Three rows for each GPU (two before R450), cells between bars; a name that ends in dots was cut by the tool. The line
that stands in place of a report when a GPU has fallen off the bus is read too. Format: drivers R384 to R610.

The table of processes below `nvidia-smi`'s own, with it or pasted alone: which program has which GPU open.

    |  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
    |    3   N/A  N/A          990121      C   ./gpu_burn                             9121MiB |
    |    0     31794    C   python                                        5371MiB |

    # gpu         pid   type     sm    mem    enc    dec    command
        5      118330     C     44     19      -      -    blender

The last two lines are of `nvidia-smi pmon`. Programs that only draw (type G) are left out. Long names are cut at their
start by the tool. Format: drivers R384 to R610.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_GPUS, MAX_LINE, Blob, Direct, Parsed
from topodiag.evidence.nvidia.nvidia_words import LOST, distinct_bus_ids, distinct_uuids, fill_lost
from topodiag.lazy import dataclass
from topodiag.model import tables
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import Fact, known
from topodiag.model.system import Process
from topodiag.words.own_data import own_data, patterns

LOST_READINGS = 2
"""Readings of temperature, performance and power that are ERR! when the GPU does not answer; one is a dead sensor."""

_LIKE = patterns("evidence/nvidia/lines", "table")
_TITLE = "| NVIDIA-SMI "

_COMPUTE_MODES: Mapping[str, str] = own_data("evidence/nvidia/names")["table-compute-modes"]
_MIG = {"Enabled": True, "Disabled": False}


@dataclass(slots=True)
class TableGpu:
    """One GPU of the table or of the list; each value with its line and the line's text."""

    index: int
    line: int
    text: str
    name: str | None = None
    bus_id: str = ""
    uuid: str = ""
    in_table: bool = False
    has_screen: bool = False
    second: tuple[int, str] = (0, "")
    """Its second row: temperature, power, memory and load."""
    readings: dict[str, int] = field(default_factory=dict)
    """The numbers of that row, by their names in `_LIKE["reading"]`."""
    values: dict[str, tuple[object, int, str]] = field(default_factory=dict)


class NvidiaSmiTable(Direct):
    """GPUs with name, bus id, MIG, persistence, load, performance state, uncorrected errors; the driver's versions."""

    def recognises(self, head: str) -> bool:
        if _LIKE["first_row"].search(head) is not None or LOST.search(head) is not None:
            return True
        lines = [line.lstrip(" \t>") for line in head.split("\n")]
        linked = any(line.lstrip("|").lstrip().startswith("Link ") for line in lines)
        listed = not linked and _LIKE["listed"].search(head) is not None
        return listed or any(line.startswith(_TITLE) for line in lines)

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        fill_lost(blob, draft)
        gpus: dict[int, TableGpu] = {}
        row: TableGpu | None = None
        for number, whole in blob.lines():
            line = whole[:MAX_LINE].rstrip().lstrip("> \t")
            if line.startswith(_TITLE):
                row = None
                for match in _LIKE["version"].finditer(line):
                    name = "cuda_version" if match[1] == "CUDA" else "driver_version"
                    draft.single("os").offer(name, match[2], blob.origin(number, line))
                    parsed.records.append(number)
            elif LOST.search(line):
                parsed.records.append(number)
            elif listed := _LIKE["listed"].match(line):
                gpu = _gpu(gpus, int(listed[1]), number, line)
                if gpu is not None:
                    gpu.uuid, gpu.name = gpu.uuid or listed[3], gpu.name or listed[2]
            else:
                row = _row(gpus, row, number, line)
        _offer(blob, list(gpus.values()), draft)
        parsed.records += [gpu.line for gpu in gpus.values()]
        return parsed


def _offer(blob: Blob, gpus: Sequence[TableGpu], draft: NodeDraft) -> None:
    uuids = distinct_uuids((gpu.index, gpu.uuid) for gpu in gpus)
    bus_ids = distinct_bus_ids((gpu.index, normalise_bus_id(gpu.bus_id) or "") for gpu in gpus)
    for gpu in gpus:
        entity = draft.gpu(index=gpu.index, bus_id=bus_ids.get(gpu.index), uuid=uuids.get(gpu.index))
        entity.offer("name", gpu.name, blob.origin(gpu.line, gpu.text))
        for name, (value, number, text) in gpu.values.items():
            if name == "ecc_volatile_uncorrected" and isinstance(value, int):
                entity.count(name, value, blob.origin(number, text))
            else:
                entity.offer(name, value, blob.origin(number, text))
    rows = [gpu for gpu in gpus if gpu.second[0] and "lost" not in gpu.values]
    draft.tables.append(tables.Table(tuple(tables.Row(_cells(gpu), blob.origin(*gpu.second)) for gpu in rows)))


def _cells(gpu: TableGpu) -> dict[str, str]:
    """What the second row of a GPU says beside the fields of the model."""
    text = gpu.second[1]
    cells = {
        tables.GPU: str(gpu.index),
        tables.PRODUCT: gpu.name or "",
        tables.FAILED_READING: next((word for word in ("ERR!", "Unknown Error") if word in text), ""),
        tables.COMPUTE_MODE: "Prohibited" if "Prohibited" in text else "",
        tables.CELSIUS: str(gpu.readings.get("celsius", "")),
        tables.MEMORY_MIB: str(gpu.readings.get("memory", "")),
    }
    return {name: cell for name, cell in cells.items() if cell}


def _gpu(gpus: dict[int, TableGpu], index: int, number: int, line: str) -> TableGpu | None:
    if index not in gpus and len(gpus) < MAX_GPUS:
        gpus[index] = TableGpu(index, number, line)
    return gpus.get(index)


def _row(gpus: dict[int, TableGpu], row: TableGpu | None, number: int, line: str) -> TableGpu | None:
    """The GPU whose rows these are, after this line: the first row begins it, a rule of dashes ends it."""
    if (first := _LIKE["first_row"].match(line)) is not None:
        index, name, persistence, bus_id, screen, errors = first.groups()
        gpu = _gpu(gpus, int(index), number, line)
        if gpu is None or gpu.in_table:
            return None  # the same table once more: the first reading stays
        gpu.bus_id = bus_id
        if not name.endswith("..."):
            gpu.name = gpu.name or name
        _put(gpu, "persistence", {"On": True, "Off": False}.get(persistence), number, line)
        _put(gpu, "ecc_volatile_uncorrected", _small(errors.strip()), number, line)
        gpu.in_table, gpu.has_screen = True, screen == "On"
        return gpu
    cells = line.split("|")
    if row is None or len(cells) != 5 or cells[0]:
        return None
    load, _, mode = cells[3].strip().partition(" ")
    if mode and (load in ("N/A", "ERR!") or load.endswith("%")):
        _second_row(row, cells, number, line)
    elif not cells[1].strip() and not cells[2].strip():
        _put(row, "mig", _MIG.get(load.rstrip("*")), number, line)
    return row


def _second_row(gpu: TableGpu, cells: list[str], number: int, line: str) -> None:
    if not gpu.second[0]:
        gpu.second = number, line
        for match in _LIKE["reading"].finditer(" ".join(cells[1:3])):
            gpu.readings |= {name: int(digits) for name, digits in match.groupdict().items() if digits}
    values = gpu.readings
    load, _, mode = cells[3].strip().partition(" ")
    _put(gpu, "pstate", values.get("pstate"), number, line)
    _put(gpu, "utilization", _small(load.removesuffix("%")), number, line)
    _put(gpu, "compute_mode", _COMPUTE_MODES.get(mode.strip()), number, line)
    if "power" in values:
        _put(gpu, "power_w", float(values["power"]), number, line)
        _put(gpu, "power_limit_w", float(values["limit"]), number, line)
    if "memory" in values:
        _put(gpu, "memory_used_mib", values["used"], number, line)
        if not gpu.has_screen and values["memory"]:
            _put(gpu, "memory_used_share", min(1.0, values["used"] / values["memory"]), number, line)
    if cells[1].count("ERR!") >= LOST_READINGS:
        _put(gpu, "lost", "GPU is lost (its readings are ERR!)", number, line)


def _small(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _put(gpu: TableGpu, name: str, value: object, number: int, line: str) -> None:
    if value is not None:
        gpu.values.setdefault(name, (value, number, line))


MAX_ROWS = 4096


class SmiProcesses(Direct):
    """Processes that compute, by GPU."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        rows: dict[int, list[tuple[int, Fact[str]]]] = {}
        sampled = False
        for number, text in blob.lines():
            sampled = sampled or text[:MAX_LINE].strip("> \t").split()[:3] == ["#", "gpu", "pid"]
            row = _LIKE["row"].match(text[:MAX_LINE]) or (_LIKE["sample"].match(text[:MAX_LINE]) if sampled else None)
            if row is not None and len(parsed.records) < MAX_ROWS:
                program = known(row[3].strip(), blob.origin(number, text))
                rows.setdefault(int(row[2]), []).append((int(row[1]), program))
                parsed.records.append(number)
        for pid in rows.keys() - {process.pid for process in draft.processes}:
            gpus = tuple(dict.fromkeys(gpu for gpu, _ in rows[pid]))
            draft.processes.append(Process(pid, gpus, rows[pid][0][1]))
        return parsed
