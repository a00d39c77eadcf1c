"""kubectl describe node: GPUs that are had and given out, among siblings."""

from tests.tables import examples, texts
from topodiag.checks.shared.tables import reported_by_tables
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.kubernetes import KubectlNode
from topodiag.evidence.interface import Blob
from topodiag.model.events import Trust

TEXTS = texts(__file__)
NODE = TEXTS["node"]


def read(text: str) -> list[tuple[str, str]]:
    draft = NodeDraft()
    KubectlNode().read(Blob("k.txt", text.encode()), draft)
    events = reported_by_tables(assemble(draft, "n"))
    assert {event.trust for event in events} <= {Trust.AGENT}
    return [(event.kind, event.text) for event in events]


@examples("counts", "told")
def test_a_node_that_gives_out_fewer_gpus_is_told(counts: list[tuple[int, int]], told: list[str]) -> None:
    text = "".join(NODE.format(name=f"n{n}", has=has, gives=gives) for n, (has, gives) in enumerate(counts))
    assert KubectlNode().recognises(text)
    assert read(text) == [("gpu.count_low", text) for text in told]
