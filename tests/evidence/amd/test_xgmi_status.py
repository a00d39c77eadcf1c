from __future__ import annotations

from topodiag.evidence.amd.xgmi_status import XgmiStatus
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

TEXT = """
GPU LINK PORT STATUS:
       bdf           port_num
GPU0   0000:05:00.0  U  D
GPU1   0000:26:00.0  D  X

XGMI LINK STATUS:
       bdf           GPU0          GPU1
GPU0   0000:05:00.0   SELF          {0}
GPU1   0000:26:00.0   {0}             SELF

Legend:
  U / D / X = Link is Up / Down / Disabled
"""


def node_of(letter: str) -> Node:
    source, draft = XgmiStatus(), NodeDraft()
    blob = Blob("xgmi.txt", TEXT.format(letter).encode())
    assert source.recognises(blob.text)
    source.fill(blob, source.parse(blob), draft)
    return assemble(draft, "n")


def test_the_table_of_links_counts_and_not_that_of_ports() -> None:
    assert node_of("U").smi_matrix["GPU0", "GPU1"].value == "XGMI"
    assert node_of("D").smi_matrix["GPU0", "GPU1"].value == "XGMI down"
    assert node_of("X").smi_matrix["GPU1", "GPU0"].value == "XGMI disabled"


def test_a_virtual_function_says_nothing_of_links() -> None:
    node = node_of("N/A")
    assert node.smi_matrix == {}
    assert node.gpus[0].nvlink_note.value == "not supported"
