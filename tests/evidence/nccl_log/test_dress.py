"""Colours and marks of a quote come off, wherever the blocks of a text end."""

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.nccl_log.input.wrapped_lines import COLOURS, QUOTED, dress_of, undressed

LINES = (b"a:1:2 [0] NCCL INFO Using network IB\n", b"> a reply\n", b"x > y\n", b"\n", b"last")


def whole(text: bytes, layer: str, size: int) -> bytes:
    return b"".join(undressed((text[at : at + size] for at in range(0, len(text), size)), layer))


@given(st.lists(st.sampled_from(LINES[:-1]), max_size=8), st.integers(1, 40))
def test_a_text_in_colours_is_the_text_in_any_blocks(lines: list[bytes], size: int) -> None:
    text = b"".join(lines)
    dressed = b"".join(b"\x1b[01;31m\x1b[K" + line[:3] + b"\x1b[m\x1b[K" + line[3:] for line in lines)
    assert whole(dressed, COLOURS, size) == text


@given(st.lists(st.sampled_from(LINES), max_size=8), st.integers(1, 40))
def test_a_quoted_text_is_the_text_in_any_blocks(lines: list[bytes], size: int) -> None:
    lines = [line for line in lines if line.endswith(b"\n")] + [line for line in lines if not line.endswith(b"\n")][:1]
    assert whole(b"".join(b"> " + line for line in lines), QUOTED, size) == b"".join(lines)


@given(st.binary(max_size=200), st.integers(1, 40))
def test_any_bytes_are_taken(data: bytes, size: int) -> None:
    for layer in (COLOURS, QUOTED):
        assert len(whole(data, layer, size)) <= len(data)


@examples("head", "layers")
def test_the_first_bytes_show_what_a_text_wears(head: bytes, layers: list[str]) -> None:
    assert list(dress_of(head)) == layers
