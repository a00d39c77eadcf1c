"""JOB001 by numbers of ranks that do not fit, JOB003 by worlds of different sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said
from tests.tables import examples

WARN = "[2025-05-08 15:42:42] n1:746:946 [0] bootstrap.cc:334 NCCL WARN "
TWICE = WARN + "Bootstrap Root : rank {} of {} ranks has already checked in\n"
BEYOND = WARN.replace("bootstrap.cc:334", "init.cc:1987") + "Invalid rank requested : {0}/{1}\n"
OLD_WORLDS = WARN + "Bootstrap Root : mismatch in rank count from procs 16 : 8\n"
WORLDS = WARN + "Bootstrap Root : mismatch in info from procs, nranks 16 vs 8, nroots 1 vs 1, iroot 0 vs 0\n"


@examples("text", "message")
def test_a_number_that_does_not_fit_is_the_cause_and_who_is_missing_for_it(
    tmp_path: Path, text: str, message: str
) -> None:
    [finding] = said(tmp_path, text)["findings"]
    assert (finding["id"], finding["message"].removeprefix("n1: ")) == ("JOB001", message)


def test_a_rank_of_which_the_log_has_lines_did_come(tmp_path: Path) -> None:
    came = "n2:5:5 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 2 nranks 4 cudaDev 0 busId 60 commId 0x9 - Init START\n"
    messages = [
        finding["message"]
        for finding in said(tmp_path, TWICE.format(1, 4) + came)["findings"]
        if finding["id"] == "JOB001"
    ]
    assert any("rank 1 of 4; rank 3 never came" in message for message in messages)


@pytest.mark.parametrize("text", [OLD_WORLDS, WORLDS], ids=["before 2.23", "since"])
def test_worlds_of_two_sizes_are_a_setting_that_differs(tmp_path: Path, text: str) -> None:
    answer = said(tmp_path, text)
    [finding] = answer["findings"]
    assert (finding["id"], finding["message"]) == ("JOB003", "the world's size differs between ranks: 16 and 8")
    assert answer["verdict"]["state"] == "failed"


def test_what_torch_repeats_of_it_is_no_fault_of_its_own(tmp_path: Path) -> None:
    again = (
        "[rank3]: torch.distributed.DistBackendError: NCCL error in: /pytorch/NCCLUtils.cpp:93, invalid argument (run"
        " with NCCL_DEBUG=WARN for details), NCCL version 2.28.9\n"
        "[rank3]: ncclInvalidArgument: Invalid value for an argument.\n[rank3]: Last error:\n"
        "[rank3]: Invalid rank requested : 3/3\n"
    )
    assert [finding["id"] for finding in said(tmp_path, BEYOND.format(3, 3) + again)["findings"]] == ["JOB001"]


def test_what_waits_for_the_number_that_is_nobodys_follows_from_it(tmp_path: Path) -> None:
    waits = (
        "[rank2]: torch.distributed.DistBackendError: [2] is setting up NCCL communicator and retrieving ncclUniqueId"
        " from [0] via c10d key-value store by key '0', but store->get('0') got error: failed to recv, got 0 bytes\n"
    )
    causes = said(tmp_path, TWICE.format(1, 3) + waits)["verdict"]["causes"]
    assert [(cause["check"], [below["check"] for below in cause["consequences"]]) for cause in causes] == [
        ("JOB001", ["JOB005"])
    ]


@examples("text")
def test_source_and_questions_are_no_fault(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


def test_a_root_that_differs_in_other_numbers_has_no_worlds_of_two_sizes(tmp_path: Path) -> None:
    text = WORLDS.replace("16 vs 8", "16 vs 16").replace("nroots 1 vs 1", "nroots 1 vs 2")
    assert "JOB003" not in [finding["id"] for finding in said(tmp_path, text)["findings"]]
