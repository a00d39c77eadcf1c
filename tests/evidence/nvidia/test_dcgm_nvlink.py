"""`dcgmi nvlink --link-status`: one letter for each NVLink."""

from __future__ import annotations

from tests.tables import texts
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.dcgm import DcgmNvlink

TEXTS = texts(__file__)
TEXT = TEXTS["text"]


def test_links_are_up_or_down_by_their_letter_and_others_have_no_state() -> None:
    draft, blob = NodeDraft(), Blob("dcgmi.txt", TEXT.encode())
    assert DcgmNvlink().recognises(TEXT)
    DcgmNvlink().read(blob, draft)
    states = {
        gpu.keys["index"]: [child.offers["state"][0].value for child in gpu.children.values()]
        for gpu in draft.entities("gpu")
    }
    assert states == {0: ["active", "active", "inactive"], 1: ["active"] * 3}
