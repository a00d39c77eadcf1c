"""modprobe and insmod of the peer memory module: what the kernel does not take, and what is no failure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.host.modprobe import Modprobe
from topodiag.evidence.interface import Blob


@pytest.mark.parametrize(
    "line",
    [
        "modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument",
        "modprobe: FATAL: Module nvidia_peermem not found in directory /lib/modules/6.8.0-90-generic",
        "insmod: ERROR: could not insert module ./nvidia-peermem.ko: Unknown symbol in module",
    ],
)
def test_a_module_that_does_not_load_is_told(line: str) -> None:
    source = Modprobe()
    assert source.recognises(f"$ sudo modprobe nvidia-peermem\n{line}\n")
    assert [event.kind for event in source.parse(Blob("x", line.encode())).records] == ["reported peermem"]


@pytest.mark.parametrize(
    "text",
    [
        "$ sudo modprobe nvidia-peermem\n$\n",
        "modprobe: FATAL: Module nouveau not found in directory /lib",
        "nv_peer_mem:\n",
    ],
)
def test_other_lines_say_nothing(text: str) -> None:
    assert not Modprobe().recognises(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_left(text: str) -> None:
    Modprobe().recognises(text)
    Modprobe().parse(Blob("x", text.encode()))
