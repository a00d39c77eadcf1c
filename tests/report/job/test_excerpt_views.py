"""Rings, trees, the machine as NCCL printed it and channel counts are shown without a communicator line."""

from tests.checks.excerpts import jobs_of
from topodiag.report.interface import Style
from topodiag.report.job.ranks import draw_comms
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


def drawn(view: str, head: str = "n0:1:2 [0] NCCL INFO ") -> str:
    (job,) = jobs_of("".join(f"{head}{line}\n" for line in LINES))
    page = Page(Style(width=120))
    VIEWS[view].draw(page, job)
    return "\n".join(line.plain for line in page.lines)


def test_the_machine_is_shown_as_nccl_printed_it() -> None:
    for head in ("n0:1:2 [0] NCCL INFO ", "NCCL INFO ", "[Node-A]:[PID]:[TID] [0] NCCL INFO "):
        text = drawn("printed", head)
        assert "GPU/0-1b000 rank 0 24 GB/s  NVL 40 to GPU/0-2b000" in text
        assert "max 40 GB/s, total 40 GB/s" in text
        assert "ring  1 x 20/20 GB/s  NVL/PIX" in text
        assert "2 rings and trees, 2 p2p, 2 p2p a peer" in text


def test_paths_between_gpus_are_a_matrix() -> None:
    rows = [line.split() for line in drawn("printed").splitlines() if line.strip().startswith("GPU/0-")]
    assert ["GPU/0-1b000", "X", "NVL"] in rows


def test_trees_are_shown_from_the_line_of_one_rank() -> None:
    text = drawn("trees")
    assert "ch 0  0 to 1" in text
    assert "ch 1  0 to 1 and 2" in text


def test_rings_are_shown_without_a_communicator_line() -> None:
    assert "ch 0" in drawn("rings")


def test_an_init_that_was_not_logged_is_not_an_init_that_failed() -> None:
    (job,) = jobs_of("".join(f"n0:1:2 [0] NCCL INFO {line}\n" for line in LINES))
    page = Page(Style(width=160))
    draw_comms(page, job)
    assert "not logged" in "\n".join(line.plain for line in page.lines)


def test_a_log_without_any_of_it_says_what_to_log() -> None:
    (job,) = jobs_of("n0:1:2 [0] NCCL INFO Using network IB\n")
    for view in ("printed", "trees"):
        page = Page(Style(width=120))
        VIEWS[view].draw(page, job)
        assert "NCCL_DEBUG_SUBSYS lacked" in page.lines[0].plain
