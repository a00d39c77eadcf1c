"""The topology files that NCCL would read on this node."""

import os
from typing import List

from topodiag_probes.interface import Context, FileProbe, Outcome, Probe

TOPOLOGYD = "var/run/nvidia-topologyd/virtualTopology.xml"


class NcclTopoFile(Probe):
    """Names the file that `NCCL_TOPO_FILE` points to; without one there is nothing to capture."""

    id = "nccl-topo-file"
    kind = "nccl-xml"
    about = "the file that NCCL_TOPO_FILE names"
    needs = "NCCL_TOPO_FILE"

    def more(self, ctx: Context) -> List[Probe]:
        named = ctx.environ.get("NCCL_TOPO_FILE", "") if ctx.live else ""
        if not named:
            return []
        return [FileProbe(self.id, os.path.abspath(named), kind=self.kind, file="files/nccl-topo-file.xml")]

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        out.status, out.why = "absent", "NCCL_TOPO_FILE is not set"


def probes() -> List[Probe]:
    return [NcclTopoFile(), FileProbe("topologyd-file", TOPOLOGYD, kind="nccl-xml", file="files/topologyd-file.xml")]
