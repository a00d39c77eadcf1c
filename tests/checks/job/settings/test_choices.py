"""JOB003 by an algorithm or protocol that differs by rank."""

from __future__ import annotations

from topodiag.api import logs
from topodiag.model.finding import Finding

HEAD = "{host}:{pid}:{pid} [0] NCCL INFO "
START = (
    HEAD + "ncclCommInitRankConfig comm 0x{rank}1 rank {rank} nranks 2 cudaDev 0 busId 1000 commId 0xabc - Init {at}\n"
)
CHOICE = HEAD + "AllReduce: {size} Bytes -> Algo {algo} proto {proto} channel{{Lo..Hi}}={{0..1}}\n"


def job(*choices: tuple[int, int, str, str]) -> bytes:
    """Two ranks of one communicator, with these choices: rank, bytes, algorithm, protocol."""
    names = [{"host": f"n{rank}", "pid": 7 + rank, "rank": rank} for rank in range(2)]
    text = "".join(START.format(at="START", **name) + START.format(at="COMPLETE", **name) for name in names)
    for rank, size, algo, proto in choices:
        text += CHOICE.format(size=size, algo=algo, proto=proto, **names[rank])
    return text.encode()


def found(text: bytes) -> list[Finding]:
    return [finding for finding in logs(text).findings if finding.id == "JOB003"]


def test_an_algorithm_that_differs_by_rank_is_found() -> None:
    [finding] = found(job((0, 524288, "RING", "LL"), (1, 524288, "RING", "SIMPLE"), (0, 64, "RING", "LL")))
    assert finding.message.startswith("ranks choose differently for AllReduce of")
    assert finding.observed == "RING/LL on rank 0 (n0); RING/SIMPLE on rank 1 (n1)"
    assert len(finding.evidence) == 2


def test_ranks_that_choose_alike_are_silent() -> None:
    assert found(job((0, 524288, "RING", "LL"), (1, 524288, "RING", "LL"))) == []


def test_other_sizes_and_choices_that_change_in_time_are_no_difference() -> None:
    assert found(job((0, 64, "RING", "LL"), (1, 128, "TREE", "LL"))) == []
    several = [(0, 64, "RING", "LL"), (0, 64, "TREE", "LL"), (1, 64, "RING", "LL")]
    assert found(job(*several)) == []
