"""Causes of placement: a group that spans nodes though it would fit into one, by NCCL's figures of both places."""

from __future__ import annotations

from collections import Counter

from topodiag.expect.calibration import calibration, generation_of
from topodiag.expect.rates import reached
from topodiag.model.finding import Finding
from topodiag.model.job import Communicator, Job
from topodiag.model.result import Case
from topodiag.model.verdict import Agreement, Price, Quantity
from topodiag.nccl.connect.communicator import Member
from topodiag.nccl.topo.changes import bus_of, gpus_of
from topodiag.verdict.pricing.grounds import Claims, NoGroundError, figures_of_group, ground_of_job
from topodiag.verdict.pricing.mend import Ground
from topodiag.verdict.pricing.registry import GROUPS, with_own_loss
from topodiag.words.units import in_gbs, percent, spell_gbs

FORMULA = "NCCL's own search and tuning for the group where it is, against the group on one node"


def placement_price(finding: Finding, case: Case) -> Price | None:
    """The price of a group's place, from the job whose communicators show it; None where no evidence gives it."""
    *roles, collective = GROUPS[finding.id]
    ranks = set(finding.where.ranks)
    for job in case.jobs:
        of_role = (communicator for communicator in job.communicators if communicator.role in roles)
        groups = [group for group in of_role if not ranks or ranks & set(group.known)]
        price = _job_price(job, groups, collective, case) if groups else None
        if price is not None:
            return with_own_loss(price, finding)
    return None


def _job_price(job: Job, groups: list[Communicator], collective: str, case: Case) -> Price | None:
    try:
        ground = ground_of_job(job, case, Claims())
    except NoGroundError:
        return None
    known: dict[tuple[int, ...], tuple[float, float] | None] = {}
    worst: tuple[float, float, int] | None = None
    for group in groups:
        members = [member for member in ground.members if member.rank in set(group.known.tolist())]
        spread = tuple(sorted(Counter(member.host for member in members).values()))
        if len(members) != group.nranks or len(spread) < 2:
            continue
        if spread not in known:  # groups that are spread alike cost alike: one of them is asked
            known[spread] = _both(ground, members, collective)
        pair = known[spread]
        if pair is not None and (worst is None or pair[0] < worst[0]):
            worst = (*pair, group.nranks)
    if worst is None:
        return None
    now, packed, size = worst
    what = f"busbw of {collective} in a group of {size} ranks"
    share = max(1 - now / packed, 0.0)
    one = Quantity(what, packed, source=FORMULA)
    return Price(
        gbs_lost=packed - now,
        share=share,
        text=f"{what}: {spell_gbs(now)} of {in_gbs(packed)} left (-{percent(share)})",
        predicted=Quantity(what, now, source=FORMULA),
        alone=one,
        all_gone=one,
        agreement=Agreement.NOT_MEASURED,
        job_share=share,
    )


def _both(ground: Ground, members: list[Member], collective: str) -> tuple[float, float] | None:
    """GB/s of a group where it is, and on one node; None where it would not fit, or NCCL's model has no figure."""
    places = list(dict.fromkeys(member.host for member in members))
    machines = [ground.hosts[place].built for place in places]
    buses = [bus_of(pci) for _, pci in sorted(gpus_of(machines[0].tree).items())]
    uneven = len({sum(member.host == place for member in members) for place in places}) > 1
    if len(buses) < len(members) or uneven or ground.setup.domain > 1:
        return None
    spread = [Member(number, places.index(member.host), member.bus_id) for number, member in enumerate(members)]
    packed = [Member(number, 0, bus) for number, bus in enumerate(buses[: len(members)])]
    now = figures_of_group(ground.setup, machines, spread, collective)
    one = figures_of_group(ground.setup, machines[:1], packed, collective)
    if now is None or one is None:
        return None
    factor = calibration().of(generation_of(ground.setup.sm), one.transport, collective).factor
    return one.peak * factor * reached(one, now), one.peak * factor
