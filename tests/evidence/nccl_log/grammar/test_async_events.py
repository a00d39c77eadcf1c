"""Events of RDMA devices that go away, as other programs than NCCL repeat them; and a plug-in without a provider."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import chain, loud, said
from tests.tables import examples


@examples("line")
def test_a_device_that_goes_away_is_told_by_any_program(line: str, tmp_path: Path) -> None:
    pairs = chain(said(tmp_path, line))
    assert pairs[0] == ("NET008", "")
    assert set(pairs[1:]) <= {("JOB005", "NET008")}


@examples("line")
def test_the_source_of_a_program_and_other_events_say_nothing(line: str, tmp_path: Path) -> None:
    assert not loud(tmp_path, line)


def test_the_plugins_own_test_that_finds_no_provider_is_a_plugin_that_does_not_come_up(tmp_path: Path) -> None:
    text = (
        "10.3.5.83: INFO: Function: ofi_init Line: 1102: NET/OFI Setting RDMAV_FORK_SAFE environment variable to 1.\n"
        "10.3.5.83: WARN: Function: find_ofi_provider Line: 543: NET/OFI Couldn't find any optimal provider\n"
        "10.3.5.83: WARN: Function: main Line: 66: NET/OFI OFI NCCL failure: 2\n"
    )
    answer = said(tmp_path, text)
    assert chain(answer)[0] == ("NET005", "")
    assert "no provider" in answer["findings"][0]["message"]
    well = "10.3.5.83: INFO: Function: ofi_init Line: 1120: NET/OFI Selected Provider is efa (found 4 nics)\n"
    assert not loud(tmp_path, well)
