"""lspci: capabilities in words, among them ACS control and link status."""

from typing import List

from topodiag_probes import reduced
from topodiag_probes.interface import CommandProbe, Probe


def probes() -> List[Probe]:
    return [
        CommandProbe(
            "lspci",
            "lspci",
            ["lspci", "-D", "-vv"],
            root_adds="capabilities: link status, ACS control, AER",
            reduce=reduced.lspci,
            keeps=("functions, links and capabilities, without vital product data and board labels",),
        ),
    ]
