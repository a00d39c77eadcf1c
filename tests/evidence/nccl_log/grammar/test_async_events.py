"""Events of RDMA devices that go away, as other programs than NCCL repeat them; and a plug-in without a provider."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import chain, loud, said

CM = (
    "[1737425283.947186] [node13:18468:a]       rdmacm_cm.c:715  UCX  ERROR [cep 0x608000018ea0 10.6.9.13:57675->"
    "10.6.9.12:8124 client Success] got error event RDMA_CM_EVENT_DEVICE_REMOVAL, event status Success (0)\n"
)


@pytest.mark.parametrize(
    "line",
    [
        CM,
        "E0121 11:02:03.123456  4711 rdma_context.cpp:512] Received context async event local catastrophic error for"
        " context mlx5_3\n",
        "[2025-01-21 02:08:03] [error] store server: async event IBV_EVENT_DEVICE_FATAL on mlx5_1\n",
    ],
)
def test_a_device_that_goes_away_is_told_by_any_program(line: str, tmp_path: Path) -> None:
    made = chain(said(tmp_path, line))
    assert made[0] == ("NET008", "")
    assert set(made[1:]) <= {("JOB005", "NET008")}


@pytest.mark.parametrize(
    "line",
    [
        "    case RDMA_CM_EVENT_DEVICE_REMOVAL:\n",
        "  RDMA_CM_EVENT_DEVICE_REMOVAL,\n",
        "    if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) return -1;\n",
        CM.replace("ERROR", "DEBUG").replace("DEVICE_REMOVAL", "ESTABLISHED").replace("error event", "event"),
    ],
)
def test_the_source_of_a_program_and_other_events_say_nothing(line: str, tmp_path: Path) -> None:
    assert not loud(tmp_path, line)


def test_the_plugins_own_test_that_finds_no_provider_is_a_plugin_that_does_not_come_up(tmp_path: Path) -> None:
    text = (
        "10.3.5.83: INFO: Function: ofi_init Line: 1102: NET/OFI Setting RDMAV_FORK_SAFE environment variable to 1.\n"
        "10.3.5.83: WARN: Function: find_ofi_provider Line: 543: NET/OFI Couldn't find any optimal provider\n"
        "10.3.5.83: WARN: Function: main Line: 66: NET/OFI OFI NCCL failure: 2\n"
    )
    made = said(tmp_path, text)
    assert chain(made)[0] == ("NET005", "")
    assert "no provider" in made["findings"][0]["message"]
    well = "10.3.5.83: INFO: Function: ofi_init Line: 1120: NET/OFI Selected Provider is efa (found 4 nics)\n"
    assert not loud(tmp_path, well)
