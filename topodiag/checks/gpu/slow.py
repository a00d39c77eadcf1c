"""GPUs that are slow: clocks held down by heat, power or a fault, and tests that somebody ran: copies that are far
slower than those of the peers, and DCGM's failed tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.comparisons import far, majority
from topodiag.checks.shared.node.kernel import no_gpu
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_runs, grouped, in_gbs, in_mhz, in_w, spell_gbs

HARDWARE: dict[str, str] = own_data("checks/gpu/slow")["hardware"]
"""Reasons that halve the clock or worse, the more telling first."""


STUCK_SHARE = 0.5
"""Share of the highest SM clock below which a busy GPU is called slow: load and power caps keep it above 60 %."""
CAPPED_SHARE = 0.8
"""Share of its peers' clock below which a power cap on one GPU alone is told: chips of a kind differ by a tenth."""
BUSY_PERCENT = 50
"""Utilisation from which a GPU counts as busy."""

LOADED_PERCENT, ASLEEP_MHZ = 95, 200
"""Utilisation, and a clock below which no GPU works: NVIDIA's idle clocks begin at 210 MHz, AMD's below are sleep."""

LIMIT_SHARE = 0.95
"""Share of its peers' power limit below which a GPU's own is told: limits of one product differ by nothing."""
MIN_SIBLINGS = 2
"""Busy peers that show what the clock of a GPU would be."""


