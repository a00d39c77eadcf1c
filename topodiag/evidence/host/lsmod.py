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
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.gpudirect import PEERMEM_MODULES
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


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module that is loaded, or, with an empty name, that peer memory was asked for and is not. `whole`: in a list of
    all modules."""

    name: str
    line: int
    text: str
    whole: bool = False


class Lsmod(Source[Loaded]):
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

    def parse(self, blob: Blob) -> Parsed[Loaded]:
        parsed: Parsed[Loaded] = Parsed()
        whole = False
        asked: tuple[int, str] | None = None
        for number, text in blob.lines():
            line = text[:MAX_LINE]
            if _HEADER.match(line):
                whole = True
                parsed.records.append(Loaded("", number, line, whole=True))
            elif found := _ASKED.search(line):
                asked = (number, line) if "peer" in found[1] else asked
            elif row := _ROW.match(line):
                parsed.records.append(Loaded(row[1], number, line, whole))
        if asked is not None and not whole:
            parsed.records.append(Loaded("", *asked))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[Loaded], draft: NodeDraft) -> None:
        system = draft.single("os")
        peers = next((record for record in parsed.records if record.name in PEERMEM_MODULES), None)
        absent = next((record for record in parsed.records if not record.name), None)
        names = frozenset(record.name for record in parsed.records if record.name)
        if peers is not None:
            system.offer("peermem", True, blob.origin(peers.line, peers.text))
        elif absent is not None and (names or not absent.whole):
            system.offer("peermem", False, blob.origin(absent.line, absent.text))
        if names and absent is not None and absent.whole:
            system.offer("modules", names, blob.origin(absent.line, absent.text))


MAX_PARAMETERS = 10_000
_VALUE = regex(r"\s{1,16}Current value=(.{0,1024}?) set_by=(\S{1,60}) default=(.{0,1024})\s*\Z")
_LOOKS = regex(r"^[ \t]{1,16}Current value=[^\n]{0,1024} set_by=\S{1,60} default=", re.MULTILINE)
_KEY = regex(r"(?:NCCL_|RCCL_)?[A-Z][A-Z0-9_]{1,100} \([^()\n]{1,80}\) \[")
_DEFAULT = "default"
_UNSET = "<unset>"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its name as a variable, the value in force, and who set it."""

    name: str
    value: str
    set_by: str
    line: int
    text: str


class NcclParams(Source[Parameter]):
    """Settings in force by NCCL's own registry: better evidence than the environment of a shell."""

    kind = "nccl-params"
    speaks_of = frozenset({Topic.SETTINGS})
    trust = 80

    def recognises(self, head: str) -> bool:
        return _LOOKS.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[Parameter]:
        parsed: Parsed[Parameter] = Parsed()
        name = ""
        lines = blob.text.split("\n")
        for number, text in enumerate(lines, 1):
            key = _KEY.match(text)
            if key is not None:
                word = text.split(" ", 1)[0]
                name = word if word.startswith(("NCCL_", "RCCL_")) else f"NCCL_{word}"
                continue
            match = _VALUE.match(text[:4096])
            if match is not None and name and len(parsed.records) < MAX_PARAMETERS:
                parsed.records.append(Parameter(name, match[1], match[2], number, text.strip()))
                name = ""
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[Parameter], draft: NodeDraft) -> None:
        for record in parsed.records:
            if record.set_by.lower() != _DEFAULT and record.value != _UNSET:
                origin = blob.origin(record.line, f"{record.name}: {record.text}")
                draft.settings.append(Setting(record.name, record.value, ENVIRONMENT, origin))
