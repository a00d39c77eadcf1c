"""A bad value of the table of `nvidia-smi`; what is read of it is in rows of a table."""

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, text_of, value

TABLE = text_of("nvidia-smi", "TABLE")


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="|"), max_size=20)
)
def test_a_bad_value_costs_that_value_alone(word: str) -> None:
    draft, _ = read("nvidia-smi", TABLE.replace("                    3 |", f"   x{word} |"))
    assert "ecc_volatile_uncorrected" not in draft.gpu(index=0).counters
    assert value(draft.gpu(index=0), "pstate") == 2
