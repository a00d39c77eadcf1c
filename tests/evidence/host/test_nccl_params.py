"""`ncclparam -l` becomes settings: what was set, and never what is a default."""

from pathlib import Path

from tests.tables import examples, texts
from topodiag.app.scan import scan
from topodiag.evidence.host.slurm_nodes import kind_of
from topodiag.evidence.registry import recognise

TEXTS = texts(__file__)
DUMP = TEXTS["dump"]


def test_what_is_set_is_a_setting_of_the_node_and_a_default_is_none(tmp_path: Path) -> None:
    place = tmp_path / "params.txt"
    place.write_text(DUMP)
    result = scan([str(place)])
    assert [item.kind for item in result.inputs] == ["nccl-params"]
    assert [(setting.name, setting.value) for setting in result.nodes[0].settings] == [
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"),
    ]


def test_it_is_known_by_its_second_line_whatever_stands_around() -> None:
    assert recognise(DUMP)[:1] == ("nccl-params",)
    assert "nccl-params" not in recognise("Current value=1 set_by=me\n")


# --- reasons for which a node is out of service: which part they name, and which tell of no fault -------------


@examples("reason", "kind")
def test_a_reason_names_a_part(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind
