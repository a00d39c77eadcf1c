"""NVML's answers as the collector wrote them (`json/nvml.json`): GPUs, their NVLinks, fabric, PCIe, and pairs.

JSON has no lines worth pointing at, so origins quote the place of an answer in the document and the value.
"""

from __future__ import annotations

from typing import Any

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_GPUS, Blob, Direct, Parsed
from topodiag.evidence.json_values import error_of, integer, load, objects, shown, text
from topodiag.evidence.nvidia.nvidia_words import ANCESTORS, P2P_STATUSES, distinct_bus_ids, distinct_uuids
from topodiag.evidence.nvidia.nvml_gpu import GpuAnswers
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import NotObserved
from topodiag.model.topics import Topic

MAX_PAIRS = MAX_GPUS * MAX_GPUS
MAX_INDEX = 9999

P2P_NAMES = ("read", "write", "nvlink", "atomics", "prop")

_Pair = tuple[int, int, dict[str, Any], str]
"""Two GPUs, the answers about them, and where these stand in the document."""


class Nvml(Direct):
    """The driver's own library: the most trusted source. Its index is the GPU's number everywhere."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        document, why = load(blob)
        if not isinstance(document, dict):
            parsed.leave(blob, None, "", why or "not an object")
            return parsed
        gpus: dict[int, tuple[int, dict[str, Any]]] = {}
        for place, answers in objects(document.get("gpus"), MAX_GPUS):
            index = integer(answers.get("index"), high=MAX_INDEX)
            if index is None or index in gpus:
                parsed.leave(blob, None, f"gpus[{place}]", "no index, or the index of another GPU")
            else:
                gpus[index] = place, answers
        uuids = distinct_uuids((index, text(answers.get("uuid")) or "") for index, (_, answers) in gpus.items())
        bus_ids = distinct_bus_ids((index, _bus_id(answers)) for index, (_, answers) in gpus.items())
        for index, (place, answers) in gpus.items():
            entity = draft.gpu(index=index, bus_id=bus_ids.get(index), uuid=uuids.get(index))
            gpu = GpuAnswers(blob, answers, f"gpus[{place}]", entity)
            gpu.fill(uuids.get(index))
            if index in bus_ids:
                gpu.fill_pcie(draft.pci(bus_ids[index]))
        pairs: list[_Pair] = []
        for place, answers in objects(document.get("pairs"), MAX_PAIRS):
            a, b = integer(answers.get("a"), high=MAX_INDEX), integer(answers.get("b"), high=MAX_INDEX)
            if a is None or b is None or a == b:
                parsed.leave(blob, None, f"pairs[{place}]", "does not name two GPUs")
            else:
                pairs.append((a, b, answers, f"pairs[{place}]"))
        _fill_pairs(blob, pairs, draft)
        error = text(document.get("error"))
        if refused := error is not None and _is_error(error):
            parsed.topics = frozenset({Topic.DRIVER})
        _fill_system(blob, document, draft, error, refused=refused)
        parsed.records = [0] * (1 + len(gpus) + len(pairs))
        return parsed


def _bus_id(answers: dict[str, Any]) -> str:
    pci = answers.get("pci")
    return normalise_bus_id(text(pci.get("bus_id")) or "") or "" if isinstance(pci, dict) else ""


def _fill_pairs(blob: Blob, pairs: list[_Pair], draft: NodeDraft) -> None:
    """Both directions: NVML is asked once for a pair, and where it was asked twice each has its own answer."""
    asked = {(a, b) for a, b, *_ in pairs}
    for a, b, answers, place in pairs:
        one, other = draft.gpu(index=a), draft.gpu(index=b)
        ways = [(one, other)] + ([] if (b, a) in asked else [(other, one)])
        ancestor, given = integer(answers.get("ancestor"), high=999), answers.get("p2p")
        level = ANCESTORS.get(ancestor) if ancestor is not None else None
        codes = {name: integer(given.get(name), high=999) for name in P2P_NAMES} if isinstance(given, dict) else {}
        for ends in ways:
            if level is not None:
                draft.pair("pcie", *ends, level, blob.origin(text=f"{place}.ancestor: {ancestor}"))
            for name, code in codes.items():
                if code is not None:
                    word = P2P_STATUSES.get(code, "U")
                    draft.pair(f"p2p:{name}", *ends, word, blob.origin(text=f"{place}.p2p.{name}: {code}"))


def _is_error(word: str) -> bool:
    """Whether NVML itself answered with an error by name: one word. In other words the collector says why it did not
    get as far as NVML."""
    return word.isalpha() and word[0].isupper()


def _fill_system(blob: Blob, document: dict[str, Any], draft: NodeDraft, error: str | None, *, refused: bool) -> None:
    os = draft.single("os")
    if refused:
        os.offer("nvml_error", error, blob.origin(text=f"error: {error}"))
    elif error is not None:
        draft.missing.append(NotObserved("NVML", error, of=frozenset({Topic.GPUS})))
    version = document.get("driver_version")
    if error_of(version) is None:
        os.offer("driver_version", text(version), blob.origin(text=f"driver_version: {shown(version)}"))
    number = integer(document.get("cuda_driver_version"), low=1000, high=999_999)
    if number is not None:
        # CUDA packs its version as 1000 x major + 10 x minor (cuda.h CUDA_VERSION).
        origin = blob.origin(text=f"cuda_driver_version: {number}")
        os.offer("cuda_version", f"{number // 1000}.{number % 1000 // 10}", origin)
