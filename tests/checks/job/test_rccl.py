"""Logs of RCCL: what it prints otherwise is read rightly, and what is known of NCCL alone is not asked of it."""

import re
from collections.abc import Collection
from itertools import combinations
from pathlib import Path

import pytest

from tests.checks.excerpts import jobs_of, result_of
from tests.checks.wanted import expect
from topodiag.app.case.jobs import LogOptions
from topodiag.app.judge.judged import OF_RCCL
from topodiag.app.logs import logs
from topodiag.checks.network.channels import SearchCollapsed
from topodiag.evidence.nccl_log.grammar.grammar import parse
from topodiag.model.finding import Finding, Status
from topodiag.report.interface import Style
from topodiag.report.job.table import draw_job_head
from topodiag.report.text import Page

BUSES = ("3000", "d000")


def log() -> str:
    lines = ["RCCL version : 2.27.7-HEAD:0d2c4fd", "HIP version  : 7.2.26015-fc0010cf6a",
             "ROCm version : 7.2.0.0-43-fc0010cf6a", "Hostname     : tars",
             "Librccl path : /opt/rocm-7.2.0/lib/librccl.so.1"]  # fmt: skip
    for rank, bus in enumerate(BUSES):
        head, tail = f"tars:{100 + rank}:{200 + rank} [{rank}] NCCL INFO ", f"comm 0x2bc1f84{rank} nRanks 02"
        init = f"ncclCommInitRankConfig_impl comm 0x2bc1f84{rank} rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank}"
        init += f" busId {bus} commId 0x9f3a61c07d2e55b1 - Init "
        lines += [
            f"{head}{init}START",
            f"{head}Ring 0 : {1 - rank} -> {rank} -> {1 - rank} {tail} busId {bus}",
            f"{head}Channel 00/0 : {rank}[{bus}] -> {1 - rank}[{BUSES[1 - rank]}] via P2P/IPC {tail}",
            f"{head}comm:0x2bc1f84{rank}, nRanks:2, nNodes:1, coll channels:2 collnet channels:2, nvls channels:0,"
            " p2p channels:2, p2p channels per peer:2",
            f"{head}{init}COMPLETE",
        ]
    return "\n".join(lines) + "\n"


def test_bus_ids_in_brackets_lead_to_the_communicator() -> None:
    (job,) = jobs_of(log())
    assert job.communicators[0].transports == {"P2P/IPC": 2}
    assert job.communicators[0].rings == {0: (0, 1)}


def test_its_line_of_channels_is_read() -> None:
    (job,) = jobs_of(log())
    counts = job.communicators[0].channels
    assert (counts.coll, counts.collnet, counts.nvls, counts.p2p, counts.per_peer) == (2, 2, 0, 2, 2)
    older = "comm:0x2bc1f840, nRanks:2, coll channels:2, collnet channels:0, nvls channels:0, p2p channels:2,"
    assert parse("INFO", f"{older} p2p channels per peer:2") is not None


def test_its_version_is_its_own() -> None:
    result = result_of(log())
    (job,) = result.jobs
    assert (job.library, job.nccl_versions) == ("RCCL", ("2.27.7-HEAD:0d2c4fd",))
    page = Page(Style(width=120))
    draw_job_head(page, result, job)
    text = "\n".join(line.plain for line in page.lines)
    assert "RCCL 2.27.7-HEAD:0d2c4fd" in text
    assert " NCCL 2.27" not in text


def test_what_is_not_known_of_rccl_is_said_and_not_guessed() -> None:
    result = result_of(log())
    assert OF_RCCL in [gap.why for gap in result.not_observed]
    assert SearchCollapsed().judge(result.jobs[0]).status is Status.NOT_APPLICABLE
    assert not result.findings


@pytest.mark.parametrize(
    ("line", "library"),
    [("Using network IB", "NCCL"), ("MSCCL: Setup complete", "NCCL"), ("hipDriverVersion 70253211", "RCCL")],
)
def test_a_log_is_of_the_library_that_alone_writes_such_a_line(line: str, library: str) -> None:
    version = "NCCL version 2.21.5+cuda12.4\n" if library == "NCCL" else ""
    (job,) = jobs_of(f"{version}n0:1:2 [0] NCCL INFO Using network IB\nn0:1:2 [0] NCCL INFO {line}\n")
    assert job.library == library


HEALTHY = Path(__file__).resolve().parents[3] / "fixtures" / "jobs" / "rccl-healthy" / "logs"
_GPU = re.compile(r"- GPU/0-([0-9a-f]{5}) \(\d+\)$")
_LINK = re.compile(r"\+ XGMI\[48\.0\] - GPU/0-([0-9a-f]{5})$")
MI300X = ("05000", "26000", "46000", "65000", "85000", "a6000", "c6000", "e5000")


def cut(folder: Path, host: str, lost: Collection[frozenset[str]]) -> list[Finding]:
    """TOP004 of the healthy job, whose prints of one host have no link for some pairs, in either direction."""
    for log_file in HEALTHY.iterdir():
        here, kept = "", []
        for line in log_file.read_text(encoding="utf-8").splitlines():
            gpu, link = _GPU.search(line), _LINK.search(line)
            here = gpu[1] if gpu else here
            if not (link and host in log_file.name and frozenset((here, link[1])) in lost):
                kept.append(line)
        (folder / log_file.name).write_text("\n".join(kept) + "\n", encoding="utf-8")
    result = logs([str(folder)], options=LogOptions(workers=1))
    return [finding for finding in result.findings if finding.id == "TOP004"]


def test_a_pair_without_its_link_is_seen_in_the_print(tmp_path: Path) -> None:
    outcome = cut(tmp_path, "mi-08", {frozenset(("46000", "e5000"))})
    finding = expect(outcome, nodes=("mi-08",), gpus=("GPU2", "GPU7"), ranks=(10, 15), message="*have no xGMI*")
    assert not re.search("nvidia|NVLink", " ".join((finding.message, finding.expected, *finding.fix)))


NEXT = {frozenset((MI300X[at], MI300X[at - 1])) for at in range(8)}
ALL = {frozenset(pair) for pair in combinations(MI300X, 2)}


@pytest.mark.parametrize("lost", [set(), ALL - NEXT, ALL], ids=["whole", "a ring by design", "no link at all"])
def test_boards_that_are_whole_or_join_few_pairs_by_design_are_silent(
    lost: set[frozenset[str]], tmp_path: Path
) -> None:
    assert cut(tmp_path, "mi-08", lost) == []
