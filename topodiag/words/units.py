"""Sizes and times as people write them beside bandwidths in GB/s (1e9 bytes per second)."""

from __future__ import annotations

import math

_STEPS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def spell_bytes(count: int) -> str:
    """`8 B`, `64 KiB`, `1.5 GiB`: powers of two, as nccl-tests steps through them."""
    for unit, size in _STEPS:
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} B"


def spell_us(time_us: float) -> str:
    """`12.3 us`, `4.56 ms`, `1.2 s`."""
    if time_us < 1000:
        return f"{time_us:.3g} us"
    return f"{time_us / 1000:.3g} ms" if time_us < 1e6 else f"{time_us / 1e6:.3g} s"


def spell_gbs(gbs: float) -> str:
    """GB/s to what matters: `370.8`, `45`, `0.12`."""
    return f"{gbs:.3g}" if abs(gbs) < 1 else f"{gbs:.1f}".removesuffix(".0")


def in_gbs(gbs: float, *, exact: bool = False) -> str:
    """`370.8 GB/s`, `45 GB/s`: a bandwidth with its unit. Every sentence spells it so: one fault reads the same.
    `exact` keeps six digits, for a derivation that the reader multiplies again."""
    return f"{gbs:g} GB/s" if exact and gbs < 1000 else f"{spell_gbs(gbs)} GB/s"


def in_gbps(gbps: float) -> str:
    """`400 Gb/s`: what a port or a link signals, in gigabits per second."""
    return f"{number(gbps)} Gb/s"


def percent(share: float, *, signed: bool = False) -> str:
    """A share (1 is all) as `12.5 %`, `34 %`, `99.2 %`, `-7 %`: with a decimal where a whole number says too little,
    below 20 % and just below all."""
    value = 100 * share
    decimal = 0.05 <= abs(value) < 20 or 99 <= abs(value) < 99.95
    text = f"{value:{'+' if signed else ''}.{1 if decimal else 0}f}".removesuffix(".0")
    return f"{'0' if text in ('-0', '+0') else text} %"


def number(value: float) -> str:
    """A quantity as people write it: at most one decimal, none when whole; up to three below one."""
    if not math.isfinite(value):
        return "?"
    if abs(value) >= 1e15:
        return f"{value:.3g}"
    digits = 1 if abs(value) >= 1 else 3
    rounded = f"{value:.{digits}f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded
