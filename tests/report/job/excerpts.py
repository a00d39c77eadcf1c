"""Views of logs without a line of a communicator: rings, trees, channel counts, and the machine as NCCL printed it."""

from tests.checks.excerpts import jobs_of
from topodiag.report.interface import Style
from topodiag.report.job.comms import draw_comms
from topodiag.report.job.registry import VIEWS
from topodiag.report.text import Page

LINES = [
    "Channel 00/02 : 0 1 2 3",
    "Trees [0] 1/-1/-1->0->-1 [1] 1/2/-1->0->-1",
    "2 coll channels, 2 p2p channels, 2 p2p channels per peer",
    "=== System : maxBw 40.0 totalBw 40.0 ===",
    "CPU/0-0 (1/1/4)",
    "+ PCI[24.0] - GPU/0-1b000 (0)",
    "              + NVL[40.0] - GPU/0-2b000",
    "+ PCI[24.0] - GPU/0-2b000 (1)",
    "              + NVL[40.0] - GPU/0-1b000",
    "==========================================",
    "GPU/0-1b000 :GPU/0-1b000 (0/5000.0/LOC) GPU/0-2b000 (1/40.0/NVL) CPU/0-0 (1/24.0/PHB) ",
    "Pattern 4, crossNic 0, nChannels 1, bw 20.000000/20.000000, type NVL/PIX, sameChannels 1",
    " 0 : GPU/0-1b000 GPU/0-2b000",
]


def drawn(view: str, head: str = "n0:1:2 [0] NCCL INFO ", lines: list[str] = LINES, width: int = 120) -> str:
    (job,) = jobs_of("".join(f"{head}{line}\n" for line in lines))
    page = Page(Style(width=width))
    (draw_comms if view == "communicators" else VIEWS[view].draw)(page, job)
    return "\n".join(line.plain for line in page.lines)
