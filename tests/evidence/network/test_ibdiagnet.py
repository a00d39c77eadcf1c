"""ibdiagnet: links and counters at fault, other errors, and what only informs."""

from __future__ import annotations

import pytest

from topodiag.evidence.interface import Blob
from topodiag.evidence.network.ibdiagnet import Ibdiagnet
from topodiag.model.events import REMARK


def kinds(text: str) -> list[str]:
    source = Ibdiagnet()
    assert source.recognises(text)
    return [event.kind for event in source.parse(Blob("ibdiagnet2.log", text.encode())).records]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-E- S946dae03/Nleaf-03/P17<-->H946d/gpu-017/U1/P1 - Unexpected actual link width 1x", "fabric.link_slow"),
        ('-W- link with PHY=1x found at direct path "1,19"', "fabric.link_slow"),
        ('-W- gpu-017/mlx5_3/U1/P1 - "symbol_error_counter" increased during the run', "fabric.link_errors"),
        ("-E- gpu-017/U1/P1 - High BER value reported", "fabric.link_errors"),
        ("-E- Duplicated Node GUID detected", REMARK),
    ],
)
def test_a_line_has_its_fault(line: str, kind: str) -> None:
    assert kinds(f"-I- Links Check\n{line}\n") == [kind]


def test_a_table_of_stages_counts_where_no_line_says_more() -> None:
    text = "-I- Stage                Warnings   Errors     Comment\n-I- Links Check          0          0\n"
    assert kinds(text) == []
    assert kinds(text + "-I- Speed / Width checks     0          2\n") == [REMARK]


@pytest.mark.parametrize(
    "text", ["-I- Discovery 0 0\n", "-W- Node info differs\n-I- done\n", "-E- Links Check finished with errors\n"]
)
def test_what_only_informs_says_nothing(text: str) -> None:
    assert kinds(text) == []
