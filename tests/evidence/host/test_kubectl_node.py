"""kubectl describe node: GPUs that are had and given out, among siblings."""

from __future__ import annotations

from tests.tables import examples, texts
from topodiag.evidence.host.kubectl_node import KubectlNode
from topodiag.evidence.interface import Blob

TEXTS = texts(__file__)
NODE = TEXTS["node"]


def read(text: str) -> list[tuple[str, str]]:
    return [(event.kind, event.text) for event in KubectlNode().parse(Blob("k.txt", text.encode())).records]


@examples("counts", "told")
def test_a_node_that_gives_out_fewer_gpus_is_told(counts: list[tuple[int, int]], told: list[str]) -> None:
    text = "".join(NODE.format(name=f"n{n}", has=has, gives=gives) for n, (has, gives) in enumerate(counts))
    assert KubectlNode().recognises(text)
    assert read(text) == [("gpu.count_low", text) for text in told]
