"""NVML's answers as the collector wrote them (`json/nvml.json`): GPUs, their NVLinks, fabric, PCIe, and pairs. Every
call stands on its own, so that one that failed costs one value.

JSON has no lines worth pointing at, so origins quote the place of an answer in the document and the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import MAX_GPUS, Blob, reading
from topodiag.evidence.json_values import error_of, integer, load, member, objects, shown, text
from topodiag.evidence.nvidia import nvidia_words as nvidia
from topodiag.evidence.nvidia.nvidia_words import NUMBERS
from topodiag.evidence.page import OfPage, Page
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.cpulist import MAX_CPU
from topodiag.model.links import fabric_bandwidth, fabric_problems
from topodiag.model.provenance import NotObserved, Origin, Topic
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_numbers

MAX_PAIRS = MAX_GPUS * MAX_GPUS
MAX_INDEX = 9999

P2P_NAMES = ("read", "write", "nvlink", "atomics", "prop")


class Nvml(OfPage):
    """The driver's own library: the most trusted source. Its index is the GPU's number everywhere."""

    def read_page(self, page: Page) -> None:
        blob, draft, parsed = page.blob, page.draft, page.parsed
        document, why = load(blob)
        if not isinstance(document, dict):
            parsed.leave(blob, None, "", why or "not an object")
            return
        gpus: dict[int, tuple[int, dict[str, Any]]] = {}
        for place, answers in objects(document.get("gpus"), MAX_GPUS):
            index = integer(answers.get("index"), high=MAX_INDEX)
            if index is None or index in gpus:
                parsed.leave(blob, None, f"gpus[{place}]", "no index, or the index of another GPU")
            else:
                gpus[index] = place, answers
        uuids = nvidia.distinct_uuids((index, text(answers.get("uuid")) or "") for index, (_, answers) in gpus.items())
        bus_ids = nvidia.distinct((index, _bus_id(answers)) for index, (_, answers) in gpus.items())
        for index, (place, answers) in gpus.items():
            entity = draft.gpu(index=index, bus_id=bus_ids.get(index), uuid=uuids.get(index))
            gpu = GpuAnswers(blob, answers, f"gpus[{place}]", entity)
            gpu.fill(uuids.get(index))
            if index in bus_ids:
                gpu.fill_pcie(draft.pci(bus_ids[index]))
        parsed.records = [0] * (1 + len(gpus) + _fill_pairs(page, document))
        _fill_system(page, document)


def _bus_id(answers: dict[str, Any]) -> str:
    pci = answers.get("pci")
    return normalise_bus_id(text(pci.get("bus_id")) or "") or "" if isinstance(pci, dict) else ""


def _fill_pairs(page: Page, document: dict[str, Any]) -> int:
    """Both directions: NVML is asked once for a pair, and where it was asked twice each has its own answer. How many
    pairs there are."""
    blob, draft = page.blob, page.draft
    pairs: list[tuple[int, int, dict[str, Any], str]] = []
    for number, answers in objects(document.get("pairs"), MAX_PAIRS):
        a, b = integer(answers.get("a"), high=MAX_INDEX), integer(answers.get("b"), high=MAX_INDEX)
        if a is None or b is None or a == b:
            page.parsed.leave(blob, None, f"pairs[{number}]", "does not name two GPUs")
        else:
            pairs.append((a, b, answers, f"pairs[{number}]"))
    asked = {(a, b) for a, b, *_ in pairs}
    for a, b, answers, place in pairs:
        one, other = draft.gpu(index=a), draft.gpu(index=b)
        ways = [(one, other)] + ([] if (b, a) in asked else [(other, one)])
        ancestor, given = integer(answers.get("ancestor"), high=999), answers.get("p2p")
        level = NUMBERS["ancestors"].get(ancestor) if ancestor is not None else None
        codes = {name: integer(given.get(name), high=999) for name in P2P_NAMES} if isinstance(given, dict) else {}
        for ends in ways:
            if level is not None:
                draft.pair("pcie", *ends, level, blob.origin(text=f"{place}.ancestor: {ancestor}"))
            for name, code in codes.items():
                if code is not None:
                    word = NUMBERS["p2p"].get(code, "U")
                    draft.pair(f"p2p:{name}", *ends, word, blob.origin(text=f"{place}.p2p.{name}: {code}"))
    return len(pairs)


def _fill_system(page: Page, document: dict[str, Any]) -> None:
    blob, os, error = page.blob, page.draft.single("os"), text(document.get("error"))
    if error is not None and error.isalpha() and error[0].isupper():
        # One word is an error of NVML by its name.
        page.parsed.topics = frozenset({Topic.DRIVER})
        os.offer("nvml_error", error, blob.origin(text=f"error: {error}"))
    elif error is not None:
        # In other words the collector says why it did not get as far as NVML.
        page.draft.missing.append(NotObserved("NVML", error, of=frozenset({Topic.GPUS})))
    version = document.get("driver_version")
    if error_of(version) is None:
        os.offer("driver_version", text(version), blob.origin(text=f"driver_version: {shown(version)}"))
    number = integer(document.get("cuda_driver_version"), low=1000, high=999_999)
    if number is not None:
        # CUDA packs its version as 1000 x major + 10 x minor (cuda.h CUDA_VERSION).
        origin = blob.origin(text=f"cuda_driver_version: {number}")
        os.offer("cuda_version", f"{number // 1000}.{number % 1000 // 10}", origin)


MAX_LINKS = 64
MAX_SPEED_MBPS = 10_000_000
_FIELD_STATE, _FIELD_SPEED = "165", "164"


Convert = Callable[[Any], object]
Answers = Mapping[str, Any]
"""What a call answered, by its short name: a value, or an object with the error's name."""


