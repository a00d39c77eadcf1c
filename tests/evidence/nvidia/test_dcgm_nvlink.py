"""`dcgmi nvlink --link-status`: one letter for each NVLink."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.dcgm import DcgmNvlink

TEXT = """\
+----------------------+
|  NvLink Link Status  |
+----------------------+
GPUs:
    gpuId 0:
        U U D _
    gpuId 1:
        U U U X
NvSwitches:
    physicalId 8:
        U U U U
Key: Up=U, Down=D, Disabled=X, Not Supported=_
"""


def test_links_are_up_or_down_by_their_letter_and_others_have_no_state() -> None:
    draft, blob = NodeDraft(), Blob("dcgmi.txt", TEXT.encode())
    assert DcgmNvlink().recognises(TEXT)
    DcgmNvlink().fill(blob, DcgmNvlink().parse(blob), draft)
    states = {
        gpu.keys["index"]: [child.offers["state"][0].value for child in gpu.children.values()]
        for gpu in draft.entities("gpu")
    }
    assert states == {0: ["active", "active", "inactive"], 1: ["active"] * 3}


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    DcgmNvlink().parse(Blob("any.txt", TEXT.encode() + data))
