"""MPI libraries and others that find an RDMA device and none of its ports active, so that they go on without it.

    WARNING: There is at least non-excluded one OpenFabrics device found,
    but there are no active ports detected (or Open MPI was unable to use
    them).
    No active HCAs found on the system!!!

In doubt: an adapter that nobody cabled says so, too, and so does a port that the library itself cannot use. Where the
text shows RDMA in use, or an active port, it says nothing.

SOURCE: Open MPI help-mpi-btl-openib.txt (`no active ports found`); MVAPICH2 src/mpid/ch3/channels/common/src/rdma.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.network.no_provider import RDMA_USED
from topodiag.evidence.sentences import Together

MAX_LINE = 1000
_NONE = re.compile(
    r"(?<!\bif )(?<!\bwhen )(?<!\bif there is )(?<!\bif there are )\bno active (?:(?:IB|InfiniBand|RDMA|RoCE|HCA) )?"
    r"(?:ports?|HCAs?)\b(?! (?:in|for) )(?!-)",
    re.IGNORECASE,
)
_OF_RDMA = re.compile(
    r"\b(?:OpenFabrics|OpenIB|InfiniBand|RDMA|RoCE|HCAs?|IB (?:device|port)s?|hfi1?|PSM[23]?|UCX)\b|\bmlx[45]_\d",
    re.IGNORECASE,
)
_ABOVE = 2
"""Lines above that belong to the sentence."""
_ASIDE = re.compile(r"\b(?:DEBUG|TRACE|INFO|DIAG)\b|\?\s*$|^\s{0,8}(?:#|//|\*)|[{};]\s*$")
"""What a program says while it looks around, questions, and code."""
_ACTIVE = re.compile(
    r"\b[Ss]tate:\s{1,20}(?:4: )?(?:PORT_)?ACTIVE\b|\bState: Active\b|\brc_mlx5/|\busing mlx[45]_\d{1,2}:\d"
)


def idle_ports(lines: Sequence[str]) -> Iterator[Together]:
    """Of lines numbered from 1: the first that says that no port of the RDMA devices is active."""
    for number, line in enumerate(lines, 1):
        text = line[:MAX_LINE]
        if "o active " not in text or _NONE.search(text) is None or _ASIDE.search(text) is not None:
            continue
        if not any(_OF_RDMA.search(each[:MAX_LINE]) for each in lines[max(0, number - 1 - _ABOVE) : number]):
            continue
        if not any(RDMA_USED.search(each[:MAX_LINE]) or _ACTIVE.search(each[:MAX_LINE]) for each in lines):
            said = " ".join(text.split())[:160]
            words = f'"{said}": an adapter that is not cabled, and that nobody uses, says so, too'
            yield Together("port-down", number, words)
        return


__all__ = ["idle_ports"]
