"""The kinds of mend, by the check whose causes each prices. mends.py is imported where such a cause is priced."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from topodiag.model.finding import Finding
from topodiag.model.layout import Role
from topodiag.model.verdict import Agreement, Price
from topodiag.words.own_data import own_data

if TYPE_CHECKING:
    from topodiag.verdict.pricing.mend import Mend

MENDS: dict[str, str] = own_data("verdict/pricing/mends")["mends"]

GROUPS = {"PLC001": (Role.TP, Role.CP, "all_reduce"), "PLC002": (Role.EP, Role.EP, "alltoall")}
"""By check the roles of the groups that it is about, and the collective that they spend their time in."""

NO_NUMBER: dict[str, str] = own_data("verdict/pricing/mends")["no_number"]
"""Why there is no number for causes without a mend."""


@cache
def mend_of(check: str) -> Mend | None:
    """The mend of a check's causes, None where no source gives a number."""
    if check not in MENDS:
        return None
    from topodiag.verdict.pricing import mends  # noqa: PLC0415 - NCCL's trees, which a cause without a mend needs not

    mend: Mend = getattr(mends, MENDS[check])()
    return mend


def with_own_loss(price: Price, finding: Finding) -> Price:
    """The price with the loss that the finding itself gives, where it gives one, and its words behind the price's."""
    own = finding.cost
    lost, share = (price.gbs_lost, price.share) if own.gbs_lost is None else (own.gbs_lost, own.share)
    return replace(price, gbs_lost=lost, share=share, text="; ".join(text for text in (price.text, own.text) if text))


def without_mend(finding: Finding, why: str = "") -> Price:
    """The price that the finding itself gives, and why the job's loss has no number."""
    why = why or NO_NUMBER.get(finding.id, "")
    text = "; ".join(part for part in (finding.cost.text, why) if part)
    return Price(finding.cost.gbs_lost, finding.cost.share, text=text, agreement=Agreement.NOT_PREDICTED)
