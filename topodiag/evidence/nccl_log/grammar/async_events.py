"""Events of an RDMA device that goes away or fails, as programs repeat them that are not NCCL.

    rdmacm_cm.c:715  UCX  ERROR [cep 0x6080.. ] got error event RDMA_CM_EVENT_DEVICE_REMOVAL, event status Success (0)
    Received context async event local catastrophic error for context mlx5_3
    [mlx5_1] async event IBV_EVENT_DEVICE_FATAL

SOURCE: rdma-core libibverbs/verbs.h (ibv_event_type), ibv_event_type_str in libibverbs/enum_strs.c, librdmacm/cma.c
(rdma_event_str); UCX src/uct/ib/rdmacm/rdmacm_cm.c.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar.numbers import compiled

_WORDS = {
    "RDMA_CM_EVENT_DEVICE_REMOVAL": "device removed", "IBV_EVENT_DEVICE_FATAL": "device fatal",
    "IBV_EVENT_PORT_ERR": "port error", "local catastrophic error": "device fatal",
}  # fmt: skip
"""In the words of the check (checks/job/network_errors.py), by the name of the event."""
_EVENT = compiled(
    r"(?i:\bevents?\b)[^\n;]{0,60}?(RDMA_CM_EVENT_DEVICE_REMOVAL|IBV_EVENT_(?:DEVICE_FATAL|PORT_ERR)\b"
    r"|\blocal catastrophic error\b)(?:[^\n;]{0,24}?\b(?:for|on) (?:context |device )?([a-z][\w.-]{1,40}))?"
)
_DEVICE = compiled(r"\b((?:mlx[45]_|bnxt_re|irdma|ionic_|rocep|hfi1_|efa_|rdmap)\d?\w{1,24})\b")
_LISTED = re.compile(r"\bcase\b|\bif ?\(|==|\|\||^\s{0,8}(?:#|//|\*)|,\s*$|\breturn\b")
"""Lines of a program's source."""

WORDS = (b"CM_EVENT_DEVICE_REM", b"EVENT_DEVICE_FATAL", b"EVENT_PORT_ERR", b"local catastrophic")
"""A line without any of these is none of theirs."""


def event_of(text: str) -> tuple[str, dict[str, str]] | None:
    """`ib async` with the event and the device, as far as the line names it; None for all other lines."""
    found = _EVENT.search(text)
    if found is None or _LISTED.search(text) is not None:
        return None
    device = found[2] or next(iter(_DEVICE.findall(text)), "")
    return "ib async", {"hca": device, "event": _WORDS[found[1]], "port": ""}


__all__ = ["WORDS", "event_of"]
