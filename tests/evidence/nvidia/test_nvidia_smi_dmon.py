"""`nvidia-smi dmon`: the busiest sample of each GPU."""

from __future__ import annotations

import pytest

from tests.evidence.filled import read, value
from topodiag.evidence import registry
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.dcgm_fields import NvidiaSmiDmon

TEXT = """\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
    0    131     35     40      0      0      0      0      0      0   2619   1980
    1     72     31      -      0      0      0      0      0      0   2619    345
    0    133     35     40    100      1      0      0      0      0   2619   1965
    1     73     31      -      0      0      0      0      0      0   2619    345
"""
NAMES = ("utilization", "memory_utilization", "power_w", "sm_clock_mhz")


def loads(text: str) -> dict[int, tuple[object, ...]]:
    draft, _ = read("nvidia-smi-dmon", text)
    return {int(gpu.keys["index"]): tuple(value(gpu, name) for name in NAMES) for gpu in draft.entities("gpu")}


def test_each_gpu_has_the_values_of_its_busiest_sample() -> None:
    assert registry.recognise(TEXT) == ("nvidia-smi-dmon",)
    assert loads(TEXT) == {0: (100, 1, 133.0, 1965), 1: (0, 0, 72.0, 345)}


def test_columns_are_found_by_the_header_with_date_and_time_in_front() -> None:
    text = "#Date       Time        gpu     sm    mem\n#YYYYMMDD   HH:MM:SS    Idx      %      %\n"
    assert loads(text + " 20261123   01:02:03      3     99      0\n") == {3: (99, 0, None, None)}


def test_a_value_that_the_tool_could_not_read_is_not_there() -> None:
    assert loads("# gpu    pwr     sm\n# Idx      W      %\n    0      -     50\n") == {0: (50, None, None, None)}


@pytest.mark.parametrize(
    "text", ["# gpu of the rack\n", "gpu sm mem\n", "# gpu 0 is slow, its sm clock is low: pwr\n0 1\n"]
)
def test_other_text_about_gpus_gives_no_load(text: str) -> None:
    blob = Blob("any.txt", text.encode())
    assert not NvidiaSmiDmon().parse(blob).records


def test_lines_after_the_table_are_not_of_it() -> None:
    assert loads(TEXT + "done after 2 samples\n0 1 2 3 4 5 6 7 8 9 10 11\n")[0] == (100, 1, 133.0, 1965)
