"""What `nvidia-smi -q` says as text, quoted, cut or with a bad value; its readings are rows of a table."""

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, text_of

REPORT = text_of("nvidia-smi-q", "REPORT")


@given(st.integers(0, len(REPORT)))
def test_a_report_cut_anywhere_keeps_the_gpus_before_the_cut(cut: int) -> None:
    whole = REPORT[:cut].count("Processes   ")
    assert len(list(read("nvidia-smi-q", REPORT[:cut])[0].entities("gpu"))) >= whole
