"""The family of a processor as NCCL writes it into topology files, and as the kernel calls it."""

from __future__ import annotations

_BASE = 0xF


def family_of(written: int) -> int:
    """The CPUID family: 25 for AMD's Zen 3 and 4, whether a file says 25 or 175.

    NCCL up to 2.30 writes the extended family above the base family (15 + (10 << 4) = 175), where the processor's
    manual adds the two (15 + 10 = 25): ncclTopoGetXmlFromCpu in src/graph/xml.cc. From 2.31 on it writes 25, and reads
    both.
    """
    extended = written >> 4
    return _BASE + extended if extended > 0 and written & _BASE == _BASE else written
