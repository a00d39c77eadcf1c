"""Logs and configuration of Fabric Manager and IMEX."""

from typing import List

from topodiag_probes import reduced
from topodiag_probes.interface import FileProbe, Probe


def probes() -> List[Probe]:
    fabric, imex = "var/log/fabricmanager.log", "var/log/nvidia-imex.log"
    lines = ("lines about trouble, versions and states",)
    nodes = ("the nodes, without comments",)
    return [
        FileProbe("fabricmanager-log", fabric, tail=True, reduce=reduced.service_log, keeps=lines),
        FileProbe("imex-log", imex, tail=True, reduce=reduced.service_log, keeps=lines),
        FileProbe(
            "imex-config",
            "etc/nvidia-imex/nodes_config.cfg",
            limit=1024 * 1024,
            reduce=reduced.addresses,
            keeps=nodes,
        ),
    ]
