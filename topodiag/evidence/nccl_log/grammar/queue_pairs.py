"""A queue pair that the driver refuses, and an address or a GID that a program cannot make anything of, in the words of
verbs programs and of the libraries above them.

SOURCE: perftest src/perftest_resources.c; psm3; UCX src/uct/ib (ud_ep.c: a peer that answers nothing); NVSHMEM;
Mooncake; libfabric util/pingpong.c; UCCL's util_rdma.h, which has NCCL's function for the kind of a GID.
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar import rank_states
from topodiag.evidence.nccl_log.grammar.numbers import compiled

_QP = compiled(
    r"[Ff]ailed to (?:modify|transition|bring) (?:\w{1,12} )?(?:QP|queue pair)\b.{0,40}?\bto (?:INIT|RTR|RTS)\b"
    r"|\b(?:ibv_)?modify_?(?:QP|qp| QP| qp)\b.{0,60}?\b(?:INIT|RTR|RTS)\b.{0,40}?\bfail"
    r"|\bibv_modify_qp\b.{0,24}?\bfailed\b.{0,24}?\bto (?:INIT|RTR|RTS)\b"
    r"|\bRDMA_CM_EVENT_(?:UNREACHABLE|(?:ADDR|ROUTE|CONNECT)_ERROR)\b"
    r"|\bibv_(?:modify_qp|query_gid)\([^)]{0,120}\) failed|\bibv_create_ah\([^)]{0,200}\)[^:]{0,80} failed\b"
    r"|\bUD endpoint .{1,120}: unhandled timeout error"
)
"""A queue pair that the driver refuses, or (UCX) the address of the peer that it cannot resolve
or that does not answer, by Mooncake, perftest, psm3, UCX and NVSHMEM."""
_NO_HANDLE = compiled(
    r"\bfi_av_insert\b.{0,40}\binserted = 0; number of addresses given = [1-9]"
    r"|\bNET/OFI Unable to insert (?:remote|peer) address into address vector\b"
)
"""libfabric util/pingpong.c; aws-ofi-nccl src/nccl_ofi_sendrecv.cpp, nccl_ofi_rdma.cpp: the provider can make nothing
of the peer's address."""
_NO_GID = compiled(
    r"\bcan'?t read sgid of index \d|\bibv_query_gid(?:_\w{1,8})?(?:\(\))?:? (?:call )?failed\b|"
    r"(?:\b(?i:read|query|get)\w{0,6} failed in |\bfailed: )\w{0,24}RoceGetVersionNum\b"
    r"|\b(?i:fail(?:ed|ure)|unable|cannot|could not)\b.{0,24}\b(?i:read|query|get|find|resolve)\w{0,5} "
    r"(?:\w{1,12} ){0,3}"
    r"(?:GID|gid (?:index|entry|type|table))\b.{0,80}?(?:: |errno|error)\W?.{0,20}"
    r"(?:Invalid argument|No data available|No such device|EINVAL|22\b)"
)
"""A GID that a program does not find where it looks for it: NCCL's function in other libraries (UCCL), and their own
words."""
_ERRNO = compiled(
    r"[:,] ?(Connection timed out|unhandled timeout error|No route to host|(?:Network|Host) is unreachable"
    r"|Invalid argument|No data available|No such device|Operation not permitted|Operation not supported)"
)
WORDS = (b"odify", b"ibv_create_ah", b"ibv_query_gid", b"to RTR", b"to RTS", b"RDMA_CM_EVENT_", b"RoceGetVersionNum",
         b" GID ", b"read sgid", b" gid ", b"fi_av_insert", b"address vector",
         b"UD endpoint")  # fmt: skip
"""A line without any of these is none of theirs."""


def refused_of(text: str) -> dict[str, str]:
    """`refused`: in which words; `fault` of a GID that is not there; nothing for all other lines."""
    if _QP.search(text) is not None:
        why = _ERRNO.search(text)
        return {"refused": why[1] if why is not None else "refused"}
    if _NO_HANDLE.search(text) is not None:
        return {"refused": "no address handle for it", "provider": "libfabric"}
    if _NO_GID.search(text) is not None and rank_states.is_said(text):
        why = _ERRNO.search(text)
        return {"refused": why[1] if why is not None else "Invalid argument", "fault": "gid"}
    return {}
