"""`NCCL DIAG` lines, on the standard output of rank 0 or as the answer of `ncclras -D`.

    node042:12345 NCCL DIAG [OK]   GPU inventory: 8x NVIDIA H100 per node consistent across 8 ranks in comm 0x1234
    node042:12345 NCCL DIAG [INFO] NCCL environment: NCCL_BUFFSIZE=8388608 on rank(s) {8,9,10,11}

    node042:12345 NCCL DIAG [INFO] Xid 79 detected 1 time on host node043. For the recommended response, see ..
    node042:12345 NCCL DIAG [INFO] net bw: tx rank 2 (node043): 204.6 Gbit/s, >30% off median 391.8 Gbit/s in comm 0x12

SOURCE: NCCL 2.31 and 2.32 src/ras/diagnostics*.cc, src/diagnostics/*.cc; RCCL's port says HIP for CUDA and XGMI for
NVLink.
"""

from __future__ import annotations

from topodiag.lazy import regex
from topodiag.model.diagnostics import Diagnosis
from topodiag.model.provenance import MAX_QUOTE, Origin

MAX_BYTES = 64 << 20
MAX_LINES = 100_000
MAX_LINE = 4000

LOOKS = regex(rb"NCCL DIAG (?:\[OK\]|\[INFO\]|===|RAS diagnostics|NCCL diagnostics) ?")
_LINE = regex(r"NCCL DIAG \[(OK|INFO)\] {1,3}(?:(S?Xid)(?= [0-9])|([^:]{1,60}):) (.{1,3000})")
_HEAD = regex(r"(\S{1,255}):([0-9]{1,10})\Z")
_COMM = regex(r"(?:across ([0-9]{1,9}) ranks\)? )?in comm 0x([0-9a-fA-F]{1,16})")
_RANKS = regex(r"rank\(s\) \{([0-9, ]{1,2000})")
_RANK = regex(r"\b(?:(?:srcRank|dstRank|rank)=|rank (?=[0-9]{1,9} \([^()]{1,255}\): ))([0-9]{1,9})(?![0-9])")


def read_diagnostics(text: str, source: str) -> tuple[Diagnosis, ...]:
    """The lines with a tag, in their order. A line of values has the communicator of the line above it."""
    made: list[Diagnosis] = []
    comm, size = 0, -1
    for number, line in enumerate(text.split("\n"), 1):
        if "NCCL DIAG" not in line or len(made) >= MAX_LINES:
            continue
        match = _LINE.search(line[:MAX_LINE])
        if match is None:
            comm, size = (0, -1) if "===" in line else (comm, size)
            continue
        tag, event, named_subject, said = match.groups()
        subject = event or named_subject
        head = _HEAD.match((line[: match.start()].split() or [""])[-1])
        host, pid = head.groups() if head is not None else ("", "")
        named = _COMM.search(said)
        if named is not None:
            comm, size = int(named[2], 16), int(named[1]) if named[1] else -1
        listed = _RANKS.search(said)
        ranks = listed[1].replace(" ", "").split(",") if listed is not None else _RANK.findall(said)
        made.append(
            Diagnosis(
                tag == "OK",
                subject,
                said.rstrip(),
                comm,
                size,
                tuple(dict.fromkeys(int(each) for each in ranks if each and len(each) < 10)),
                host,
                int(pid) if pid else -1,
                Origin(source, number, line.strip()[:MAX_QUOTE]),
            )
        )
    return tuple(made)