class ClocksHeldDown(NodeCheck, id="GPU004", unless=no_gpu):
    """GPU004: a GPU's clocks are held down

    What it finds
        GPUs that the hardware slows down (heat, power brake), that are near their thermal limit, whose SM clock stays
        low while they are busy although nothing says why, that alone among busy peers a power limit slows down, or
        whose power limit is below that of most peers.

    Why it matters
        A collective ends when the slowest GPU comes: one GPU at half of its clock paces the whole job. In traces the
        slow GPU's own collectives look short, because all others wait for it.

    Evidence it reads
        Clock event reasons (before R535: throttle reasons), SM clock, highest SM clock and utilisation from NVML and
        `nvidia-smi -q`; the violations, clocks, load and power limits of `amd-smi metric` and `amd-smi static`. Where
        AMD's tools give no violations (`rocm-smi`, older `amd-smi`), a busy GPU is compared with its busy peers, and
        one that is fully loaded below 200 MHz stands alone.

    When it stays silent
        An idle GPU's clocks are low by design. A software power cap that peers have too, and set application
        clocks, are the site's choice.
        A bare "HW Slowdown" on an idle GPU comes with changes of the performance state. No reasons and no clocks in
        the evidence: unknown.

    How to confirm
        nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,POWER       while the job runs
        nvidia-smi --query-gpu=index,clocks.sm,clocks.max.sm,clocks_event_reasons.active --format=csv

    How to fix
        Heat: fans, airflow, inlet temperature, heat sink. Power brake: supplies and the limit of chassis or rack. A
        clock that stays low without a reason: `nvidia-smi -rgc`, then a reset.

    References
        NVML, nvmlClocksEventReasons; Azure HPC health checks, check_gpu_clock_throttling; scitix/sichek, rule for SM
        clocks that stay low.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        if not judged.gpus:
            return self.unknown(judged, "nothing about the clocks of GPUs is in the evidence")
        seen = [gpu for gpu in judged.gpus if gpu.throttle.known or (gpu.sm_clock_mhz.known and gpu.utilization.known)]
        coverage = Coverage(len(seen), len(judged.gpus), "GPUs with clock event reasons")
        reasons = [(_held_by(gpu, seen, judged.gpus), gpu) for gpu in judged.gpus]
        held = grouped((reason, gpu) for reason, gpu in reasons if reason is not None)
        if not held and not seen:
            return self.unknown(judged, "neither clock event reasons nor clocks are in the evidence")
        return self.any_of(judged, (self._clock_hold(judged, *reason, gpus) for reason, gpus in held.items()), coverage)

    def _clock_hold(self, node: Node, what: str, kind: str, severity: Severity, gpus: Sequence[Gpu]) -> Finding:
        """GPUs whose clocks one thing holds down."""
        clocks = [
            f"{gpu.label} {gpu.sm_clock_mhz.value} of {in_mhz(gpu.max_sm_clock_mhz.get(0))}"
            for gpu in gpus
            if gpu.sm_clock_mhz.known and gpu.max_sm_clock_mhz.known
        ]
        names = ", ".join(dict.fromkeys(name for gpu in gpus for name in gpu.throttle.get(()) if name != "gpu_idle"))
        words = "; ".join(part for part in (f"active: {names}" if names else "", ", ".join(clocks[:4])) if part)
        of_power = (gpu.power_limit_w for gpu in gpus) if kind == "limited" else ()
        labels = tuple(gpu.label for gpu in gpus)
        return self.finding(
            self.where(node, gpus=labels),
            "clocks",
            f"{fold_runs(labels)}: clocks are held down, {what}",
            severity=severity,
            observed=words or what,
            fix=tuple(own_data("checks/advice/node_faults")["clocks"][kind]),
            evidence=(*of_power, *(fact for gpu in gpus for fact in (gpu.throttle, gpu.sm_clock_mhz))),
            confidence=Confidence.MEDIUM if kind in ("stuck", "apart", "capped", "limited") else Confidence.HIGH,
        )


def _held_by(gpu: Gpu, seen: Sequence[Gpu], gpus: Sequence[Gpu]) -> tuple[str, str, Severity] | None:
    """What holds the clocks down, its kind, and how bad it is; None where nothing does."""
    reason = _reason(gpu) or _below_siblings(gpu, seen) or _capped_alone(gpu, seen) if gpu in seen else None
    return reason or _less_power(gpu, gpus)


def _busy_peers(gpu: Gpu, seen: Sequence[Gpu]) -> list[Gpu]:
    """The others of the same product that are busy."""
    alike = [other for other in seen if other is not gpu and other.name.value == gpu.name.value]
    return [other for other in alike if other.utilization.get(0) >= BUSY_PERCENT]


def _reason(gpu: Gpu) -> tuple[str, str, Severity] | None:
    """By the reasons that the driver gives, or a low clock without any."""
    reasons = gpu.throttle.get(())
    idle = "gpu_idle" in reasons or gpu.utilization.get(1) == 0
    for name, words in HARDWARE.items():
        if name in reasons and not (idle and name == "hw_slowdown"):
            kind = "power" if name == "hw_power_brake_slowdown" else "heat"
            return words, kind, Severity.WARNING if idle or name == "hw_slowdown" else Severity.ERROR
    if idle:
        return None
    if "sw_thermal_slowdown" in reasons:
        return "the GPU is near its thermal limit (software thermal slowdown)", "heat", Severity.WARNING
    clock, top = gpu.sm_clock_mhz.value, gpu.max_sm_clock_mhz.value
    free = not {"applications_clocks_setting", "sw_power_cap", "sync_boost"} & set(reasons)
    if clock and top and clock < STUCK_SHARE * top and gpu.utilization.get(0) >= BUSY_PERCENT and free:
        return "the SM clock is low while the GPU is busy, and no reason is given", "stuck", Severity.WARNING
    return None


def _below_siblings(gpu: Gpu, seen: Sequence[Gpu]) -> tuple[str, str, Severity] | None:
    """A busy GPU whose highest clock nobody told, far below all its busy peers of the same product, or asleep."""
    alike = [other.sm_clock_mhz.get(0) for other in _busy_peers(gpu, seen)]
    clock = gpu.sm_clock_mhz.value
    if gpu.max_sm_clock_mhz.known or gpu.throttle.value or clock is None:
        return None
    if clock < ASLEEP_MHZ and gpu.utilization.get(0) >= LOADED_PERCENT:
        return f"{in_mhz(clock)} under full load, as a GPU that sleeps", "apart", Severity.WARNING
    if len(alike) < MIN_SIBLINGS or gpu.utilization.get(0) < BUSY_PERCENT or clock >= STUCK_SHARE * min(alike):
        return None
    what = f"{in_mhz(clock)} while its peers run at {in_mhz(min(alike))} or more, all of them busy"
    return what, "apart", Severity.WARNING


def _capped_alone(gpu: Gpu, seen: Sequence[Gpu]) -> tuple[str, str, Severity] | None:
    """A busy GPU that its power limit slows down while busy peers of the same product run without one."""
    if "sw_power_cap" not in gpu.throttle.get(()) or gpu.utilization.get(0) < BUSY_PERCENT:
        return None
    known = [peer for peer in _busy_peers(gpu, seen) if peer.throttle.known]
    alike = [peer.sm_clock_mhz.get(0) for peer in known if "sw_power_cap" not in peer.throttle.get(())]
    clock = gpu.sm_clock_mhz.value
    if clock is None or len(alike) < MIN_SIBLINGS or clock >= CAPPED_SHARE * min(alike):
        return None
    siblings = f"its peers run at {in_mhz(min(alike))} or more without one"
    return f"its power limit holds it at {in_mhz(clock)}, and {siblings}", "capped", Severity.WARNING


def _less_power(gpu: Gpu, gpus: Sequence[Gpu]) -> tuple[str, str, Severity] | None:
    """A GPU whose power limit is below that of most of its peers of the same product."""
    limits = [other.power_limit_w.value for other in gpus if other.name.value == gpu.name.value]
    usual = majority(limit for limit in limits if limit)
    limit = gpu.power_limit_w.value
    if not limit or usual is None or len(limits) <= MIN_SIBLINGS or limit >= LIMIT_SHARE * usual:
        return None
    return f"its power limit is {in_w(limit)}, {in_w(usual)} on its peers", "limited", Severity.WARNING


FEWEST = 4
"""GPUs that must have been measured: of fewer, nobody can say which is the odd one."""
ODD_SHARE = 0.25
"""At most this share of the GPUs is odd; more are a machine of two kinds of places."""
HOST_SHARE = 0.6
"""Copies from the host below this share of the median. From the other socket they reach two thirds and more."""
PAIR_SHARE = 0.75
"""Copies between GPUs below this share of the others' median: half of the links leave a half, a way that
left NVLink a tenth to a quarter."""
HALF = 0.5
"""A pace below this share of the peers' is an error, one above it a warning."""
EVEN_SHARE = 0.9
"""The rest is alike where its slowest pair reaches this share of its median: then no place of the board explains it."""
NVLINK_GBS = 60.0
"""No PCIe Gen5 x16 carries more in one direction: pairs above it talk over NVLink. On PCIe alone a pair's place decides
its pace, and an odd GPU need have no fault."""

