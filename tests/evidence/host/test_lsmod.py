"""lsmod: modules that are loaded, and what a pattern says of the one that it asks for."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.evidence.host.lsmod import Lsmod


@examples("text", "peermem")
def test_the_peer_memory_module_is_there_absent_or_not_asked_for(text: str, peermem: bool | None) -> None:
    assert Lsmod().recognises(text)
    assert node_of(text).os.peermem.value is peermem


@pytest.mark.parametrize("text", ["", "a table 4096 2\n", "Module of a course\n"])
def test_other_texts_are_left(text: str) -> None:
    assert not Lsmod().recognises(text)
