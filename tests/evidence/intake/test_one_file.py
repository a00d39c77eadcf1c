"""One file of text, packed or not."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from topodiag.evidence.intake.one_file import open_blob


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_text_is_read_as_it_was_before_it_was_packed(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(pack(b"node1 slots=8\n"))
    assert open_blob(str(path)).data == b"node1 slots=8\n"
