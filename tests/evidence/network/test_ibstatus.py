"""`ibstatus`: what is read of each port, and what its failures cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, text_of, value, why

TEXT = text_of("ibstatus", "TEXT")


@pytest.mark.parametrize("margin", ["> ", "    ", "| "])
def test_a_quoted_paste_reads_the_same(margin: str) -> None:
    draft, _ = read("ibstatus", "".join(f"{margin}{line}\n" for line in TEXT.split("\n")))
    assert value(draft.nic(rdma="mlx5_0").child("port", 1), "rate_gbps") == 400.0


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30))
def test_a_bad_value_costs_that_value_alone(word: str) -> None:
    draft, _ = read("ibstatus", TEXT.replace("400 Gb/sec (4X NDR)", f"fast {word}"))
    port = draft.nic(rdma="mlx5_0").child("port", 1)
    assert (value(port, "rate_gbps"), value(port, "state")) == (None, "ACTIVE")
    assert why(port, "rate_gbps")
