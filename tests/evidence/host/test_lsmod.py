"""lsmod: modules that are loaded, and what a pattern says of the one that it asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of
from topodiag.evidence.host.lsmod import Lsmod
from topodiag.evidence.interface import Blob

ROWS = "nvidia_uvm           1544192  0\nnvidia              56823808  2 nvidia_uvm,nvidia_modeset\n"
HEAD = "Module                  Size  Used by\n"
PEER = "nvidia_peermem         16384  0\n"


@pytest.mark.parametrize(
    ("text", "peermem"),
    [
        (HEAD + ROWS + PEER, True),
        (HEAD + ROWS, False),
        ("$ lsmod | grep -E 'nvidia|peer'\n" + ROWS, False),
        ("$ lsmod | grep nvidia_peermem\n$\n", False),
        ("$ lsmod | grep nvidia\n" + ROWS, None),
        (ROWS, None),
        (PEER, True),
    ],
    ids=["all", "all without", "asked with others", "asked alone", "asked for others", "rows", "its row"],
)
def test_the_peer_memory_module_is_there_absent_or_not_asked_for(text: str, peermem: bool | None) -> None:
    assert Lsmod().recognises(text)
    assert node_of(text).os.peermem.value is peermem


@pytest.mark.parametrize("text", ["", "a table 4096 2\n", "Module of a course\n"])
def test_other_texts_are_left(text: str) -> None:
    assert not Lsmod().recognises(text)


@given(st.text(max_size=200) | st.text(alphabet="Module Size Used by\nnvidia_peermem 1640\n", max_size=200))
def test_any_text_is_read_or_left(text: str) -> None:
    Lsmod().recognises(text)
    Lsmod().parse(Blob("x", text.encode()))