def _one_of(table: str) -> Convert:
    return lambda given: NUMBERS[table].get(_key(given))


def _flag(given: object) -> object:
    return {0: False, 1: True}.get(_key(given))


def _mig(given: object) -> object:
    """Of the modes, the current one stands first."""
    return _flag(given[0]) if isinstance(given, list) and given else None


def _capability(given: object) -> int | None:
    if not isinstance(given, list) or len(given) != 2:
        return None
    major, minor = integer(given[0], 1, 99), integer(given[1], 0, 9)
    return major * 10 + minor if major is not None and minor is not None else None


def _cpus(given: object) -> str | None:
    """Words of 64 cpus each, the lowest first, as numbers or hexadecimal."""
    masks = [_mask(word) for word in given[: MAX_CPU // 64]] if isinstance(given, list) else [None]
    if None in masks:
        return None
    cpus = [at * 64 + bit for at, mask in enumerate(masks) for bit in range(64) if (mask or 0) >> bit & 1]
    return fold_numbers(cpus) or None


def _reasons(given: object) -> tuple[str, ...] | None:
    mask = integer(given)
    return None if mask is None else nvidia.event_reasons(mask)


def _watts(given: object) -> float | None:
    milliwatts = integer(given)
    return None if milliwatts is None else nvidia.bounded("power_w", milliwatts / 1000)


_CONVERT: Mapping[str, Convert] = {
    "name": lambda given: reading(text(given)), "board": text, "sm": _capability, "cpu_affinity": _cpus, "mig": _mig,
    "compute_mode": _one_of("compute-modes"), "persistence": _flag, "power_w": _watts, "power_limit_w": _watts,
    "throttle": _reasons, "recovery_action": _one_of("recovery-actions"),
    "c2c": lambda given: None if (count := integer(given, 0, 64)) is None else count > 0,
    "state": _one_of("fabric-states"), "cluster_uuid": text, "version": _one_of("nvlink-versions"),
}  # fmt: skip
"""The values of fields by NVML's answers; those of all others are whole numbers within bounds."""
_SPANS = ("volatile_corrected", "volatile_uncorrected", "aggregate_corrected", "aggregate_uncorrected")
_ROWS = ("correctable", "uncorrectable", "pending", "failure")


class GpuAnswers:
    """The answers about one GPU and the entity that they are offered to. `place` is where they stand in the file."""

    def __init__(self, blob: Blob, answers: Answers, place: str, entity: Entity) -> None:
        self.blob = blob
        self.answers = answers
        self.place = place
        self.entity = entity

    def fill(self, uuid: str | None) -> None:
        """Offer everything but the PCIe link."""
        get = self.answers.get
        self._offer_all(self.entity, "nvml-gpu", self.answers)
        if uuid is not None:
            self._offer(self.entity, "uuid", "uuid", get("uuid"), uuid)
        self._lost()
        self._c2c_speed(get("c2c"))
        self._fabric(get("fabric"))
        self._memory_errors()
        for place, answers in objects(get("nvlinks"), MAX_LINKS):
            self._nvlink(f"nvlinks[{place}]", answers)
        if (error := error_of(get("nvlinks"))) is not None:
            note = "not supported" if error == "NotSupported" else error
            self._offer(self.entity, "nvlink_note", "nvlinks", get("nvlinks"), note)

    def fill_pcie(self, pci: Entity) -> None:
        """Offer the PCIe link to the GPU's function."""
        self._offer_all(pci, "nvml-pci", self.answers)
        self._count(pci, "replay", "pcie_replay", self.answers.get("pcie_replay"))

    def _origin(self, path: str, given: object) -> Origin:
        return self.blob.origin(text=f"{self.place}.{path}: {shown(given)}")

    def _offer(self, entity: Entity, name: str, path: str, given: object, value: object) -> None:
        """Offer a value, or the reason for having none; nothing where the call was not made."""
        if value is not None or given is not None:
            entity.offer(name, value, self._origin(path, given), error_of(given) or "not a value that NVML gives")

    def _offer_all(self, entity: Entity, table: str, answers: Answers, above: str = "") -> None:
        """Offer the fields of a table, each by the answer that holds it; `above` is where the answers stand."""
        for path, name in own_data("evidence/nvidia/names")[table].items():
            first, _, below = path.partition(".")
            given = member(answers.get(first), below) if below else answers.get(first)
            value = _CONVERT[name](given) if name in _CONVERT else nvidia.bounded(name, integer(given))
            self._offer(entity, name, above + path, given, value)

    def _count(self, entity: Entity, name: str, path: str, given: object) -> None:
        value = integer(given, high=2**63 - 1)
        if value is not None:
            entity.count(name, value, self._origin(path, given))

    def _lost(self) -> None:
        """Any call that answered that the GPU is lost, or the GPU's own error."""
        for key, given in (("error", self.answers), *self.answers.items()):
            words = nvidia.LOST_WORDS.get(error_of(given) or "")
            if words is not None:
                self._offer(self.entity, "lost", key, given.get("error"), words)
                return

    def _c2c_speed(self, given: object) -> None:
        speeds = [
            integer(link.get("max_bw_mbps"), 1, MAX_SPEED_MBPS)
            for _, link in objects(member(given, "links"), MAX_LINKS)
            if _key(link.get("status")) == 1
        ]
        known = [speed for speed in speeds if speed is not None]
        if known and len(known) == len(speeds):
            self._offer(self.entity, "c2c_gbs", "c2c.links", member(given, "links"), sum(known) / 1000)

    def _fabric(self, given: object) -> None:
        if not isinstance(given, dict):
            return
        child = self.entity.child("fabric", 0)
        self._offer_all(child, "nvml-fabric", self.answers)
        status, summary = member(given, "status"), given.get("health_summary")
        code = integer(status, 0, 9999)
        if _key(member(given, "state")) == 3 or code:
            # Before the registration has ended, the status is a zero that nothing has set.
            word = None if code is None else NUMBERS["nvml-errors"].get(code, f"error {code}")
            self._offer(child, "status", "fabric.status", status, word)
        if _key(summary) != 0:
            health = NUMBERS["fabric-health"].get(_key(summary))
            self._offer(child, "health", "fabric.health_summary", summary, health)
        mask = integer(given.get("health_mask"), high=2**32 - 1)
        if mask:
            self._offer(child, "bandwidth", "fabric.health_mask", hex(mask), fabric_bandwidth(mask))
            self._offer(child, "problems", "fabric.health_mask", hex(mask), fabric_problems(mask))

    def _memory_errors(self) -> None:
        for key in _SPANS:
            self._count(self.entity, f"ecc_{key}", f"ecc.{key}", member(self.answers.get("ecc"), key))
        rows = self.answers.get("remapped_rows")
        if isinstance(rows, list) and len(rows) == len(_ROWS):
            for place, (name, value) in enumerate(zip(_ROWS, rows, strict=True)):
                number = int(value) if isinstance(value, bool) else value
                self._count(self.entity, f"remapped_{name}", f"remapped_rows[{place}]", number)

    def _nvlink(self, path: str, answers: Answers) -> None:
        number = integer(answers.get("link"), 0, MAX_LINKS - 1)
        if number is None or _is_no_link(answers):
            return
        link = self.entity.child("nvlink", number)
        fields = answers.get("fields")
        fields = fields if isinstance(fields, dict) else {}
        self._offer_all(link, "nvml-link", answers, f"{path}.")
        # Field 165 tells sleep and disabled traffic from active; the older call does not.
        key, given = "state", answers.get("state")
        if _key(fields.get(_FIELD_STATE)) in NUMBERS["nvlink-states"]:
            key, given = f"fields.{_FIELD_STATE}", fields[_FIELD_STATE]
        self._offer(link, "state", f"{path}.{key}", given, NUMBERS["nvlink-states"].get(_key(given)))
        speed = answers.get("speed_mbps")
        speed = speed if integer(speed, 1) is not None else fields.get(_FIELD_SPEED)
        mbps = integer(speed, 1, MAX_SPEED_MBPS)
        self._offer(link, "line_gbs", f"{path}.speed_mbps", speed, None if mbps is None else mbps / 1000)
        self._far_end(link, path, answers)
        for name in ("replay", "recovery", "crc_flit", "crc_data", "ecc"):
            self._count(link, name, f"{path}.errors.{name}", member(answers.get("errors"), name))
        for number, name in NUMBERS["nvlink-fields"].items():
            self._count(link, name, f"{path}.fields.{number}", fields.get(str(number)))

    def _far_end(self, link: Entity, path: str, answers: Answers) -> None:
        given, written = answers.get("remote_type"), answers.get("remote_bus_id")
        bus_id, kind = normalise_bus_id(text(written) or ""), NUMBERS["nvlink-ends"].get(_key(given))
        self._offer(link, "remote_bus_id", f"{path}.remote_bus_id", written, bus_id)
        if bus_id == NVSWITCH_BUS_ID and kind in (None, "unknown"):
            self._offer(link, "remote_type", f"{path}.remote_bus_id", bus_id, "switch")
        else:
            self._offer(link, "remote_type", f"{path}.remote_type", given, kind)


def _key(value: object) -> int:
    """A value as a key of the tables of numbers: -1, which none of them has, for what is no number."""
    number = integer(int(value) if isinstance(value, bool) else value, 0, 2**32 - 1)
    return -1 if number is None else number


def _is_no_link(answers: Answers) -> bool:
    """Whether NVML has no link of this number: asked past the last one, it refuses the argument."""
    refused = error_of(answers.get("state")) in ("InvalidArgument", "NotSupported")
    return refused and all(
        error_of(value) is not None or not value for name, value in answers.items() if name not in ("link", "fields")
    )


def _mask(word: object) -> int | None:
    if isinstance(word, str) and len(word) <= 18:
        try:
            word = int(word, 16)
        except ValueError:
            return None
    return integer(word)
