"""Logs and configuration of Fabric Manager and IMEX."""

from typing import List

from topodiag_probes.interface import FileProbe, Probe


def probes() -> List[Probe]:
    return [
        FileProbe("fabricmanager-log", "var/log/fabricmanager.log", tail=True),
        FileProbe("imex-log", "var/log/nvidia-imex.log", tail=True),
        FileProbe("imex-config", "etc/nvidia-imex/nodes_config.cfg", limit=1024 * 1024),
    ]
