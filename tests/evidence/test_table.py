"""Tables of any script: how their rows are found, and what their columns are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.interface import Blob
from topodiag.evidence.registry import recognise
from topodiag.evidence.table import tables_of
from topodiag.evidence.table_columns import columns_of

LIST = "#  Rank  {} Group  0 Pid {} on    dgx01 device  {} [0x1a] NVIDIA H100 80GB HBM3\n"


def cells(text: str) -> list[dict[str, str]]:
    return [dict(row.cells) for table in tables_of(Blob("out.txt", text.encode())) for row in table.rows]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("GPU  links_active  links_expected\n---  ---  ---\n3    14            18\n",
         [{"gpu": "3", "have nvlink": "14", "want nvlink": "18"}]),
        ("gpu,dbe_volatile\n0,0\n2,1\n",
         [{"gpu": "0", "uncorrected errors": "0"}, {"gpu": "2", "uncorrected errors": "1"}]),
        ("CA 'mlx5_0'\t\tState: Active\t\tRate: 400\nCA 'mlx5_1'\t\tState: Down\t\tRate: 10\n",
         [{"state of port": "Active"}, {"state of port": "Down"}]),
        ("n1: NCCL_ALGO=Ring\nn2: NCCL_ALGO=Tree\n", [{"setting NCCL_ALGO": "Ring"}, {"setting NCCL_ALGO": "Tree"}]),
        ("NCCL version of each host\nn1: (2, 21, 5)\nn2: (2, 18, 1)\n",
         [{"version": "(2, 21, 5)"}, {"version": "(2, 18, 1)"}]),
        ('[{"component": "fabric-manager", "states": [{"health": "Unhealthy", "reason": "not active"}]}]',
         [{"component": "fabric-manager", "verdict": "Unhealthy", "says": "not active"}]),
        (LIST.format(0, 71, 0) + LIST.format(0, 72, 0),
         [{"rank": "0", "host": "dgx01", "gpu": "0", "pid": pid, "started": "0"} for pid in ("71", "72")]),
        (LIST.format(0, 71, 0) + LIST.format(1, 71, 1), []),
        ("0001:01:00.0  LnkCap: Width x4    LnkSta: Width x2\n0001:01:00.1  LnkCap: Width x4    LnkSta: Width x4\n",
         [{"link capability": "Width x4", "link status": "Width x2"},
          {"link capability": "Width x4", "link status": "Width x4"}]),
    ],
    ids=[
        *("header", "commas", "fields", "settings", "versions", "objects", "devices", "devices of ranks in order"),
        "links",
    ],
)  # fmt: skip
def test_a_row_has_the_columns_that_checks_ask_for(text: str, rows: list[dict[str, str]]) -> None:
    assert cells(text) == rows


@pytest.mark.parametrize(
    "text",
    [
        "the state of the gpu is what it was\nand nobody of the team has seen it\n",
        "name,colour,price\napple,red,3\npear,green,4\n",
        "GPU  temperature  fan\n0  61  30\n",
        "loss=3.1 lr=0.1\nloss=3.0 lr=0.1\n",
        '{"schema_version": "1.0", "component": "x", "health": "Unhealthy"}',
        "NCCL_DEBUG_FILE=/tmp/a\nNCCL_DEBUG_FILE=/tmp/b\n",
    ],
)
def test_what_no_check_asks_for_is_no_table(text: str) -> None:
    assert cells(text) == []
    assert not {"rows", "table"} & set(recognise(text))


def test_names_are_read_in_any_spelling() -> None:
    assert columns_of(["GPU", "smClock", "gpu_util"]) == {0: "gpu", 1: "clock", 2: "load"}
    assert columns_of(["gpu", "clocks.max.sm", "memory.util"]) == {}  # what it could do, and the load of its memory


@given(st.text(alphabet='GPU rankstate:=,|\t\n{}[]"0129.', max_size=400))
def test_any_text_is_read(text: str) -> None:
    for table in tables_of(Blob("x", text.encode())):
        assert table.rows
        assert table.columns
