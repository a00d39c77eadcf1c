"""Causes with a mend, priced together on the run or the job that they are in force on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from topodiag.expect.rates import NCCL_NAMES, rates_of, reached
from topodiag.expect.setup import NoSetupError
from topodiag.lazy import dataclass
from topodiag.model.finding import Finding
from topodiag.model.result import Case
from topodiag.model.verdict import Agreement, Price, Quantity
from topodiag.nccl.tuning.choice import busbw_factor
from topodiag.placement.job_step import JobStep
from topodiag.verdict.pricing.agreement import as_another_algorithm, compare, measured_of, same_as_table
from topodiag.verdict.pricing.grounds import Claims, NoGroundError, ground_of, ground_of_job, with_machines
from topodiag.verdict.pricing.mend import CannotError, Ground, HostGround, Machine, Mend
from topodiag.verdict.pricing.registry import with_own_loss, without_mend
from topodiag.verdict.pricing.step import shares_of_step
from topodiag.words.hosts import short_name
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


@dataclass(frozen=True, slots=True)
class _Bandwidths:
    """What machines reach, GB/s; NCCL's own figure behind it, the algorithm of it, and what each algorithm reaches."""

    gbs: float
    raw: float
    algorithm: str
    others: Mapping[str, float]


@dataclass
class _GroundCauses:
    """A ground with the causes that are in force on it."""

    ground: Ground
    parts: list[Part] = field(default_factory=list)
    known: dict[tuple[Machine, ...], _Bandwidths | None] = field(default_factory=dict)


# -- grounds --


def together(parts: Sequence[Part], case: Case, steps: Sequence[JobStep]) -> dict[int, Price]:
    """Causes priced on the run or the job that they are in force on, all of one ground together."""
    claims = _claims(parts, case)
    grounds, refused = _grounds(case, claims)
    on = [_GroundCauses(ground) for ground in grounds]
    prices: dict[int, Price] = {}
    for part in parts:
        home, why = _home(part, on, case)
        if home is None:
            prices[part.at] = without_mend(part.finding, why or next(iter(refused), ""))
        elif len(home.parts) < MOST_CAUSES:
            home.parts.append(part)
    for causes in on:
        job = causes.ground.job
        step = next((step for step in steps if job is not None and step.job == job.name), None)
        prices.update(_on_ground(causes, case, step))
    return prices


def _claims(parts: Sequence[Part], case: Case) -> Claims:
    settings: set[str] = set()
    files: set[str] = set()
    lacking: set[str] = set()
    for part in parts:
        for mend, finding in part.mends:
            hosts = {case.identity.name(node) for node in finding.where.nodes}
            settings |= mend.claimed_settings(finding)
            files |= hosts if mend.claims_file(finding) else set()
            lacking |= hosts if mend.lacks_nics else set()
    return Claims(frozenset(settings), frozenset(files), frozenset(lacking))


def _grounds(case: Case, claims: Claims) -> tuple[list[Ground], list[str]]:
    """Measured runs first, the widest of them before the others, then jobs; and why some are none."""
    grounds, refused = [], []
    runs = sorted(case.runs, key=lambda run: (run.collective != "all_reduce", -(run.nranks or 0)))
    for run in runs:
        hosts = {case.identity.name(host) for host in run.hosts}
        beside = (job for job in case.jobs if {case.identity.name(host) for host in job.hosts} == hosts)
        try:
            grounds.append(ground_of(run, next(beside, None), case, claims))
        except NoGroundError as error:
            refused.append(str(error))
    for job in case.jobs:
        try:
            grounds.append(ground_of_job(job, case, claims))
        except NoGroundError as error:
            refused.append(str(error))
    return grounds, refused


def _home(part: Part, on: Sequence[_GroundCauses], case: Case) -> tuple[_GroundCauses | None, str]:
    """The first ground on which the cause changes a machine; else the first one that it stands on, where it costs
    nothing. Why there is none."""
    standing, why = None, ""
    for causes in on:
        if not _stands_on(part.finding, causes.ground, case):
            continue
        try:
            machines = _machines(causes.ground, [part], case)
        except CannotError as error:
            why = why or str(error)
            continue
        standing = standing or causes
        if machines != _machines(causes.ground, [], case):
            return causes, ""
    return standing, why


def _stands_on(finding: Finding, ground: Ground, case: Case) -> bool:
    named = finding.where.jobs
    if named and ground.job is not None and not ground.run.rows and ground.job.name not in named:
        return False
    return any(_touches(finding, host, case) for host in ground.hosts)


def _touches(finding: Finding, host: HostGround, case: Case) -> bool:
    if not finding.where.nodes:
        return True
    names = {case.identity.name(node).lower() for node in finding.where.nodes}
    short = {short_name(node) for node in finding.where.nodes}
    return case.identity.name(host.name).lower() in names or short_name(host.name) in short


