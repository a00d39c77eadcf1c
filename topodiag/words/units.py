"""Sizes and times as people write them beside bandwidths in GB/s (1e9 bytes per second)."""

from __future__ import annotations

import math

_LONG = (("days", "h", 86_400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1))
"""A unit of time and the one below, with their seconds."""
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


def spell_time(time_us: float) -> str:
    """`12.34 us`, `6.28 ms`, `1.32 s`: two decimals, so that figures of one table line up."""
    if time_us < 100:
        return f"{time_us:.2f} us"
    return f"{time_us / 1e3:.2f} ms" if time_us < 1e6 else f"{time_us / 1e6:.2f} s"


def spell_s(seconds: float) -> str:
    """A time as long as it is: `0 s`, `12.3 us`, `350 ms`, `12.3 s`, `4 min 5 s`, `3 h 10 min`, `5 days 2 h`."""
    if seconds < 59.95:
        return f"{seconds:.3g} s" if seconds >= 0.9995 or seconds <= 0 else spell_us(seconds * 1e6)
    whole = round(seconds)
    unit, below, size, small = next(step for step in _LONG if whole >= step[2])
    rest = whole % size // small
    many = whole // size
    return f"{many} {'day' if unit == 'days' and many == 1 else unit}" + (f" {rest} {below}" if rest else "")


def in_s(seconds: float) -> str:
    """`600 s`, `0.5 s`: a time as a limit or a log gives it, in seconds however long, to be found there again."""
    return f"{number(seconds)} s"


def signed_s(seconds: float) -> str:
    """`+4 min 5 s`, `-12 ms`, `+0 s`: how far a clock is ahead."""
    return f"{'-' if seconds < 0 else '+'}{spell_s(abs(seconds))}"


def in_ms(time_us: float) -> str:
    """Microseconds as `1,234.5 ms`: parts of a step, which a reader adds and compares."""
    return f"{time_us / 1000:,.1f} ms"


def in_us(time_us: float) -> str:
    """`14.0 us`: a term of a derivation, to one decimal, however long."""
    return f"{time_us:.1f} us"


def in_mhz(clock: float) -> str:
    """`1980 MHz`: the clock of a GPU."""
    return f"{number(clock)} MHz"


def in_w(power: float) -> str:
    """`700 W`: watts, whole."""
    return f"{power:.0f} W"


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


def read_number(text: str) -> float | None:
    """The number that a text is; None for another one, and for one that is not finite."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def number(value: float) -> str:
    """A quantity as people write it: at most one decimal, none when whole; up to three below one."""
    if not math.isfinite(value):
        return "?"
    if abs(value) >= 1e15:
        return f"{value:.3g}"
    digits = 1 if abs(value) >= 1 else 3
    rounded = f"{value:.{digits}f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded
