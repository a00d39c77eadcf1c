"""NVLink error counters: growth between two samples, or large totals where there is only one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.checks.nvlink.evidence import no_question
from topodiag.checks.shared.devices import gpu_spec
from topodiag.checks.shared.node.kernel import named
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu, NvLink
from topodiag.model.finding import Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Counter
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_runs, in_s, plural

LIMITS = own_data("checks/nvlink/limits")
"""By counter, its limits; the head of that file explains each key."""

CRC_FAIL_PER_S = 100.0
"""Growth of a CRC counter, events per second and link, from which DCGM fails the GPU instead of warning
(DCGM_LIMIT_MAX_NVLINK_CRC_ERROR, modules/health/DcgmHealthWatch.cpp)."""


FULL = (0xFFFF, 0xFFFF_FFFF)
"""Where a counter of 16 or 32 bits stands still: more than any training at boot counts."""

CRC = frozenset({"crc", "crc_flit", "crc_data"})


@dataclass(frozen=True, slots=True)
class Reading:
    """One counter of one link that is above its limit. `rate`: its growth a second; a bit error rate itself."""

    gpu: Gpu
    link: NvLink
    counter: Counter
    amount: int
    rate: float | None

    @property
    def place(self) -> str:
        return f"{self.gpu.label} link {self.link.index}"


class NvlinkErrors(NodeCheck, id="NVL003"):
    """NVL003: NVLink error counters grow, or are far above normal

    What it finds
        Links whose replay, recovery, CRC or (on NVLink 5) packet, integrity and recovery counters grow between two
        samples. With one sample only: totals far above the errors of training at boot, as a hint; a counter
        that has reached its end is a warning.

    Why it matters
        A replay sends a packet again. During a recovery the link stops for milliseconds, and all rings wait for it: a
        1 GiB all-reduce over 8 H100 takes about 5 ms at 370 GB/s, so one recovery can double it. Growing counters are
        the usual sign before a link goes down for good (NVL001).

    Evidence it reads
        `nvidia-smi nvlink -e` or NVML's counters per link, taken twice with `--sample`. Only growth counts: totals
        run since boot or driver load and show nothing about today. Of AMD's GPUs the block XGMI_WAFL of `amd-smi
        metric`, which counts all links of a GPU together: uncorrectable errors; and, as a hint, `rocm-smi
        --showxgmierr` where it speaks of multiple errors.

    When it stays silent
        No counter was read: unknown. With two samples: no counter grows, at any total. With one sample: small totals.
        A counter that went back (reset, reboot) is no reading. MIG; products without NVLink.

    How to confirm
        topodiag scan --sample 60                 two samples, a minute apart, while a job runs
        nvidia-smi nvlink -e                      the counters by link
        dmesg | grep -iE 'xid|sxid'               Xid 74, 144 to 150

    How to fix
        A link that counts under load is marginal. Drain the node and reset its GPUs together; if it counts again,
        exchange the GPU or its baseboard (with bridges: the bridge). On rack machines the cable cartridge or the
        switch may be the other end: compare both ends' counters.

    References
        NVIDIA DCGM modules/health/DcgmHealthWatch.cpp (MonitorNVLink, MonitorNVLink5Fields) and dcgm_fields limits;
        nvml.h, NVML_FI_DEV_NVLINK_COUNT_*.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        asked = [gpu for gpu in judged.gpus if not no_question(gpu)]
        counts = {gpu.label: gpu.counters["xgmi_uncorrected"] for gpu in asked if "xgmi_uncorrected" in gpu.counters}
        return self._of_blocks(judged, counts) if counts else self._of_links(judged, asked)

    def _of_links(self, judged: Node, asked: Sequence[Gpu]) -> Outcome:
        if not any(_may_count(gpu) for gpu in asked):
            return self.not_applicable(judged, "no NVLinks that could count errors")
        links = [(gpu, link) for gpu in asked for link in gpu.nvlinks]
        counted = [(gpu, link, c) for gpu, link in links for c in _judged(link)]
        readable = [(gpu, link, c) for gpu, link, c in counted if _readable(c)]
        if not readable:
            reset = "the counters went back between the samples (reset)"
            return self.unknown(judged, reset if counted else "no NVLink error counter was read")
        seen = len({(gpu.index, link.index) for gpu, link, _ in readable})
        coverage = Coverage(seen, max(len(links), seen), "links with counters")
        unread = len(counted) - len(readable)
        reset = f"{unread} of {len(counted)} counters went back between the samples (reset)" if unread else ""
        sampled = any(counter.delta is not None for _, _, counter in readable)
        why = "" if sampled else "one sample: only totals could be judged, `--sample` would show growth"
        return self.any_of(judged, self._of_counters(judged, readable), coverage, why, reset)

    def _of_counters(self, node: Node, readable: Sequence[tuple[Gpu, NvLink, Counter]]) -> Iterator[Finding]:
        growing, large = _above_limits(readable)
        if growing:
            yield self._grown(node, growing)
        for name, readings in large.items():
            yield self._large(node, name, readings)

    def _of_blocks(self, judged: Node, counts: Mapping[str, Counter]) -> Outcome:
        """AMD counts errors of all links of a GPU together; corrected ones are normal."""
        coverage = Coverage(len(counts), len(judged.gpus), "GPUs with counters of their xGMI block")
        lost = {label: counter.latest for label, counter in counts.items() if counter.latest.get(0)}
        findings = [
            self.finding(
                self.where(judged, gpus=[label]),
                "errors of a block",
                f"{named(judged, label)}: {plural(fact.get(0), 'uncorrectable error')} in the block of its xGMI links",
                fix=self.steps("link errors"),
                evidence=[fact],
            )
            for label, fact in lost.items()
        ]
        return self.any_of(judged, findings, coverage)

    def _grown(self, node: Node, growing: Mapping[str, Sequence[Reading]]) -> Finding:
        """One finding for all that grows: replays, recoveries and CRC errors of a link have one cause."""
        readings = sorted(chain(*growing.values()), key=lambda reading: -reading.amount)
        places = list(dict.fromkeys(reading.place for reading in readings))
        worst = {name: max(group, key=lambda reading: reading.amount) for name, group in growing.items()}
        crc = any((reading.rate or 0.0) >= CRC_FAIL_PER_S for name in CRC for reading in growing.get(name, ()))
        severity = max(Severity[LIMITS[name]["severity"].upper()] for name in growing)
        seconds = readings[0].counter.interval_s
        during = f" in {in_s(seconds)}" if seconds > 0 else " between two samples"
        names = ", ".join(_words(name) for name in growing)
        return self.finding(
            self.where(node, gpus=_gpus(readings), links=places),
            Advice(Severity.ERROR if crc else severity),
            f"{_who(readings)}: NVLink errors grow on {plural(len(places), 'link')} ({names})",
            observed="; ".join(
                f"{_words(name)} +{reading.amount} on {reading.place}" for name, reading in worst.items()
            )
            + during,
            expected="no growth; "
            + ", ".join(f"1 or more {_words(name)}" for name in growing)
            + " per link is a fault (NVIDIA DCGM's health watch)",
            fix=self.steps("link errors"),
            cost="; ".join(dict.fromkeys(LIMITS[name]["meaning"] for name in growing))
            + "; every ring over such a link waits for it",
            evidence=[fact for reading in readings for fact in (reading.counter.later, reading.counter.first)],
        )

    def _large(self, node: Node, name: str, readings: Sequence[Reading]) -> Finding:
        limit = LIMITS[name]
        worst = max(readings, key=lambda reading: reading.amount)
        serious = name == "link_recovery_failed" or worst.amount in FULL
        where = worst.place if len(readings) == 1 else f"{_who(readings)}, on {plural(len(readings), 'link')}"
        return self.finding(
            self.where(node, gpus=_gpus(readings), links=[reading.place for reading in readings]),
            self.advice("large totals", least=limit["total"], meaning=limit["meaning"]),
            f"{where}: {'' if len(readings) == 1 else 'up to '}{worst.amount} NVLink {_words(name)} errors since boot",
            sure=serious,
            observed=f"{worst.amount} on {worst.place}{', all that it can count' if worst.amount in FULL else ''}",
            fix=self.steps("two samples", "link errors"),
            evidence=[reading.counter.latest for reading in sorted(readings, key=lambda reading: -reading.amount)],
        )


def _judged(link: NvLink) -> list[Counter]:
    return [counter for name, counter in link.counters.items() if name in LIMITS and counter.name == name]


def _may_count(gpu: Gpu) -> bool:
    """Whether a GPU has links, or a product that need not wait for a bridge to have some."""
    spec = gpu_spec(gpu)
    return bool(gpu.nvlinks) or spec is None or not spec.bridged


ByCounter = dict[str, list[Reading]]


def _above_limits(readable: Sequence[tuple[Gpu, NvLink, Counter]]) -> tuple[ByCounter, ByCounter]:
    """By counter, what grew between two samples, and what is large where there is only one."""
    growing: ByCounter = defaultdict(list)
    large: ByCounter = defaultdict(list)
    for gpu, link, counter in readable:
        if counter.delta is not None:
            if counter.delta > 0:
                rate = counter.delta / counter.interval_s if counter.interval_s > 0 else None
                growing[counter.name].append(Reading(gpu, link, counter, counter.delta, rate))
        elif (total := counter.latest.get(0)) >= LIMITS[counter.name]["total"]:
            large[counter.name].append(Reading(gpu, link, counter, total, None))
    return growing, large


def _readable(counter: Counter) -> bool:
    """One reading, or two of which the second is not smaller."""
    if not counter.latest.known:
        return False
    return counter.delta is not None or not (counter.first.known and counter.later.known)


def _who(readings: Sequence[Reading]) -> str:
    return fold_runs(_gpus(readings))


def _gpus(readings: Sequence[Reading]) -> list[str]:
    return list(dict.fromkeys(reading.gpu.label for reading in readings))


def _words(name: str) -> str:
    """A counter's name as part of a sentence: `rx_errors` is `rx`, `crc_flit` is `crc flit`."""
    words = name.removesuffix("_errors").replace("_", " ")
    return words.upper() if words == "crc" else words
