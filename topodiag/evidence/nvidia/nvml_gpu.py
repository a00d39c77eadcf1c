"""What NVML's answers about one GPU mean: every call on its own, so that one that failed costs one value."""

from __future__ import annotations

from typing import Any

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import Blob, reading
from topodiag.evidence.json_values import error_of, integer, member, objects, shown, text
from topodiag.evidence.nvidia.nvidia_words import (
    COMPUTE_MODES,
    FABRIC_STATES,
    FABRIC_SUMMARIES,
    LOST_WORDS,
    NVLINK_FIELDS,
    NVLINK_REMOTE_TYPES,
    NVLINK_STATES,
    NVLINK_VERSIONS,
    NVML_ERRORS,
    RECOVERY_ACTIONS,
    event_reasons,
)
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.cpulist import MAX_CPU
from topodiag.model.fabric_health import fabric_bandwidth, fabric_problems
from topodiag.words.fold import fold_numbers

MAX_LINKS = 64
MAX_SPEED_MBPS = 10_000_000
MAX_MHZ = 20_000
MAX_WATTS = 20_000
_CLOCK_UNKNOWN = 32
"""NVML_PSTATE_UNKNOWN."""
_FIELD_STATE, _FIELD_SPEED = "165", "164"


class GpuAnswers:
    """The answers about one GPU and the entity that they are offered to. `place` is where they stand in the file."""

    def __init__(self, blob: Blob, answers: dict[str, Any], place: str, entity: Entity) -> None:
        self.blob = blob
        self.answers = answers
        self.place = place
        self.entity = entity

    def fill(self, uuid: str | None) -> None:
        """Offer everything but the PCIe link."""
        get = self.answers.get
        name = text(get("name"))
        self._offer(self.entity, "name", "name", get("name"), reading(name))
        if uuid is not None:
            self._offer(self.entity, "uuid", "uuid", get("uuid"), uuid)
        self._offer(self.entity, "board", "board_part_number", get("board_part_number"), text(get("board_part_number")))
        self._number("minor", "minor", 0, 4095)
        self._number("memory_numa", "numa_node", 0, 65_535)
        self._capability(get("compute_capability"))
        self._cpus(get("cpu_affinity"))
        self._modes()
        self._lost()
        self._c2c(get("c2c"))
        self._fabric(get("fabric"))
        self._memory_errors()
        for place, answers in objects(get("nvlinks"), MAX_LINKS):
            self._nvlink(f"nvlinks[{place}]", answers)
        if (error := error_of(get("nvlinks"))) is not None:
            note = "not supported" if error == "NotSupported" else error
            self._offer(self.entity, "nvlink_note", "nvlinks", get("nvlinks"), note)

    def fill_pcie(self, pci: Entity) -> None:
        """Offer the PCIe link to the GPU's function. NVML's plain maximum accounts for the slot, the GPU's does not."""
        for name, key, high in (
            ("gen", "pcie_gen", 8),
            ("width", "pcie_width", 32),
            ("slot_max_gen", "pcie_max_gen", 8),
            ("max_gen", "pcie_gpu_max_gen", 8),
            ("max_width", "pcie_max_width", 32),
        ):
            if key in self.answers:
                given = self.answers[key]
                self._offer(pci, name, key, given, integer(given, low=1, high=high))
        self._count(pci, "replay", "pcie_replay", self.answers.get("pcie_replay"))

    def _origin(self, path: str, given: object) -> Any:
        return self.blob.origin(text=f"{self.place}.{path}: {shown(given)}")

    def _offer(self, entity: Entity, name: str, path: str, given: object, value: object) -> None:
        """Offer a value, or the reason for having none; nothing where the call was not made."""
        if value is not None:
            entity.offer(name, value, self._origin(path, given))
        elif given is not None:
            why = error_of(given) or "not a value that NVML gives"
            entity.unread(name, why, self._origin(path, given))

    def _number(self, name: str, key: str, low: int, high: int) -> None:
        given = self.answers.get(key)
        self._offer(self.entity, name, key, given, integer(given, low, high))

    def _count(self, entity: Entity, name: str, path: str, given: object) -> None:
        value = integer(given, high=2**63 - 1)
        if value is not None:
            entity.count(name, value, self._origin(path, given))

    def _capability(self, given: object) -> None:
        value = None
        if isinstance(given, list) and len(given) == 2:
            major, minor = integer(given[0], 1, 99), integer(given[1], 0, 9)
            value = major * 10 + minor if major is not None and minor is not None else None
        self._offer(self.entity, "sm", "compute_capability", given, value)

    def _cpus(self, given: object) -> None:
        """Words of 64 cpus each, the lowest first, as numbers or hexadecimal."""
        if not isinstance(given, list):
            self._offer(self.entity, "cpu_affinity", "cpu_affinity", given, None)
            return
        cpus: list[int] = []
        for place, word in enumerate(given[: MAX_CPU // 64]):
            mask = _mask(word)
            if mask is None:
                self._offer(self.entity, "cpu_affinity", "cpu_affinity", given, None)
                return
            cpus += [place * 64 + bit for bit in range(64) if mask >> bit & 1]
        self._offer(self.entity, "cpu_affinity", "cpu_affinity", given, fold_numbers(cpus) or None)

    def _modes(self) -> None:
        get = self.answers.get
        mig = get("mig_mode")
        current = mig[0] if isinstance(mig, list) and mig else None
        self._offer(self.entity, "mig", "mig_mode", mig, {0: False, 1: True}.get(_key(current)))
        given = get("compute_mode")
        self._offer(self.entity, "compute_mode", "compute_mode", given, COMPUTE_MODES.get(_key(given)))
        given = get("persistence")
        self._offer(self.entity, "persistence", "persistence", given, {0: False, 1: True}.get(_key(given)))
        given = member(get("utilization"), "gpu")
        self._offer(self.entity, "utilization", "utilization.gpu", given, integer(given, 0, 100))
        given = member(get("utilization"), "memory")
        self._offer(self.entity, "memory_utilization", "utilization.memory", given, integer(given, 0, 100))
        for name, key in (("power_w", "power_mw"), ("power_limit_w", "power_limit_mw")):
            given = get(key)
            milliwatts = integer(given, 0, 1000 * MAX_WATTS)
            self._offer(self.entity, name, key, given, None if milliwatts is None else milliwatts / 1000)
        given = get("pstate")
        pstate = integer(given, 0, _CLOCK_UNKNOWN - 1)
        self._offer(self.entity, "pstate", "pstate", given, pstate)
        given = get("event_reasons")
        mask = integer(given)
        self._offer(self.entity, "throttle", "event_reasons", given, None if mask is None else event_reasons(mask))
        for name, key in (("sm_clock_mhz", "sm"), ("max_sm_clock_mhz", "sm_max")):
            given = member(get("clocks"), key)
            self._offer(self.entity, name, f"clocks.{key}", given, integer(given, 1, MAX_MHZ))
        given = get("recovery_action")
        self._offer(self.entity, "recovery_action", "recovery_action", given, RECOVERY_ACTIONS.get(_key(given)))

    def _lost(self) -> None:
        """Any call that answered that the GPU is lost, or the GPU's own error."""
        for key, given in (("error", self.answers), *self.answers.items()):
            words = LOST_WORDS.get(error_of(given) or "")
            if words is not None:
                self._offer(self.entity, "lost", key, given.get("error"), words)
                return

    def _c2c(self, given: object) -> None:
        count = member(given, "count")
        value = integer(count, 0, 64)
        self._offer(self.entity, "c2c", "c2c.count", count, None if value is None else value > 0)
        speeds = [
            integer(each.get("max_bw_mbps"), 1, MAX_SPEED_MBPS)
            for _, each in objects(member(given, "links"), MAX_LINKS)
            if _key(each.get("status")) == 1
        ]
        known = [speed for speed in speeds if speed is not None]
        if known and len(known) == len(speeds):
            self._offer(self.entity, "c2c_gbs", "c2c.links", member(given, "links"), sum(known) / 1000)

    def _fabric(self, given: object) -> None:
        if not isinstance(given, dict):
            return
        child = self.entity.child("fabric", 0)
        state, status = member(given, "state"), member(given, "status")
        self._offer(child, "state", "fabric.state", state, FABRIC_STATES.get(_key(state)))
        code = integer(status, 0, 9999)
        word = None if code is None else NVML_ERRORS.get(code, f"error {code}")
        if _key(state) == 3 or code:
            # Before the registration has ended, the status is a zero that nothing has set.
            self._offer(child, "status", "fabric.status", status, word)
        clique, cluster = given.get("clique_id"), given.get("cluster_uuid")
        self._offer(child, "clique_id", "fabric.clique_id", clique, integer(clique, 0, 2**32 - 1))
        self._offer(child, "cluster_uuid", "fabric.cluster_uuid", cluster, text(cluster))
        summary = given.get("health_summary")
        if _key(summary) != 0:
            self._offer(child, "health", "fabric.health_summary", summary, FABRIC_SUMMARIES.get(_key(summary)))
        mask = integer(given.get("health_mask"), high=2**32 - 1)
        if mask:
            self._offer(child, "bandwidth", "fabric.health_mask", hex(mask), fabric_bandwidth(mask))
            self._offer(child, "problems", "fabric.health_mask", hex(mask), fabric_problems(mask))

    def _memory_errors(self) -> None:
        ecc = self.answers.get("ecc")
        if isinstance(ecc, dict):
            for span in ("volatile", "aggregate"):
                for kind in ("corrected", "uncorrected"):
                    key = f"{span}_{kind}"
                    self._count(self.entity, f"ecc_{key}", f"ecc.{key}", ecc.get(key))
        rows = self.answers.get("remapped_rows")
        if isinstance(rows, list) and len(rows) == 4:
            names = ("correctable", "uncorrectable", "pending", "failure")
            for place, (name, value) in enumerate(zip(names, rows, strict=True)):
                number = int(value) if isinstance(value, bool) else value
                self._count(self.entity, f"remapped_{name}", f"remapped_rows[{place}]", number)

    def _nvlink(self, path: str, answers: dict[str, Any]) -> None:
        number = integer(answers.get("link"), 0, MAX_LINKS - 1)
        if number is None or _is_no_link(answers):
            return
        link = self.entity.child("nvlink", number)
        fields = answers.get("fields")
        fields = fields if isinstance(fields, dict) else {}
        get = answers.get
        # Field 165 tells sleep and disabled traffic from active; the older call does not.
        key, given = ("state", get("state"))
        if _key(fields.get(_FIELD_STATE)) in NVLINK_STATES:
            key, given = (f"fields.{_FIELD_STATE}", fields[_FIELD_STATE])
        self._offer(link, "state", f"{path}.{key}", given, NVLINK_STATES.get(_key(given)))
        given = get("version")
        self._offer(link, "version", f"{path}.version", given, NVLINK_VERSIONS.get(_key(given)))
        speed = get("speed_mbps") if integer(get("speed_mbps"), 1) is not None else fields.get(_FIELD_SPEED)
        mbps = integer(speed, 1, MAX_SPEED_MBPS)
        self._offer(link, "line_gbs", f"{path}.speed_mbps", speed, None if mbps is None else mbps / 1000)
        self._far_end(link, path, answers)
        capability = member(get("capability"), "0")
        self._offer(
            link, "p2p_supported", f"{path}.capability.0", capability, {0: False, 1: True}.get(_key(capability))
        )
        errors = get("errors")
        for name in ("replay", "recovery", "crc_flit", "crc_data", "ecc"):
            self._count(link, name, f"{path}.errors.{name}", errors.get(name) if isinstance(errors, dict) else None)
        for number, name in NVLINK_FIELDS.items():
            self._count(link, name, f"{path}.fields.{number}", fields.get(str(number)))

    def _far_end(self, link: Entity, path: str, answers: dict[str, Any]) -> None:
        given = answers.get("remote_bus_id")
        bus_id = normalise_bus_id(text(given) or "")
        self._offer(link, "remote_bus_id", f"{path}.remote_bus_id", given, bus_id)
        given = answers.get("remote_type")
        kind = NVLINK_REMOTE_TYPES.get(_key(given))
        if bus_id == NVSWITCH_BUS_ID and kind in (None, "unknown"):
            self._offer(link, "remote_type", f"{path}.remote_bus_id", bus_id, "switch")
        else:
            self._offer(link, "remote_type", f"{path}.remote_type", given, kind)


def _key(value: object) -> int:
    """A value as a key of the tables of numbers: -1, which none of them has, for what is no number."""
    number = integer(int(value) if isinstance(value, bool) else value, 0, 2**32 - 1)
    return -1 if number is None else number


def _is_no_link(answers: dict[str, Any]) -> bool:
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
