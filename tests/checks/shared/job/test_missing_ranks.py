"""JOB001 by those that waited for a process that did not come, and what of the others follows from it."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import chain, loud, said
from tests.tables import examples

WAITED = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.\n"
GONE = (
    "[rank1]: torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from"
    " [0] via c10d key-value store by key '0', but store->get('0') got error: failed to recv, got 0 bytes\n"
)
NO_ID = GONE.replace("failed to recv, got 0 bytes", "wait timeout after 600000ms, keys: /default_pg/0//cuda//0")


@examples("others", "below")
def test_what_the_others_say_of_the_store_follows_from_who_did_not_come(
    tmp_path: Path, others: str, below: str
) -> None:
    answer = said(tmp_path, WAITED + others)
    assert chain(answer) == [("JOB001", ""), (below, "JOB001")]
    assert "7 of 8 did" in answer["verdict"]["headline"]
    assert answer["verdict"]["state"] == "failed"


def test_a_rendezvous_that_was_over_says_that_nodes_did_not_come(tmp_path: Path) -> None:
    text = "    raise RendezvousTimeoutError\ntorch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
    assert [finding["id"] for finding in said(tmp_path, text)["findings"]] == ["JOB001"]


@examples("text")
def test_source_of_a_program_and_a_full_meeting_are_no_fault(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


def test_a_rank_that_only_waits_for_another_ones_id_says_who_it_waits_for(tmp_path: Path) -> None:
    assert said(tmp_path, NO_ID)["findings"][0]["id"] == "JOB006"


def test_an_error_that_is_not_of_the_store_stays_the_cause(tmp_path: Path) -> None:
    error = "n1:7:8 [0] NCCL WARN Cuda failure 'an illegal memory access was encountered'\n"
    follows = dict(chain(said(tmp_path, error + WAITED)))
    assert (follows["JOB005"], follows["JOB001"]) == ("", "JOB005")


def test_a_process_that_ended_is_why_it_did_not_come(tmp_path: Path) -> None:
    answer = said(tmp_path, "[rank3]: FileNotFoundError: no such file: '/data/tokens.bin'\n" + WAITED + GONE)
    assert answer["verdict"]["causes"][0]["check"] == "JOB009"
