"""JOB001 by numbers of ranks that do not fit, JOB003 by worlds of different sizes."""

from pathlib import Path

from tests.pasted import said

WARN = "[2025-05-08 15:42:42] n1:746:946 [0] bootstrap.cc:334 NCCL WARN "
TWICE = WARN + "Bootstrap Root : rank {} of {} ranks has already checked in\n"


def test_a_rank_of_which_the_log_has_lines_did_come(tmp_path: Path) -> None:
    came = "n2:5:5 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 2 nranks 4 cudaDev 0 busId 60 commId 0x9 - Init START\n"
    messages = [
        finding["message"]
        for finding in said(tmp_path, TWICE.format(1, 4) + came)["findings"]
        if finding["id"] == "JOB001"
    ]
    assert any("rank 1 of 4; rank 3 never came" in message for message in messages)
