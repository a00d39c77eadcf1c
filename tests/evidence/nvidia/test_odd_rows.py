"""Values of nvidia-smi's table that no check asks about: they leave open whether all is well, and are no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said

SOUND = "| N/A   31C    P0              61W / 400W |      3MiB / 81559MiB |      0%      Default |"
HEAD = "| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |\n"


def table(*second: str, name: str = "A100-SXM4-80GB") -> str:
    rows = (
        f"|   {index}  {name}   On  | 00000000:{index + 1:02X}:00.0 Off |                    0 |\n{text}\n"
        for index, text in enumerate(second)
    )
    return HEAD + "".join(rows)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (SOUND.replace("N/A ", "ERR!"), "a reading of it is an error"),
        (SOUND.replace("          61W /", "Unknown Error /"), "a reading of it is an error"),
        (SOUND.replace("31C", "96C"), "96 C"),
        (SOUND.replace("81559MiB", "40536MiB"), "its memory is "),
        (SOUND.replace("   Default", "Prohibited"), "lets no program use it"),
    ],
)
def test_an_odd_value_is_quoted_and_leaves_open_whether_all_is_well(row: str, words: str, tmp_path: Path) -> None:
    made = said(tmp_path, table(SOUND, row, SOUND))
    assert made["verdict"]["state"] == "unknown"
    assert any(
        f"GPU1: {words}" in each or f"GPU1: its compute mode {words}" in each
        for each in made["verdict"]["not_explained"]
    )
    assert not loud(tmp_path, table(SOUND, row, SOUND))


@pytest.mark.parametrize(
    "text",
    [
        table(SOUND, SOUND),
        table(SOUND.replace("81559MiB", "81251MiB"), SOUND),  # rows that were remapped, or another firmware
        table(SOUND.replace("31C", "71C"), SOUND),
        table(SOUND.replace("400W", "100W"), SOUND.replace("400W", "100W")),  # somebody limits all of them
        table(SOUND.replace("N/A ", "30%"), SOUND),
        table(SOUND.replace("   Default", "E. Process"), SOUND),
    ],
)
def test_values_that_sound_machines_show_leave_nothing_open(text: str, tmp_path: Path) -> None:
    assert not said(tmp_path, text)["verdict"]["not_explained"]
