"""Clocks of GPUs that are held down by heat, power or a fault."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.comparisons import majority
from topodiag.checks.shared.node.kernel import no_gpu
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_runs, grouped, in_mhz, in_w

HARDWARE = {
    "hw_thermal_slowdown": "the GPU is too hot (hardware thermal slowdown)",
    "hw_power_brake_slowdown": "the power supply asked for less (power brake)",
    "hw_slowdown": "the hardware slows the GPU down",
}
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
