"""Values of nvidia-smi's table that no check asks about: they leave open whether all is well, and are no fault."""

from pathlib import Path

from tests.pasted import loud, said
from tests.tables import examples

SOUND = "| N/A   31C    P0              61W / 400W |      3MiB / 81559MiB |      0%      Default |"
HEAD = "| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |\n"


def table(*second: str, name: str = "A100-SXM4-80GB") -> str:
    rows = (
        f"|   {index}  {name}   On  | 00000000:{index + 1:02X}:00.0 Off |                    0 |\n{text}\n"
        for index, text in enumerate(second)
    )
    return HEAD + "".join(rows)


@examples("row", "words")
def test_an_odd_value_is_quoted_and_leaves_open_whether_all_is_well(row: str, words: str, tmp_path: Path) -> None:
    answer = said(tmp_path, table(SOUND, row, SOUND))
    assert answer["verdict"]["state"] == "unknown"
    assert any(
        f"GPU1: {words}" in each or f"GPU1: its compute mode {words}" in each
        for each in answer["verdict"]["not_explained"]
    )
    assert not loud(tmp_path, table(SOUND, row, SOUND))


@examples("text")
def test_values_that_sound_machines_show_leave_nothing_open(text: str, tmp_path: Path) -> None:
    assert not said(tmp_path, text)["verdict"]["not_explained"]
