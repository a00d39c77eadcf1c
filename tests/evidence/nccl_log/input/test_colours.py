"""Colours come off, wherever the blocks of a text end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.input.wrapped_lines import uncoloured

LINES = (b"a:1:2 [0] NCCL INFO Using network IB\n", b"> a reply\n", b"x > y\n", b"\n")


def whole(text: bytes, size: int) -> bytes:
    return b"".join(uncoloured(text[at : at + size] for at in range(0, len(text), size)))


@given(st.lists(st.sampled_from(LINES), max_size=8), st.integers(1, 40))
def test_a_text_in_colours_is_the_text_in_any_blocks(lines: list[bytes], size: int) -> None:
    coloured = b"".join(b"\x1b[01;31m\x1b[K" + line[:3] + b"\x1b[m\x1b[K" + line[3:] for line in lines)
    assert whole(coloured, size) == b"".join(lines)


@given(st.binary(max_size=200), st.integers(1, 40))
def test_any_bytes_are_taken(data: bytes, size: int) -> None:
    assert len(whole(data, size)) <= len(data)
