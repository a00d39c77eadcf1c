"""What the reports of the model say alike: times, the derivation, what was assumed, the JSON of a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from topodiag.cost.collectives import Term
from topodiag.cost.tiers import Machine, Tier
from topodiag.report.documents.from_model import Document, from_model
from topodiag.report.grid import Columns, Field, draw_table
from topodiag.report.text import Page
from topodiag.words.units import in_gbs, spell_bytes, spell_gbs, spell_time


def spell_size(size: float) -> str:
    return spell_bytes(round(size))


_SPELLED: Mapping[str, Callable[[float], str]] = {"us": spell_time, "bytes": spell_size, "GB/s": in_gbs}


def spell_term(term: Term) -> str:
    """A term's value with its unit, as people write it."""
    spell = _SPELLED.get(term.unit)
    return spell(term.value) if spell is not None else f"{term.value:.4g} {term.unit}".rstrip()


def spelt(terms: Iterable[Term]) -> list[tuple[str, str, str]]:
    """Terms as `draw_terms` takes them."""
    return [(term.name, spell_term(term), term.formula) for term in terms]


def draw_tiers(page: Page, machine: Machine) -> None:
    """The machine's tiers with their rates and sources."""
    columns: Columns[Tier] = {
        Field("tier", least=8): lambda tier: (tier.link.name, "name"),
        Field("alpha us", right=True): lambda tier: f"{tier.link.alpha_us:g}",
        Field("GB/s", right=True): lambda tier: spell_gbs(tier.link.gbs),
        Field("line rate", right=True, drop=1): lambda tier: spell_gbs(tier.line_gbs) if tier.line_gbs else "",
        Field("GPUs that meet", right=True, drop=2): lambda tier: str(tier.gpus),
    }
    page.blank()
    draw_table(page, columns, machine.tiers)
    wide = max(len(tier.link.name) for tier in machine.tiers)
    for tier in machine.tiers:
        page.add(page.text("  ", (tier.link.name.ljust(wide), "name"), "  "), (tier.source, "dim"))


def machine_json(machine: Machine) -> Document:
    """The machine as `inputs.system`."""
    tiers = [from_model("model.Tier", tier, line_gbs=tier.line_gbs or None) for tier in machine.tiers]
    return from_model("model.Machine", machine, tiers=tiers)
