"""NVML's answers as the collector wrote them (`json/nvml.json`): GPUs, their NVLinks, fabric, PCIe, and pairs.

The records are the answers by their place in the document; JSON has no lines worth pointing at, so origins quote the
place and the value.
"""

from __future__ import annotations

from typing import Any

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.json_values import error_of, integer, load, objects, shown, text
from topodiag.evidence.nvidia.nvidia_words import ANCESTORS, P2P_STATUSES, distinct_bus_ids, distinct_uuids
from topodiag.evidence.nvidia.nvml_gpu import GpuAnswers
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import NotObserved
from topodiag.model.topics import Topic

MAX_GPUS = 256
MAX_PAIRS = MAX_GPUS * MAX_GPUS
MAX_INDEX = 9999

P2P_NAMES = ("read", "write", "nvlink", "atomics", "prop")

_MARKS = ("nvml_version", "cuda_driver_version", "nvlinks", "device_count", "pcie_gpu_max_gen", "pcie_replay")
_ALONE = regex(r'\s{0,20}\{\s{0,20}"error"\s{0,8}:\s{0,8}"[^"]{1,80}"\s{0,20}\}\s{0,20}$')


@dataclass(frozen=True, slots=True)
class NvmlSystem:
    """What NVML says of the driver; `error` is the failure's name when it did not come up."""

    answers: dict[str, Any]
    error: str | None


@dataclass(frozen=True, slots=True)
class NvmlGpu:
    """The answers about one GPU by the calls' short names. `place` is its position in the document."""

    index: int
    place: int
    answers: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NvmlPair:
    """The answers about two GPUs, by index."""

    a: int
    b: int
    place: int
    ancestor: int | None
    p2p: tuple[tuple[str, int], ...]


NvmlRecord = NvmlSystem | NvmlGpu | NvmlPair


class Nvml(Source[NvmlRecord]):
    """The driver's own library: the most trusted source. Its index is the GPU's number everywhere."""

    def recognises(self, head: str) -> bool:
        if not head.lstrip().startswith("{"):
            return False
        return bool(_ALONE.match(head[:200])) or ('"gpus"' in head and any(f'"{name}"' in head for name in _MARKS))

    def parse(self, blob: Blob) -> Parsed[NvmlRecord]:
        parsed: Parsed[NvmlRecord] = Parsed()
        document, why = load(blob)
        if not isinstance(document, dict):
            parsed.leave(blob, None, "", why or "not an object")
            return parsed
        own = {name: value for name, value in document.items() if name not in ("gpus", "pairs")}
        parsed.records.append(NvmlSystem(own, text(document.get("error"))))
        seen: set[int] = set()
        for place, answers in objects(document.get("gpus"), MAX_GPUS):
            index = integer(answers.get("index"), high=MAX_INDEX)
            if index is None or index in seen:
                parsed.leave(blob, None, f"gpus[{place}]", "no index, or the index of another GPU")
                continue
            seen.add(index)
            parsed.records.append(NvmlGpu(index, place, answers))
        for place, answers in objects(document.get("pairs"), MAX_PAIRS):
            pair = _pair(place, answers)
            if pair is None:
                parsed.leave(blob, None, f"pairs[{place}]", "does not name two GPUs")
            else:
                parsed.records.append(pair)
        return parsed

    def told(self, parsed: Parsed[NvmlRecord]) -> frozenset[Topic]:
        failed = any(_refused(record) for record in parsed.records if isinstance(record, NvmlSystem))
        return frozenset({Topic.DRIVER}) if failed else self.speaks_of

    def fill(self, blob: Blob, parsed: Parsed[NvmlRecord], draft: NodeDraft) -> None:
        gpus = [record for record in parsed.records if isinstance(record, NvmlGpu)]
        uuids = distinct_uuids((gpu.index, text(gpu.answers.get("uuid")) or "") for gpu in gpus)
        bus_ids = distinct_bus_ids((gpu.index, _bus_id(gpu)) for gpu in gpus)
        for gpu in gpus:
            entity = draft.gpu(index=gpu.index, bus_id=bus_ids.get(gpu.index), uuid=uuids.get(gpu.index))
            answers = GpuAnswers(blob, gpu.answers, f"gpus[{gpu.place}]", entity)
            answers.fill(uuids.get(gpu.index))
            if gpu.index in bus_ids:
                answers.fill_pcie(draft.pci(bus_ids[gpu.index]))
        pairs = [record for record in parsed.records if isinstance(record, NvmlPair)]
        _fill_pairs(blob, pairs, draft)
        for record in parsed.records:
            if isinstance(record, NvmlSystem):
                _fill_system(blob, record, draft)


def _bus_id(gpu: NvmlGpu) -> str:
    pci = gpu.answers.get("pci")
    return normalise_bus_id(text(pci.get("bus_id")) or "") or "" if isinstance(pci, dict) else ""


def _pair(place: int, answers: dict[str, Any]) -> NvmlPair | None:
    a, b = integer(answers.get("a"), high=MAX_INDEX), integer(answers.get("b"), high=MAX_INDEX)
    if a is None or b is None or a == b:
        return None
    given = answers.get("p2p")
    codes = {name: integer(given.get(name), high=999) for name in P2P_NAMES} if isinstance(given, dict) else {}
    known = tuple((name, code) for name, code in codes.items() if code is not None)
    return NvmlPair(a, b, place, integer(answers.get("ancestor"), high=999), known)


def _fill_pairs(blob: Blob, pairs: list[NvmlPair], draft: NodeDraft) -> None:
    """Both directions: NVML is asked once for a pair, and where it was asked twice each has its own answer."""
    asked = {(pair.a, pair.b) for pair in pairs}
    for pair in pairs:
        one, other = draft.gpu(index=pair.a), draft.gpu(index=pair.b)
        ways = [(one, other)] + ([] if (pair.b, pair.a) in asked else [(other, one)])
        level = ANCESTORS.get(pair.ancestor) if pair.ancestor is not None else None
        for a, b in ways:
            if level is not None:
                draft.pair("pcie", a, b, level, blob.origin(text=f"pairs[{pair.place}].ancestor: {pair.ancestor}"))
            for name, code in pair.p2p:
                word = P2P_STATUSES.get(code, "U")
                draft.pair(f"p2p:{name}", a, b, word, blob.origin(text=f"pairs[{pair.place}].p2p.{name}: {code}"))


def _refused(system: NvmlSystem) -> bool:
    """Whether NVML itself answered with an error by name: one word. In other words the collector says why it did not
    get as far as NVML."""
    return system.error is not None and system.error.isalpha() and system.error[0].isupper()


def _fill_system(blob: Blob, system: NvmlSystem, draft: NodeDraft) -> None:
    os = draft.single("os")
    if system.error is not None and _refused(system):
        os.offer("nvml_error", system.error, blob.origin(text=f"error: {system.error}"))
    elif system.error is not None:
        draft.missing.append(NotObserved("NVML", system.error, of=frozenset({Topic.GPUS})))
    version = system.answers.get("driver_version")
    if error_of(version) is None:
        os.offer("driver_version", text(version), blob.origin(text=f"driver_version: {shown(version)}"))
    number = integer(system.answers.get("cuda_driver_version"), low=1000, high=999_999)
    if number is not None:
        # CUDA packs its version as 1000 x major + 10 x minor (cuda.h CUDA_VERSION).
        origin = blob.origin(text=f"cuda_driver_version: {number}")
        os.offer("cuda_version", f"{number // 1000}.{number % 1000 // 10}", origin)
