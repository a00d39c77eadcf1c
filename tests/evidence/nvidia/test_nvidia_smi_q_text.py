"""What `nvidia-smi -q` says as text, quoted, cut or with a bad value; its readings are rows of a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, text_of, value
from topodiag.evidence.nvidia.nvidia_smi_q_text import NvidiaSmiQText

REPORT = text_of("nvidia-smi-q", "REPORT")


@pytest.mark.parametrize("margin", ["> ", "    ", "| ", "\t"])
def test_a_quoted_report_is_the_same_report(margin: str) -> None:
    quoted = "".join(f"{margin}{line}\n" for line in REPORT.split("\n"))
    assert NvidiaSmiQText().recognises(quoted)
    assert value(read("nvidia-smi-q", quoted)[0].pci("0000:43:00.0"), "width") == 8


@given(st.integers(0, len(REPORT)))
def test_a_report_cut_anywhere_keeps_the_gpus_before_the_cut(cut: int) -> None:
    whole = REPORT[:cut].count("Processes   ")
    assert len(list(read("nvidia-smi-q", REPORT[:cut])[0].entities("gpu"))) >= whole


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30))
def test_a_bad_value_costs_that_value_alone(word: str) -> None:
    text = REPORT.replace("Performance State                     : P2", f"Performance State        : {word}")
    draft, _ = read("nvidia-smi-q", text)
    assert value(draft.pci("0000:1b:00.0"), "width") == 8
    assert value(draft.gpu(index=0), "name") == "NVIDIA H100 80GB HBM3"
