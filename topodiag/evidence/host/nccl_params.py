"""`ncclparam -l`, and the dump of NCCL_PARAM_DUMP_ALL=true: the values of NCCL's parameters in force, and who set them.

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
from topodiag.model.system import Setting
from topodiag.model.topics import Topic

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
        parsed.lines = len(lines)
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
        for each in parsed.records:
            if each.set_by.lower() != _DEFAULT and each.value != _UNSET:
                origin = blob.origin(each.line, f"{each.name}: {each.text}")
                draft.settings.append(Setting(each.name, each.value, ENVIRONMENT, origin))
