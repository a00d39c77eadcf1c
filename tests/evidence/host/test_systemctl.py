"""systemd's word on services."""

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, text_of

SHOW = text_of("systemctl", "SHOW")


@given(st.text(max_size=100), st.integers(0, len(SHOW)))
def test_any_text_in_the_middle_is_survived(noise: str, at: int) -> None:
    read("systemctl", (SHOW[:at] + noise + SHOW[at:]).encode("utf-8", "replace"))


@given(st.permutations(SHOW.splitlines()))
def test_lines_in_any_order_are_survived_and_name_no_other_units(lines: list[str]) -> None:
    draft, _ = read("systemctl", "\n".join(lines))
    assert set(draft.single("services").offers) <= {"nvidia-fabricmanager", "opensm", "nvidia-persistenced"}