NO_PLACE_SHARE = 0.125
"""Below this share no place on a board holds a GPU on PCIe that is wired like its peers: another socket leaves half
and more, four lanes of sixteen a quarter."""


_PASSED = "every ring of NCCL passes this GPU, so that the whole node goes at its pace"


@dataclass(frozen=True, slots=True)
class ShortGpu:
    """A GPU that fell short, and in what; None where the test names no GPU."""

    gpu: Gpu | None
    words: str
    share: float | None
    evidence: tuple[Fact[float] | Fact[tuple[str, ...]], ...]


class SlowGpuInTest(NodeCheck, id="GPU006"):
    """GPU006: a test on the node finds a GPU far below its peers

    What it finds
        A GPU whose copies to and from all other GPUs are far slower than those of the rest among themselves; one whose
        copies from the host's memory are; and one that failed a test of DCGM's.

    Why it matters
        Every ring of NCCL passes the slow GPU: 25 GB/s in place of 390 takes the whole node down to PCIe's pace.

    Evidence it reads
        The tables of nvbandwidth and of p2pBandwidthLatencyTest; `dcgmi diag` and `dcgmi health`; gpu_burn.

    When it stays silent
        No such test was run: not applicable. Fewer than four GPUs were measured: unknown. More than a quarter of them
        are slow, or all pairs go over PCIe (below 60 GB/s) and the slow GPU reaches an eighth of the rest: their places
        on the board may explain it, unknown. Copies from the host at 60 % and more: the other socket's memory costs as
        much. Tests of DCGM that are of the installation, not of a GPU; NVLink of cards without a bridge.

    How to confirm
        nvbandwidth -t device_to_device_memcpy_read_ce      again on an idle node: the row and column of the GPU
        dcgmi diag -r 3 -i GPU                              the test alone, on this GPU
        nvidia-smi nvlink -s -i GPU; nvidia-smi -q -i GPU   links, PCIe width and generation, clocks

    How to fix
        Look for what slowed it: NVLinks that are down, a narrow PCIe link, clocks held down, another job on the GPU.
        Reset the GPUs together; if it stays, power-cycle the node; then have the GPU exchanged.

    References
        NVIDIA/nvbandwidth README; cuda-samples p2pBandwidthLatencyTest; DCGM dcgmlib/dcgm_errors.h.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        short_gpus = (*_failed(judged), *_slow_pairs(judged), *_slow_host_copies(judged))
        if short_gpus:
            alike = grouped((short_gpu.words, short_gpu) for short_gpu in short_gpus)
            return self.with_findings(judged, [self._short(judged, words, group) for words, group in alike.items()])
        paces = [fact.get(0.0) for fact in judged.copies.values()]
        hosts = [gpu for gpu in judged.gpus if gpu.host_copy_gbs.known]
        if not paces and not hosts:
            passed = judged.passed_tests.known
            return self.clean(judged) if passed else self.not_applicable(judged, "no test of its GPUs in the evidence")
        even = bool(paces) and max(paces) > NVLINK_GBS and min(paces) >= PAIR_SHARE * max(paces)
        if (even and len(_measured(judged)) >= FEWEST) or (not paces and len(hosts) >= FEWEST):
            return self.clean(judged)
        why = "few GPUs were measured"
        if paces:
            why = f"pairs of GPUs copied at {spell_gbs(min(paces))} to {in_gbs(max(paces))}, and whether their places"
            why += " on the board explain it is not in the evidence"
        measured = Coverage(max(len(_measured(judged)), len(hosts)), len(judged.gpus), "GPUs")
        return self.unknown(judged, why, measured)

    def _short(self, judged: Node, words: str, alike: Sequence[ShortGpu]) -> Finding:
        labels = [short_gpu.gpu.label for short_gpu in alike if short_gpu.gpu is not None]
        share = alike[0].share
        return self.finding(
            self.where(judged, gpus=labels),
            "slow in test",
            f"{fold_runs(labels)}: {words}" if labels else f"{words} (no GPU is named)",
            severity=Severity.ERROR if share is not None and share < HALF else Severity.WARNING,
            observed=words,
            expected="the pace of its peers" if share is not None else "the test passes",
            cost=Cost(share=None if share is None else 1 - share, text=_PASSED),
            evidence=[fact for short_gpu in alike for fact in short_gpu.evidence],
        )


def _failed(node: Node) -> Iterator[ShortGpu]:
    for gpu, fact in ((None, node.failed_tests), *((gpu, gpu.failed_tests) for gpu in node.gpus)):
        if fact.value:
            words = "; ".join(fact.value[:2])
            verdict = words if words.startswith("gpu_burn") else f"DCGM: {words}"
            yield ShortGpu(gpu, verdict, None, (fact,))


def _slow_host_copies(node: Node) -> Iterator[ShortGpu]:
    speeds = {gpu.index: speed for gpu in node.gpus if (speed := gpu.host_copy_gbs.value)}
    slow = far(speeds, factor=HOST_SHARE, least=FEWEST, most=ODD_SHARE)
    for gpu in node.gpus:
        if slow is not None and gpu.index in slow.outliers:
            speed = speeds[gpu.index]
            words = f"copies from the host at {in_gbs(speed)}, {spell_gbs(slow.usual)} on its peers"
            yield ShortGpu(gpu, words, speed / slow.usual, (gpu.host_copy_gbs,))


def _slow_pairs(node: Node) -> Iterator[ShortGpu]:
    """GPUs that are slow with all others, where the others are alike among themselves and on NVLink."""
    gpus = _measured(node)
    best = {gpu.label: max(fact.get(0.0) for (a, _), fact in node.copies.items() if a == gpu.label) for gpu in gpus}
    short = far(best, factor=PAIR_SHARE, least=FEWEST, most=ODD_SHARE)
    labels = set(short.outliers) if short is not None else set()
    slow = [gpu for gpu in gpus if gpu.label in labels]
    rest = [fact.get(0.0) for pair, fact in node.copies.items() if labels.isdisjoint(pair)]
    if not slow or not rest:
        return
    from statistics import median  # noqa: PLC0415 - as in `far`

    pace = median(rest)
    on_nvlink = pace > NVLINK_GBS
    if min(rest) >= EVEN_SHARE * pace:
        for gpu in (gpu for gpu in slow if on_nvlink or best[gpu.label] < NO_PLACE_SHARE * pace):
            speed = best[gpu.label]
            words = f"copies with every other GPU at {in_gbs(speed)} and less, {spell_gbs(pace)} among the rest"
            own = next(fact for pair, fact in node.copies.items() if gpu.label in pair)
            yield ShortGpu(gpu, words, speed / pace, (own,))


def _measured(node: Node) -> list[Gpu]:
    labels = {label for pair in node.copies for label in pair}
    return [gpu for gpu in node.gpus if gpu.label in labels]
