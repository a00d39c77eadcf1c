"""What each cause of a verdict costs, and whether that is what was measured.

The machines of a run or a job are taken as built, and the causes put into them: all of them gives what the job reaches,
all but one what mending that one brings, none what there is to have. Each is NCCL's own search and tuning on those
machines (`nccl`), times what healthy machines make of it (`expect`): the very figures of `topodiag bench`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from topodiag.model.case import Case
from topodiag.model.finding import Finding
from topodiag.model.verdict import Cause, Price
from topodiag.verdict.pricing.ended import ended
from topodiag.verdict.pricing.registry import GROUPS, mend_of, without_mend

if TYPE_CHECKING:
    from topodiag.placement.job_step import JobStep
    from topodiag.verdict.pricing.mend import Mend

BY_LAYOUT = "by the layout of the ranks, as `topodiag place audit` prices it"
ASSUMED = "70B parameters assumed"


def priced(causes: Sequence[Cause], case: Case, steps: Sequence[JobStep] = ()) -> tuple[Price, ...]:
    """The price of every cause, in their order; as a share of a step too for the jobs of which `steps` tell one. Never
    raises for what a case holds."""
    by_cause: dict[int, Price] = {}
    mended = []
    for at, cause in enumerate(causes):
        stop = ended(cause, case)
        if stop is not None:
            by_cause[at] = stop
            continue
        mends = _mends(cause)
        placed = _placed(cause, case) if not mends else None
        if placed is not None:
            by_cause[at] = placed
        elif mends:
            mended.append((at, cause.finding, mends))
        else:
            by_cause[at] = without_mend(cause.finding)
    if mended:
        from topodiag.verdict.pricing.together import Part, together  # noqa: PLC0415 - NCCL's search and tuning

        by_cause.update(together([Part(*row) for row in mended], case, steps))
    prices = (by_cause.get(at) or without_mend(cause.finding) for at, cause in enumerate(causes))
    basis = BY_LAYOUT if any(step.given for step in steps) else f"{BY_LAYOUT}, {ASSUMED}"
    return tuple(_with_layout(price, cause, basis) for price, cause in zip(prices, causes, strict=True))


def _with_layout(price: Price, cause: Cause, basis: str) -> Price:
    """The price with the share of a step that a check of layouts gives, where not a link was priced."""
    findings = (cause.finding, *(consequence.finding for consequence in cause.consequences))
    if price.step_share is not None or price.job_share == 1.0:
        return price
    share = next((finding.cost.step_share for finding in findings if finding.cost.step_share is not None), None)
    if share is not None:
        return replace(price, step_share=share, step_said=basis)
    said_shares = (finding.cost.communication_share for finding in findings)
    share = next((share for share in said_shares if share is not None), None)
    return price if share is None else replace(price, communication_share=share, step_said=basis)


def _mends(cause: Cause) -> tuple[tuple[Mend, Finding], ...]:
    own = mend_of(cause.finding.id)
    if own is not None:
        return ((own, cause.finding),)
    below = [
        (mend, consequence.finding)
        for consequence in cause.consequences
        if (mend := mend_of(consequence.finding.id)) is not None
    ]
    return tuple(below)


def _placed(cause: Cause, case: Case) -> Price | None:
    """The price of a group's place: that of the cause, else of the first consequence that has one."""
    findings = [
        finding for finding in (cause.finding, *(below.finding for below in cause.consequences)) if finding.id in GROUPS
    ]
    if not findings:
        return None
    from topodiag.verdict.pricing.placed import placement_price  # noqa: PLC0415 - as above

    return next((price for finding in findings if (price := placement_price(finding, case)) is not None), None)
