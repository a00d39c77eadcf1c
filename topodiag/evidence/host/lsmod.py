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

from topodiag.evidence.host.settings import ENVIRONMENT
from topodiag.evidence.page import MARGIN, Line, OfPage, Page
from topodiag.lazy import regex
from topodiag.model.gpudirect import PEERMEM_MODULES
from topodiag.model.system import Setting

_HEADER = ["Module", "Size", "Used", "by"]
_NEEDED = PEERMEM_MODULES | {
    "nvidia", "nvidia_uvm", "nvidia_modeset", "ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "rdma_cm", "amdgpu",
    "gdrdrv",
}  # fmt: skip
_STARTS = (_HEADER[0], *_NEEDED)


class Lsmod(OfPage):
    """Loaded modules, and whether the peer memory module is among them."""

    def recognises(self, head: str) -> bool:
        lines = [line.strip(MARGIN) for line in head.split("\n")]
        rows = (line for line in lines if line.startswith(_STARTS))
        return any(map(_asked, lines)) or any(line.split() == _HEADER or _module(line) in _NEEDED for line in rows)

    def read_page(self, page: Page) -> None:
        system = page.draft.single("os")
        names: set[str] = set()
        head: Line | None = None
        asked: Line | None = None
        for line in page.lines():
            if line.bare.split() == _HEADER:
                head = head or line
            elif pattern := _asked(line.bare):
                asked = line if "peer" in pattern else asked
            elif name := _module(line.bare):
                if name in PEERMEM_MODULES:
                    line.offer(system, "peermem", True)
                names.add(name)
            else:
                continue
            page.mark(line.number)
        if head is not None and names:
            head.offer(system, "modules", frozenset(names))
            asked = head
        if asked is not None and names.isdisjoint(PEERMEM_MODULES) and (head is None or names):
            asked.offer(system, "peermem", False)


def _asked(line: str) -> str:
    """The pattern by which somebody searched the modules, "" in another line."""
    command, _, search = line.partition("|") if "lsmod" in line else ("", "", "")
    program, _, pattern = search.strip().partition(" ")
    return pattern if program in ("grep", "egrep", "rg") and command.strip().endswith("lsmod") else ""


def _module(row: str) -> str:
    """The module of a row, "" for what is none."""
    name, size, used, *_ = *row.split(), "", "", ""
    is_row = name.isidentifier() and name == name.lower() and size.isdecimal() and len(size) > 3
    return name if is_row and used.removeprefix("-").isdecimal() else ""


MAX_PARAMETERS = 10_000
_VALUE = regex(r"\s{1,16}Current value=(.{0,1024}?) set_by=(\S{1,60}) default=(.{0,1024})\s*\Z")
_DEFAULT = "default"
_UNSET = "<unset>"


class NcclParams(OfPage):
    """Settings in force by NCCL's own registry: better evidence than the environment of a shell."""

    def read_page(self, page: Page) -> None:
        name = ""
        for line in page.lines():
            word, _, rest = line.text.partition(" (")
            match = _VALUE.match(line.text)
            if word.isidentifier() and word.isupper() and ") [" in rest:
                name = word if word.startswith(("NCCL_", "RCCL_")) else f"NCCL_{word}"
            elif match is not None and name and len(page.parsed.records) < MAX_PARAMETERS:
                if match[2].lower() != _DEFAULT and match[1] != _UNSET:
                    origin = page.blob.origin(line.number, f"{name}: {line.text.strip()}")
                    page.draft.settings.append(Setting(name, match[1], ENVIRONMENT, origin))
                page.mark(line.number)
                name = ""
