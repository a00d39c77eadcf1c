"""`lsmod`: the modules of the kernel that RDMA and GPUs need, whole or by a pattern that asks for peer memory.

    $ lsmod | grep -E 'nvidia|peer'
    nvidia_peermem         16384  0
    nvidia              56823808  2 nvidia_uvm,nvidia_modeset

Format: kmod (tools/lsmod.c). A pattern hides what it does not ask for.

`ncclparam -l`, and the dump of NCCL_PARAM_DUMP_ALL=true: the values of NCCL's parameters in force, and who set them.

    NCCL_IB_TIMEOUT (int64_t) [cached] timeout of InfiniBand verbs
        Current value=22 set_by=EnvPlugin default=20
        Accepted value: integer

SOURCE: NCCL 2.30 and later, src/include/param/param.h (dump), src/param/ncclparam.cc. `EnvPlugin` is what reads the
environment and nccl.conf.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.settings import ENVIRONMENT
from topodiag.evidence.interface import Blob, Direct, Parsed
from topodiag.lazy import regex
from topodiag.model.gpudirect import PEERMEM_MODULES
from topodiag.model.provenance import Origin
from topodiag.model.system import Setting
from topodiag.model.topics import Topic

MAX_LINE = 2000
_HEADER = regex(r"^[ \t>|]{0,20}Module\s{1,40}Size\s{1,20}Used by\s*$", re.MULTILINE)
_ROW = regex(
    r"[ \t>|]{0,20}([a-z][a-z0-9_]{1,60})\s{1,40}(\d{4,12})\s{1,20}(-?\d{1,6})(?:\s{1,4}[a-z0-9_,-]{1,1000})?\s*\Z"
)
_ASKED = regex(r"\blsmod\s{0,8}\|\s{0,8}(?:e?grep|rg)\s(.{1,200})")
_NEEDED = PEERMEM_MODULES | {
    "nvidia", "nvidia_uvm", "nvidia_modeset", "ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "rdma_cm", "amdgpu",
    "gdrdrv",
}  # fmt: skip


class Lsmod(Direct):
    """Loaded modules, and whether the peer memory module is among them."""

    kind = "lsmod"
    speaks_of = frozenset({Topic.OS})
    trust = 65
    a_piece = "modules alone"

    def recognises(self, head: str) -> bool:
        if ("Used by" in head and _HEADER.search(head)) or ("lsmod" in head and _ASKED.search(head)):
            return True
        names = [row[1] for line in head.split("\n")[:400] if (row := _ROW.match(line[:MAX_LINE]))]
        return len(_NEEDED.intersection(names)) > 0

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        system, names = draft.single("os"), set[str]()
        head: Origin | None = None
        asked: Origin | None = None
        for number, text in blob.lines():
            line = text[:MAX_LINE]
            origin = blob.origin(number, line)
            if _HEADER.match(line):
                head = head or origin
            elif match := _ASKED.search(line):
                asked = origin if "peer" in match[1] else asked
            elif row := _ROW.match(line):
                if row[1] in PEERMEM_MODULES and names.isdisjoint(PEERMEM_MODULES):
                    system.offer("peermem", True, origin)
                names.add(row[1])
            else:
                continue
            parsed.records.append(number)
        if head is not None and names:
            system.offer("modules", frozenset(names), head)
            asked = head
        if asked is not None and names.isdisjoint(PEERMEM_MODULES) and (head is None or names):
            system.offer("peermem", False, asked)
        return parsed


MAX_PARAMETERS = 10_000
_VALUE = regex(r"\s{1,16}Current value=(.{0,1024}?) set_by=(\S{1,60}) default=(.{0,1024})\s*\Z")
_KEY = regex(r"(?:NCCL_|RCCL_)?[A-Z][A-Z0-9_]{1,100} \([^()\n]{1,80}\) \[")
_DEFAULT = "default"
_UNSET = "<unset>"


class NcclParams(Direct):
    """Settings in force by NCCL's own registry: better evidence than the environment of a shell."""

    kind = "nccl-params"
    speaks_of = frozenset({Topic.SETTINGS})
    trust = 80

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        name = ""
        for number, text in enumerate(blob.text.split("\n"), 1):
            if _KEY.match(text) is not None:
                word = text.split(" ", 1)[0]
                name = word if word.startswith(("NCCL_", "RCCL_")) else f"NCCL_{word}"
                continue
            match = _VALUE.match(text[:4096])
            if match is not None and name and len(parsed.records) < MAX_PARAMETERS:
                if match[2].lower() != _DEFAULT and match[1] != _UNSET:
                    origin = blob.origin(number, f"{name}: {text.strip()}")
                    draft.settings.append(Setting(name, match[1], ENVIRONMENT, origin))
                parsed.records.append(number)
                name = ""
        return parsed
