"""Memory of a GPU that cannot be registered for RDMA, in the words of the programs that ask."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import chain, loud, said
from tests.tables import examples

PERFTEST = "cuMemAlloc() of a 65536 bytes GPU buffer\nallocated GPU buffer address at 0000010013000000\n"


@examples("text")
def test_memory_of_a_gpu_that_cannot_be_registered(tmp_path: Path, text: str) -> None:
    assert chain(said(tmp_path, text))[0] == ("GDR001", "")


@examples("end")
def test_the_end_of_a_program_follows_from_its_registration(tmp_path: Path, end: str) -> None:
    pairs = chain(said(tmp_path, f"{PERFTEST}Couldn't register MR\n{end}"))
    assert pairs[:2] == [("GDR001", ""), ("JOB009", "GDR001")]


@examples("text")
def test_what_is_no_refused_registration(tmp_path: Path, text: str) -> None:
    assert "GDR001" not in loud(tmp_path, text)


def test_a_limit_of_locked_memory_is_no_missing_module(tmp_path: Path) -> None:
    text = f"{PERFTEST}Couldn't allocate MR\nfailed to create mr\nERRNO: Cannot allocate memory.\n"
    assert "GDR001" not in loud(tmp_path, text)
