"""The vocabulary of nccl-tests: element types, operations, collectives and the factor of their bus bandwidth.

SOURCE: NVIDIA/nccl-tests v1.0.0 to v2.19.6, src/common.cu (test_typenames, test_opnames) and the GetBw of each test.
"""

from __future__ import annotations

import re

from topodiag.lazy import regex

TYPE_BYTES = {
    "int8": 1, "uint8": 1, "char": 1, "int32": 4, "uint32": 4, "int": 4, "int64": 8, "uint64": 8, "half": 2,
    "float": 4, "double": 8, "bfloat16": 2, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1,
}  # fmt: skip
"""Bytes of an element by the name in the `type` column; `char` and `int` before v2.13, `fp8_*` in RCCL's fork."""

OPS = ("sum", "prod", "max", "min", "avg", "mulsum", "none")

COLLECTIVES = (
    "all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter", "alltoall", "alltoallv", "scatter", "gather",
    "sendrecv", "hypercube",
)  # fmt: skip
"""Names without `_perf`."""

SHARED = frozenset({"all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter"})
"""Whose buffer is cut in one part per rank: `size` = `count` x element x ranks, bus bandwidth (n-1)/n of algbw."""

TYPE = "|".join(sorted(TYPE_BYTES, key=len, reverse=True))
OP = "|".join(sorted(OPS, key=len, reverse=True))

_BINARY = regex(
    r"(?<![A-Za-z0-9])(all_reduce|all_gather|reduce_scatter|alltoallv|alltoall|broadcast|reduce|scatter|gather|sendrecv"
    r"|hypercube)_perf(?![a-z])"
)
_IN_NAME = (
    ("reduce_scatter", regex(r"reduce[-_]?scatter", re.I)),
    ("all_reduce", regex(r"all[-_]?reduce", re.I)),
    ("all_gather", regex(r"all[-_]?gather", re.I)),
    ("alltoallv", regex(r"all[-_]?(?:to|2)[-_]?allv", re.I)),
    ("alltoall", regex(r"all[-_]?(?:to|2)[-_]?all", re.I)),
    ("sendrecv", regex(r"send[-_]?recv", re.I)),
    ("broadcast", regex(r"broadcast|bcast", re.I)),
    ("hypercube", regex(r"hypercube", re.I)),
    ("scatter", regex(r"(?<![a-z])scatter", re.I)),
    ("gather", regex(r"(?<![a-z])gather", re.I)),
    ("reduce", regex(r"(?<![a-z])reduce(?![a-z])", re.I)),
)


def collective_of_binary(text: str) -> str:
    """The collective whose `*_perf` program a line names, "" where it names none."""
    found = _BINARY.search(text)
    return found[1] if found else ""


def collective_of_name(name: str) -> str:
    """The collective that a file's name speaks of, "" where it speaks of none or of several."""
    base = name.rsplit("/", 1)[-1]
    found = []
    for collective, pattern in _IN_NAME:
        base, hits = pattern.subn(" ", base)
        if hits:
            found.append(collective)
    return found[0] if len(found) == 1 else ""


def factor(collective: str, nranks: int) -> float | None:
    """busbw / algbw of a collective over so many ranks (nccl-tests doc/PERFORMANCE.md); None for an unknown one."""
    if nranks < 1:
        return None
    if collective == "all_reduce":
        return 2 * (nranks - 1) / nranks
    if collective in SHARED:
        return (nranks - 1) / nranks
    return 1.0 if collective in {"broadcast", "reduce", "sendrecv", "hypercube"} else None


def version_of_code(code: int) -> str:
    """`22809` as `2.28.9`; NCCL 2.8 and before counted in hundreds (`2708` is 2.7.8). SOURCE: NCCL src/nccl.h.in."""
    if not 1000 <= code < 1_000_000:
        return ""
    big = 10000 if code >= 10000 else 1000
    return f"{code // big}.{code % big // 100}.{code % 100}"
