"""Colours come off, wherever the blocks of a text end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.input.wrapped_lines import COLOURS, undressed

LINES = (b"a:1:2 [0] NCCL INFO Using network IB\n", b"> a reply\n", b"x > y\n", b"\n", b"last")


def whole(text: bytes, layer: str, size: int) -> bytes:
    return b"".join(undressed((text[at : at + size] for at in range(0, len(text), size)), layer))


@given(st.lists(st.sampled_from(LINES[:-1]), max_size=8), st.integers(1, 40))
def test_a_text_in_colours_is_the_text_in_any_blocks(lines: list[bytes], size: int) -> None:
    text = b"".join(lines)
    dressed = b"".join(b"\x1b[01;31m\x1b[K" + line[:3] + b"\x1b[m\x1b[K" + line[3:] for line in lines)
    assert whole(dressed, COLOURS, size) == text


@given(st.binary(max_size=200), st.integers(1, 40))
def test_any_bytes_are_taken(data: bytes, size: int) -> None:
    assert len(whole(data, COLOURS, size)) <= len(data)
