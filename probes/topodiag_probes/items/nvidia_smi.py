"""nvidia-smi: the interconnect matrix, peer-to-peer capabilities, NVLink state and counters, everything as XML."""

from typing import List, Optional

from topodiag_probes import reduced
from topodiag_probes.interface import CommandProbe, Probe, Reduce

NVIDIA_SMI_S = 15.0
"""Seconds: without persistence mode each call initialises every GPU, and several at once wait for each other."""


def _probe(
    name: str, kind: str, *arguments: str, sampled: bool = False, reduce: Optional[Reduce] = None, keeps: str = ""
) -> Probe:
    probe = CommandProbe(
        "nvidia-smi-" + name,
        "nvidia-smi-" + kind,
        ["nvidia-smi", *arguments],
        sampled=sampled,
        reduce=reduce,
        keeps=(keeps or "the output as it is: GPUs, NICs and links by number, name and UUID",),
    )
    probe.limit_s = NVIDIA_SMI_S
    return probe


def probes() -> List[Probe]:
    return [
        _probe(
            "q",
            "xml",
            "-q",
            "-x",
            reduce=reduced.smi_xml,
            keeps="the output, with programs for processes and without serial numbers",
        ),
        _probe("topo-m", "topo", "topo", "-m"),
        _probe("p2p-r", "p2p", "topo", "-p2p", "r"),
        _probe("p2p-w", "p2p", "topo", "-p2p", "w"),
        _probe("p2p-n", "p2p", "topo", "-p2p", "n"),
        _probe("nvlink-s", "nvlink", "nvlink", "-s"),
        _probe("nvlink-e", "nvlink", "nvlink", "-e", sampled=True),
        _probe("nvlink-c", "nvlink", "nvlink", "-c"),
        _probe("nvlink-R", "nvlink", "nvlink", "-R"),
    ]
