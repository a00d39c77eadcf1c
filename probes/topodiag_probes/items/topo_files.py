"""The topology files that NCCL would read on this node."""

import os
from typing import List

from topodiag_probes import reduced
from topodiag_probes.interface import Context, FileProbe, Outcome, Probe

TOPOLOGYD = "var/run/nvidia-topologyd/virtualTopology.xml"
_KEEPS = ("elements and attributes, without comments and text",)


class NcclTopoFile(Probe):
    """Names the file that `NCCL_TOPO_FILE` points to; without one there is nothing to capture."""

    id = "nccl-topo-file"
    kind = "nccl-xml"
    about = "the file that NCCL_TOPO_FILE names"
    needs = "NCCL_TOPO_FILE"
    keeps = _KEEPS

    def more(self, ctx: Context) -> List[Probe]:
        named = ctx.environ.get("NCCL_TOPO_FILE", "") if ctx.live else ""
        if not named:
            return []
        place = os.path.abspath(named)
        file = "files/nccl-topo-file.xml"
        return [FileProbe(self.id, place, kind=self.kind, file=file, reduce=reduced.topo_xml, keeps=_KEEPS)]

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        out.status, out.why = "absent", "NCCL_TOPO_FILE is not set"


def probes() -> List[Probe]:
    file = "files/topologyd-file.xml"
    return [
        NcclTopoFile(),
        FileProbe("topologyd-file", TOPOLOGYD, kind="nccl-xml", file=file, reduce=reduced.topo_xml, keeps=_KEEPS),
    ]