# -- prices --


def _machines(ground: Ground, parts: Sequence[Part], case: Case) -> tuple[Machine, ...]:
    """The machines of a ground with these causes in force. Raises CannotError."""
    machines = []
    for host in ground.hosts:
        machine = host.built
        for part in parts:
            for mend, finding in part.mends:
                if _touches(finding, host, case):
                    machine = mend.inflict(machine, host, finding)
        machines.append(machine)
    return tuple(machines)


def _reach(priced_on: _GroundCauses, parts: Sequence[Part], case: Case) -> _Bandwidths | None:
    """What the ground's collective reaches with these causes in force; None where NCCL would not run."""
    ground = priced_on.ground
    machines = _machines(ground, parts, case)
    if machines not in priced_on.known:
        priced_on.known[machines] = _bandwidths(ground, machines)
    return priced_on.known[machines]


def _bandwidths(ground: Ground, machines: Sequence[Machine]) -> _Bandwidths | None:
    setup = with_machines(ground.setup, machines, ground.members)
    try:
        rates = rates_of(setup, ground.run.collective, (ground.size,))
    except NoSetupError:
        return None
    gbs = ground.whole * reached(ground.rates, rates) * min(machine.pace for machine in machines)
    others = {name: own * gbs / rates.raw for name, own in rates.by_algorithm.items()}
    return _Bandwidths(gbs, rates.raw, rates.algorithm, others)


def _on_ground(home: _GroundCauses, case: Case, step: JobStep | None) -> dict[int, Price]:
    if not home.parts:
        return {}
    whole, now = _reach(home, [], case), _reach(home, home.parts, case)
    prices = {}
    for part in home.parts:
        if not whole or not now:
            why = "NCCL would refuse these machines" if whole else "NCCL's model has no figure for these machines"
            prices[part.at] = without_mend(part.finding, why)
            continue
        others = [one for one in home.parts if one is not part]
        single, only = _reach(home, others, case), _reach(home, [part], case)
        left = (only or now).gbs
        price = _price(home, part, whole=whole.gbs, now=now, single=single, only=left)
        if step is not None:
            built, hurt = _machines(home.ground, [], case), _machines(home.ground, [part], case)
            shares = shares_of_step(home.ground, built, hurt, min(left / whole.gbs, 1.0), step)
            if shares:
                price = replace(
                    price, step_share=shares[0], step_range=(min(shares), max(shares)), step_said=step.basis
                )
        prices[part.at] = price
    return prices


_OF = {"NIC": "the node's network", "NVL": "the GPU's NVLinks", "PCI": "the PCIe link"}
"""What the loss of a finding is a part of, by the family of its check."""


def _price(
    home: _GroundCauses, part: Part, *, whole: float, now: _Bandwidths, single: _Bandwidths | None, only: float
) -> Price:
    """The price by what is reached without any cause (GB/s), with all, with all but this one (None where NCCL would not
    run), and with this one only (GB/s)."""
    ground = home.ground
    quantity = measured_of(ground.run, ground.what)
    cause = "the cause" if len(home.parts) == 1 else f"these {len(home.parts)} causes"
    roughest = min((mend for part in home.parts for mend, _ in part.mends), key=lambda mend: mend.least)
    compared = None
    texts = [_by_table(ground, now)]
    if quantity is not None:
        compared = compare(whole, now.gbs, quantity.value, cause, roughest.least, roughest.unreckoned)
        other = as_another_algorithm(now.gbs, quantity.value, now.algorithm.partition("/")[0], now.others)
        texts = [compared.says, other, *texts]
    says = "; ".join(text for text in texts if text)
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
        predicted=Quantity(ground.what, now.gbs, source=FORMULA),
        alone=Quantity(ground.what, single.gbs, source=FORMULA) if single is not None else None,
        all_gone=Quantity(ground.what, whole, source=FORMULA),
        measured=quantity,
        agreement=compared.agreement if compared is not None else Agreement.NOT_MEASURED,
        says=says,
        job_share=share,
    )
    return with_own_loss(price, part.finding)


def _by_table(ground: Ground, now: _Bandwidths) -> str:
    """What NCCL's own table in the log of the same ranks says; only of a job, not of a run beside its log."""
    world = ground.job.world if ground.job is not None else None
    if world is None or world.nranks != ground.setup.ranks or not world.tuning or ground.run.rows:
        return ""
    name = NCCL_NAMES.get(ground.run.collective, "")
    return same_as_table(now.raw, now.algorithm, world.tuning, name, busbw_factor(name, world.nranks))
