"""A text that several nodes share is read once, and no node shows that another had it, too."""

import hashlib

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.systemctl import Systemctl
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.known_texts import read_once
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.intake.siblings import TextRead
from topodiag.evidence.interface import Blob, Item
from topodiag.model.finding import Input

SOURCE = Systemctl()
ITEM = Item("pci", "sys-pci", "trees/pci.tree")
ROOT = "= sys/bus/pci/devices/0000:1b:00.0/class\t0x030200\n= sys/bus/pci/devices/0000:1b:00.0/vendor\t0x10de\n"


class _Counted:
    """A reading that counts how often it is asked for."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> TextRead:
        self.times += 1
        return TextRead(NodeDraft(), Input("x", "systemctl"))


def _read(text: bytes, reading: _Counted, name: str = "units.txt", item: Item | None = None) -> TextRead:
    return read_once(SOURCE, Blob(name, text, item), hashlib.sha256(text).hexdigest(), "", reading)


def test_a_text_is_read_for_two_nodes_and_kept_for_all_others() -> None:
    reading = _Counted()
    made = [_read(b"the same of all", reading) for _ in range(5)]
    assert reading.times == 2
    assert made[1] is made[2] is made[4]


def test_how_long_a_command_took_does_not_matter_and_all_else_of_the_manifest_does() -> None:
    reading = _Counted()
    for number in range(3):
        _read(b"by command", reading, item=Item("a", "systemctl", "a.txt", argv=("one",), duration_s=0.1 * number))
    assert reading.times == 2
    _read(b"by command", reading, item=Item("a", "systemctl", "a.txt", argv=("two",)))
    _read(b"by command", reading, "b.txt")
    assert reading.times == 4


def test_a_large_text_is_read_anew() -> None:
    reading = _Counted()
    for _ in range(3):
        _read(b"x" * (1 << 20) + b"y", reading)
    assert reading.times == 3


def _node(host: str, tree: str):
    return read_node(Evidence(host, host=host, blobs=[Blob("trees/pci.tree", tree.encode(), ITEM)], is_bundle=True))


def test_nodes_of_equal_texts_are_equal_and_share_their_devices() -> None:
    first, *_, last = [_node(f"n{number}", ROOT).node for number in range(4)]
    assert first.pci == last.pci
    assert _node("n9", ROOT).node.pci["0000:1b:00.0"] is last.pci["0000:1b:00.0"]
    assert (first.host, last.host) == ("n0", "n3")


def test_what_another_node_adds_to_a_shared_device_stays_with_it() -> None:
    for number in range(3):
        _node(f"n{number}", ROOT)
    lspci = b"0000:1b:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (rev a1)\n\tNUMA node: 1\n"
    blobs = [Blob("trees/pci.tree", ROOT.encode(), ITEM), Blob("lspci.txt", lspci, Item("l", "lspci", "lspci.txt"))]
    more = read_node(Evidence("odd", host="odd", blobs=blobs, is_bundle=True)).node
    plain = _node("n4", ROOT).node
    assert more.pci["0000:1b:00.0"].numa.value == 1
    assert plain.pci["0000:1b:00.0"].numa.value is None
