"""Causes with a mend, priced together on the run or the job that they are in force on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import partial

from topodiag.expect.rates import NCCL_NAMES, Rates, reached
from topodiag.lazy import dataclass
from topodiag.model.finding import Finding
from topodiag.model.nccl_enums import busbw_factor
from topodiag.model.result import Case
from topodiag.model.verdict import Agreement, Price, Quantity
from topodiag.placement.job_groups import JobStep
from topodiag.verdict.pricing.agreement import as_another_algorithm, compare, measured_of, same_as_table
from topodiag.verdict.pricing.grounds import Claims, NoGroundError, figures, ground_of, ground_of_job, with_machines
from topodiag.verdict.pricing.mend import CannotError, Ground, HostGround, Machine, Mend
from topodiag.verdict.pricing.registry import with_own_loss, without_mend
from topodiag.verdict.pricing.step import shares_of_step
from topodiag.verdict.scene import Scene
from topodiag.words.units import in_gbs, percent, spell_gbs

MOST_CAUSES = 16
"""Causes of one run that are priced together: more of them are no verdict, and each costs a search."""

FORMULA = "NCCL's own search and tuning on these machines, times what healthy ones reach of it"


@dataclass(frozen=True)
class Part:
    """One cause with what puts it into a machine: its own mend, else those of what follows from it."""

    at: int
    finding: Finding
    mends: tuple[tuple[Mend, Finding], ...]


Reach = tuple[float, Rates]
"""What machines reach, GB/s, and NCCL's own figures behind it."""


@dataclass
class _Ground:
    """A run or a job, with the causes that are in force on it."""

    ground: Ground
    scene: Scene
    parts: list[Part] = field(default_factory=list)
    known: dict[tuple[Machine, ...], Reach | None] = field(default_factory=dict)

    def holds(self, finding: Finding) -> bool:
        """Whether a finding is of the run or the job, and of one of its hosts."""
        named, job = finding.where.jobs, self.ground.job
        if named and job is not None and not self.ground.run.rows and job.name not in named:
            return False
        return any(self._touches(finding, host) for host in self.ground.hosts)

    def _touches(self, finding: Finding, host: HostGround) -> bool:
        return not finding.where.nodes or self.scene.host(host.name) in self.scene.nodes(finding)

    def machines(self, *parts: Part) -> tuple[Machine, ...]:
        """The machines with these causes in force. Raises CannotError."""
        machines = []
        for host in self.ground.hosts:
            machine = host.built
            for mend, finding in (pair for part in parts for pair in part.mends):
                if self._touches(finding, host):
                    machine = mend.inflict(machine, host, finding)
            machines.append(machine)
        return tuple(machines)

    def reach(self, *parts: Part) -> Reach | None:
        """What the ground's collective reaches with these causes in force; None where NCCL would not run."""
        machines = self.machines(*parts)
        if machines not in self.known:
            self.known[machines] = _reach(self.ground, machines)
        return self.known[machines]

    def prices(self, step: JobStep | None) -> Iterator[tuple[int, Price]]:
        """By cause its price, as a share of a step too where the job's is known."""
        whole, now = (self.reach(), self.reach(*self.parts)) if self.parts else (None, None)
        for part in self.parts:
            if not whole or not now:
                why = "NCCL would refuse these machines" if whole else "NCCL's model has no figure for these machines"
                yield part.at, without_mend(part.finding, why)
                continue
            left = (self.reach(part) or now)[0]
            price = self._price(part, whole[0], now, left)
            if step is not None:
                rest, now_with = min(left / whole[0], 1.0), self.machines(part)
                if shares := shares_of_step(self.ground, self.machines(), now_with, rest, step):
                    span = min(shares), max(shares)
                    price = replace(price, step_share=shares[0], step_range=span, step_said=step.basis)
            yield part.at, price

    def _price(self, part: Part, whole: float, now: Reach, only: float) -> Price:
        """The price by what is reached without any cause (GB/s), with all, and with this one only (GB/s)."""
        ground, (gbs, rates) = self.ground, now
        single = self.reach(*(other for other in self.parts if other is not part))
        quantity = measured_of(ground.run, ground.what)
        cause = "the cause" if len(self.parts) == 1 else f"these {len(self.parts)} causes"
        roughest = min((mend for part in self.parts for mend, _ in part.mends), key=lambda mend: mend.least)
        compared = None
        texts = [_by_table(ground, rates)]
        if quantity is not None:
            compared = compare(whole, gbs, quantity.value, cause, roughest.least, roughest.unreckoned)
            others = {name: own * gbs / rates.raw for name, own in rates.by_algorithm.items()}
            other = as_another_algorithm(gbs, quantity.value, rates.algorithm.partition("/")[0], others)
            texts = [compared.says, other, *texts]
        own = part.finding.cost
        share = max(1 - only / whole, 0.0)
        lost = f"{spell_gbs(only)} of {in_gbs(whole)}"
        if own.gbs_lost and own.share:  # the finding's numbers are of a part, these of the job
            of = _OF.get(part.finding.id[:3], "the narrowest place")
            seen = f", measured {spell_gbs(quantity.value)}" if quantity is not None else ""
            lead = f"of {in_gbs(own.gbs_lost / own.share)} of {of}, so that {ground.what},"
            lost = f"{lead} should reach {lost} (-{percent(share)}){seen}"
        else:
            lost = f"{ground.what}: {lost} left (-{percent(share)})"
        price = Price(
            gbs_lost=whole - only,
            share=share,
            text=lost,
            predicted=Quantity(ground.what, gbs, source=FORMULA),
            alone=Quantity(ground.what, single[0], source=FORMULA) if single is not None else None,
            all_gone=Quantity(ground.what, whole, source=FORMULA),
            measured=quantity,
            agreement=compared.agreement if compared is not None else Agreement.NOT_MEASURED,
            says="; ".join(text for text in texts if text),
            job_share=share,
        )
        return with_own_loss(price, part.finding)


