"""How facts of a fleet, and what differs in it, are spelt."""

from __future__ import annotations

from topodiag.model.fleet import How, Outlier
from topodiag.words.own_data import own_data
from topodiag.words.units import few, fold_labels, spell_bytes

_UNITS = ("errors", "times", "rows", "lines", "")
"""Units that the name of the fact says already."""
_LONGEST = 20
"""Digits of a number of bytes that can be meant."""


def spelled(value: str, unit: str) -> str:
    """A value with its unit: `16 GT/s`, `251.9 GiB`, `unlimited`."""
    if unit == "bytes":
        return spell_bytes(int(value)) if value.isdecimal() and len(value) < _LONGEST else value
    return value if unit in _UNITS else f"{value} {unit}"


def fact_name(family: str, key: str) -> str:
    """What a fact is called by itself: `firmware`, `kernel module nvidia_peermem`, `PCIe width`."""
    lead: str = own_data("fleet/families")["leads"].get(family, "")
    return key if key.lower().startswith(lead.strip().lower()) and lead else f"{lead}{key}"


def fact_words(outlier: Outlier) -> str:
    """`PCIe width of gpu3: 8 (199 of 200: 16)`."""
    parts = [part for part in outlier.parts if part]
    of = f" of {fold_labels(parts, 4)}" if parts else ""
    what = f"{fact_name(outlier.family, outlier.key)}{of}"
    if outlier.how is How.PERMUTED:
        return f"{what} in another order: {few(outlier.value.split('; '), 2, '; ')}"
    value = few(outlier.value.split("; "), 2, "; ") if len(parts) > 1 else outlier.value
    if outlier.how in (How.FAR, How.RATIO, How.RATE):
        return f"{what}: {spelled(value, outlier.unit)} (median {spelled(outlier.usual, outlier.unit)})"
    usual = few(outlier.usual.split("; "), 2, "; ") if len(parts) > 1 else outlier.usual
    count = f"{outlier.usual_count} of {outlier.total}"
    return f"{what}: {spelled(value, outlier.unit)} ({count}: {spelled(usual, outlier.unit)})"
