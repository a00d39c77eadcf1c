"""From offers to a node: trust, disagreement, identity, roles, links and paths."""

from typing import Any

from tests.evidence.filled import device
from tests.tables import examples, parts
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.model.devices import NicRole
from topodiag.model.links import LinkKind
from topodiag.model.nccl_enums import PathType
from topodiag.model.provenance import Origin, Topic


def at(source: str, line: int = 1) -> Origin:
    return Origin(source, line)


def offer(draft: NodeDraft, trust: int, sample: int = 0) -> NodeDraft:
    draft.weight.trust, draft.weight.sample = trust, sample
    return draft


def pci(draft: NodeDraft, path: str, *, kind: int, vendor: int = 0x10DE, numa: int = 0, width: int = 16) -> None:
    """A PCI function at the end of a chain of bus ids below pci0000:00."""
    *above, bus_id = path.split("/")
    entity = offer(draft, 80).pci(bus_id)
    entity.offer("class_code", kind, at("sys-pci.tree"))
    entity.offer("vendor", vendor, at("sys-pci.tree"))
    entity.offer("numa", numa, at("sys-pci.tree"))
    entity.offer("root", "pci0000:00", at("sys-pci.tree"))
    for name, value in {"gen": 5, "max_gen": 5, "width": width, "max_width": 16}.items():
        entity.offer(name, value, at("sys-pci.tree"))
    if above:
        entity.offer("parent", above[-1], at("sys-pci.tree"))


GPU, NIC, BRIDGE = 0x030200, 0x020700, 0x060400
ROOT, UP, DOWN1, DOWN2 = "0000:10:00.0", "0000:11:00.0", "0000:12:00.0", "0000:12:01.0"


def machine_with_one_switch() -> NodeDraft:
    draft = NodeDraft()
    for path in (ROOT, f"{ROOT}/{UP}", f"{ROOT}/{UP}/{DOWN1}", f"{ROOT}/{UP}/{DOWN2}"):
        pci(draft, path, kind=BRIDGE, vendor=0x1000)
    pci(draft, f"{ROOT}/{UP}/{DOWN1}/0000:1b:00.0", kind=GPU)
    pci(draft, f"{ROOT}/{UP}/{DOWN2}/0000:18:00.0", kind=NIC, vendor=0x15B3)
    pci(draft, "0000:40:00.0", kind=BRIDGE, vendor=0x8086)
    pci(draft, "0000:40:00.0/0000:41:00.0", kind=NIC, vendor=0x15B3)
    for name, bus_id in (("mlx5_0", "0000:18:00.0"), ("mlx5_1", "0000:41:00.0")):
        nic = offer(draft, 80).nic(rdma=name, bus_id=bus_id)
        nic.offer("hca_type", "MT4129", at("ib.tree"))
        nic.child("port", 1).offer("link_layer", "InfiniBand", at("ib.tree"))
    draft.numa(0).offer("cpus", "0-31", at("cpu.tree"))
    return draft


Said = tuple[int, str, str, Any, str]


@examples("switch", "offers", "node")
def test_a_node_has_what_was_offered(switch: bool | None, offers: list[Said], node: dict[str, Any]) -> None:
    draft = machine_with_one_switch() if switch else NodeDraft()
    for trust, name, field, value, place in offers:
        source, _, line = place.rpartition(":")
        device(offer(draft, trust), name).offer(field, value, at(source, int(line)))
    made = assemble(draft, "h")
    assert parts(made, node) == node
    assert all(nic.role_why for nic in made.nics)


def test_a_missing_value_keeps_its_reason() -> None:
    draft = NodeDraft()
    draft.gpu(index=0).offer("numa", None, at("a"), "NotSupported")
    fact = assemble(draft, "h").gpus[0].numa
    assert (fact.value, fact.why) == (None, "NotSupported")


def test_two_samples_of_one_counter_come_from_one_source() -> None:
    draft = NodeDraft()
    draft.sample_interval_s = 5.0
    port = draft.nic(rdma="mlx5_0").child("port", 1)
    for trust, sample, value in ((80, 0, 100), (70, 0, 7), (70, 1, 9)):
        offer(draft, trust, sample)
        port.count("link_downed", value, at("x"))
    counter = assemble(draft, "h").nics[0].ports[0].counters["link_downed"]
    assert (counter.first.value, counter.later.value, counter.delta, counter.interval_s) == (7, 9, 2, 5.0)


def test_a_link_trained_narrow_is_narrow_in_the_path_and_whole_in_intention() -> None:
    draft = machine_with_one_switch()
    draft.pci("0000:1b:00.0").offers["width"].clear()
    offer(draft, 80).pci("0000:1b:00.0").offer("width", 4, at("sys-pci.tree"))
    path = assemble(draft, "h").paths["GPU0", "mlx5_0"]
    assert (path.intended_gbs, path.negotiated_gbs) == (48.0, 12.0)


def test_an_idle_gpus_low_speed_does_not_narrow_its_path() -> None:
    draft = machine_with_one_switch()
    draft.pci("0000:1b:00.0").offers["gen"].clear()
    offer(draft, 80).pci("0000:1b:00.0").offer("gen", 1, at("sys-pci.tree"))
    assert assemble(draft, "h").paths["GPU0", "mlx5_0"].negotiated_gbs == 48.0


def test_without_a_pci_tree_the_matrix_gives_the_types() -> None:
    draft = offer(NodeDraft(), 70)
    gpus = [draft.gpu(index=index) for index in range(3)]
    for a, b, cell in ((0, 1, "NV18"), (0, 2, "NODE"), (1, 2, "SYS")):
        draft.pair("smi", gpus[a], gpus[b], cell, at("topo.txt"))
    draft.pair("smi", gpus[0], draft.nic(label="NIC0", rdma="mlx5_0"), "PXB", at("topo.txt"))
    node = assemble(draft, "h")
    assert node.paths["GPU0", "GPU1"].type is PathType.NVL
    assert node.paths["GPU2", "GPU0"].type is PathType.PHB
    assert node.paths["GPU1", "GPU2"].type is PathType.SYS
    assert node.paths["GPU0", "mlx5_0"].type is PathType.PXB


def test_links_to_invisible_switches_join_all_gpus() -> None:
    draft = NodeDraft()
    for index in range(4):
        gpu = offer(draft, 90).gpu(index=index)
        gpu.offer("name", "NVIDIA H100 80GB HBM3", at("nvml.json"))
        for link in range(18):
            gpu.child("nvlink", link).offer("state", "inactive" if (index, link) == (3, 5) else "active", at("n"))
            gpu.child("nvlink", link).offer("remote_type", "switch", at("n"))
    node = assemble(draft, "h")
    whole, short = node.paths["GPU0", "GPU1"], node.paths["GPU0", "GPU3"]
    assert (whole.type, round(whole.negotiated_gbs or 0, 1)) == (PathType.NVL, 370.8)
    assert (round(short.intended_gbs or 0, 1), round(short.negotiated_gbs or 0, 1)) == (370.8, 350.2)
    assert {link.count for link in node.links if link.kind is LinkKind.NVLINK} == {17, 18}


def test_on_a_machine_that_was_seen_to_have_no_gpu_no_nic_computes() -> None:
    draft = offer(NodeDraft(), 80)
    draft.topics.add(Topic.GPUS)
    draft.nic(rdma="mlx5_0").child("port", 1).offer("link_layer", "InfiniBand", at("ib.tree"))
    assert assemble(draft, "h").nics[0].role is NicRole.UNKNOWN