_OF = {"NIC": "the node's network", "NVL": "the GPU's NVLinks", "PCI": "the PCIe link"}
"""What the loss of a finding is a part of, by the family of its check."""


def together(parts: Sequence[Part], case: Case, steps: Sequence[JobStep]) -> dict[int, Price]:
    """Causes priced on the run or the job that they are in force on, all of one ground together."""
    scene = Scene(case)
    usable, refused = _grounds(case, _claims(parts, case))
    grounds = [_Ground(ground, scene) for ground in usable]
    prices: dict[int, Price] = {}
    for part in parts:
        home, why = _home(part, grounds)
        if home is None:
            prices[part.at] = without_mend(part.finding, why or next(iter(refused), ""))
        elif len(home.parts) < MOST_CAUSES:
            home.parts.append(part)
    for home in grounds:
        job = home.ground.job
        prices.update(home.prices(next((step for step in steps if job is not None and step.job == job.name), None)))
    return prices


def _claims(parts: Sequence[Part], case: Case) -> Claims:
    pairs = [pair for part in parts for pair in part.mends]
    hosts = [frozenset(case.identity.name(node) for node in finding.where.nodes) for _, finding in pairs]
    settings = (mend.claimed_settings(finding) for mend, finding in pairs)
    files = (own for (mend, finding), own in zip(pairs, hosts, strict=True) if mend.claims_file(finding))
    lacking = (own for (mend, _), own in zip(pairs, hosts, strict=True) if mend.lacks_nics)
    return Claims(*(frozenset[str]().union(*sets) for sets in (settings, files, lacking)))


def _grounds(case: Case, claims: Claims) -> tuple[list[Ground], list[str]]:
    """Measured runs first, the widest of them before the others, then jobs; and why some are none."""
    grounds, refused, name = [], [], case.identity.name
    by_hosts = {frozenset(map(name, job.hosts)): job for job in reversed(case.jobs)}  # of several the first
    runs = sorted(case.runs, key=lambda run: (run.collective != "all_reduce", -(run.nranks or 0)))
    beside = ((run, by_hosts.get(frozenset(map(name, run.hosts)))) for run in runs)
    of_runs = (partial(ground_of, run, job, case, claims) for run, job in beside)
    for asked in (*of_runs, *(partial(ground_of_job, job, case, claims) for job in case.jobs)):
        try:
            grounds.append(asked())
        except NoGroundError as error:
            refused.append(str(error))
    return grounds, refused


def _home(part: Part, grounds: Sequence[_Ground]) -> tuple[_Ground | None, str]:
    """The first ground on which the cause changes a machine; else the first one that it stands on, where it costs
    nothing. Why there is none."""
    standing, why = None, ""
    for ground in grounds:
        if not ground.holds(part.finding):
            continue
        try:
            if ground.machines(part) != ground.machines():
                return ground, ""
        except CannotError as error:
            why = why or str(error)
            continue
        standing = standing or ground
    return standing, why


def _reach(ground: Ground, machines: Sequence[Machine]) -> Reach | None:
    rates = figures(with_machines(ground.setup, machines, ground.members), ground.run.collective, ground.size)
    if rates is None:
        return None
    return ground.whole * reached(ground.rates, rates) * min(machine.pace for machine in machines), rates


def _by_table(ground: Ground, now: Rates) -> str:
    """What NCCL's own table in the log of the same ranks says; only of a job, not of a run beside its log."""
    world = ground.job.world if ground.job is not None else None
    if world is None or world.nranks != ground.setup.ranks or not world.tuning or ground.run.rows:
        return ""
    name = NCCL_NAMES.get(ground.run.collective, "")
    return same_as_table(now.raw, now.algorithm, world.tuning, name, busbw_factor(name, world.nranks))
