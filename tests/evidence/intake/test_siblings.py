"""Texts that differ in identities alone are read by exchanging them, and only where that was right before."""

import hashlib
from dataclasses import replace

import pytest

from tests.tables import examples
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.intake.known_texts import read_once
from topodiag.evidence.intake.reader import _made_of
from topodiag.evidence.intake.siblings import Exchange, Likeness, TextRead, likeness_of, template_of
from topodiag.evidence.interface import Blob, Source
from topodiag.evidence.network.ibv_devinfo import IbvDevinfo
from topodiag.evidence.nvidia.nvidia_smi_nvlink import NvidiaSmiNvlink
from topodiag.model.finding import Input

NVLINK = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-{uuid})
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
"""
IBV = """hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t28.39.1002
\tnode_guid:\t\t\t{guid}
\tsys_image_guid:\t\t\t{guid}
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:{guid}
"""
UUIDS = [
    "94635532-b65a-6443-bb19-5513e3eabba6", "01234567-89ab-cdef-0123-456789abcdef",
    "fedcba98-7654-3210-fedc-ba9876543210", "deadbeef-0102-0304-0506-0708090a0b0c",
]  # fmt: skip
GUIDS = ["a088:c203:0abc:0eaf", "a088:c203:1234:5678", "946d:ae03:00c1:0d1e", "b8ce:f603:0001:0002"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _shown(read: TextRead) -> list[object]:
    entities = [
        (
            kind,
            entity.keys,
            entity.offers,
            {at: (child.offers, child.counters) for at, child in entity.children.items()},
        )
        for kind, entity in read.part.all_entities()
    ]
    return [entities, read.item, read.unread, read.told, read.spoke]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        (NvidiaSmiNvlink(), [NVLINK.format(uuid=uuid) for uuid in UUIDS]),
        (IbvDevinfo(), [IBV.format(guid=guid) for guid in GUIDS]),
    ],
)
def test_a_reading_by_exchange_is_that_of_the_source(source: Source, texts: list[str]) -> None:
    asked = []
    for number, text in enumerate(texts):
        blob = Blob("same-name.txt", text.encode())

        def read(blob: Blob = blob, text: str = text, number: int = number) -> TextRead:
            asked.append(number)
            return _made_of(source, blob, _digest(text))

        made = read_once(source, blob, _digest(text), "", read)
        assert _shown(made) == _shown(_made_of(source, blob, _digest(text)))
    assert asked == [0, 1, 2]


def test_what_siblings_have_alike_is_shared_by_their_readings() -> None:
    source = NvidiaSmiNvlink()
    made = []
    for uuid in (*UUIDS, UUIDS[0][::-1].replace("-", "")[:8] + UUIDS[0][8:]):
        text = "# other\n" + NVLINK.format(uuid=uuid)
        blob = Blob("links.txt", text.encode())
        made.append(read_once(source, blob, _digest(text), "", lambda b=blob: _made_of(source, b, "")))
    one, two = (next(each.part.entities("gpu")) for each in made[-2:])
    assert one.keys["uuid"] != two.keys["uuid"]
    assert one.children["nvlink", 0] is two.children["nvlink", 0]


@examples("one", "two")
def test_other_form_other_equality_no_identity_and_numbers_are_no_likeness(one: str, two: str) -> None:
    first, second = (likeness_of(text.encode(), "") for text in (one, two))
    assert first is None or second is None or first.shared != second.shared


def test_the_host_is_an_identity_where_it_is_known() -> None:
    one, two = likeness_of(b"node-01 mlx5_0", "node-01"), likeness_of(b"node-02 mlx5_0", "node-02")
    assert one is not None
    assert two is not None
    assert one.shared == two.shared
    assert Exchange(one, two).text("desc: node-01 mlx5_0") == "desc: node-02 mlx5_0"
    assert likeness_of(b"node-01 mlx5_0", "") is None


def test_an_identity_is_exchanged_in_every_form() -> None:
    exchange = Exchange(Likeness("x", "", ("a088c2030abc0eaf",)), Likeness("x", "", ("946dae0300c10d1e",)))
    assert exchange.text("0xa088c2030abc0eaf") == "0x946dae0300c10d1e"
    assert exchange.text("a088:c203:0abc:0eaf") == "946d:ae03:00c1:0d1e"
    assert exchange.text("0 fe80::a088:c203:abc:eaf x") == "0 fe80::946d:ae03:c1:d1e x"
    assert exchange.text("0000:1b:00.0 a088:c203") == "0000:1b:00.0 a088:c203"


def _read(value: object) -> TextRead:
    part = NodeDraft()
    part.gpu(index=0).offer("uuid", value, Blob("x", b"").origin(1, "line"))
    return TextRead(part, Input("x", "kind"))


def test_a_source_that_makes_something_of_an_identity_gets_no_template() -> None:
    names = [Likeness("x", "", ("a088c2030abc0eaf",)), Likeness("x", "", ("946dae0300c10d1e",))]
    copied = _read("a088c2030abc0eaf"), names[0], _read("946dae0300c10d1e"), names[1]
    assert template_of(*copied) is not None
    counted = _read(0x0EAF), names[0], _read(0x0D1E), names[1]
    assert template_of(*counted) is None


def test_an_identity_that_the_first_nodes_have_in_common_is_exchanged_for_a_third() -> None:
    names = [Likeness("x", "", ("a088c2030abc0eaf", domain)) for domain in (UUIDS[0], UUIDS[1])]
    names = [replace(each, names=tuple(name.replace("-", "") for name in each.names)) for each in names]
    template = template_of(_read(UUIDS[0]), names[0], _read(UUIDS[0]), names[0])
    assert template is not None
    (gpu,) = template.of_sibling(names[1], "").part.entities("gpu")
    assert gpu.offers["uuid"][0].value == UUIDS[1]
