"""From offers to a node: trust, disagreement, identity, roles, links and paths."""

from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.model.devices import NicRole
from topodiag.model.links import LinkKind
from topodiag.model.nccl_enums import PathType
from topodiag.model.provenance import Origin
from topodiag.model.topics import Topic


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


def test_the_most_trusted_source_is_believed_and_the_other_is_recorded() -> None:
    draft = NodeDraft()
    offer(draft, 70).gpu(index=0).offer("numa", 1, at("topo.txt", 3))
    offer(draft, 90).gpu(index=0).offer("numa", 0, at("nvml.json"))
    node = assemble(draft, "h")
    assert node.gpus[0].numa.value == 0
    [disagreement] = node.disagreements
    assert (disagreement.subject, disagreement.field, disagreement.taken, disagreement.other) == (
        "GPU0",
        "numa",
        "0",
        "1",
    )
    assert (str(disagreement.taken_from), str(disagreement.other_from)) == ("nvml.json:1", "topo.txt:3")


def test_the_same_value_in_two_spellings_is_no_disagreement() -> None:
    draft = NodeDraft()
    offer(draft, 80).nic(rdma="mlx5_0").offer("firmware", "28.41.1000", at("a"))
    offer(draft, 70).nic(rdma="mlx5_0").offer("firmware", "28.41.1000 (MT_0000000838)", at("b"))
    offer(draft, 80).nic(rdma="mlx5_0").offer("node_guid", "a088:c203:0055:1234", at("a"))
    offer(draft, 70).nic(rdma="mlx5_0").offer("node_guid", "0xa088c20300551234", at("b"))
    assert assemble(draft, "h").disagreements == ()


def test_a_value_of_the_wrong_type_is_not_believed() -> None:
    draft = NodeDraft()
    offer(draft, 90).gpu(index=0).offer("numa", "zero", at("a"))
    offer(draft, 70).gpu(index=0).offer("numa", 1, at("b"))
    assert assemble(draft, "h").gpus[0].numa.value == 1


def test_a_missing_value_keeps_its_reason() -> None:
    draft = NodeDraft()
    draft.gpu(index=0).offer("numa", None, at("a"), "NotSupported")
    fact = assemble(draft, "h").gpus[0].numa
    assert (fact.value, fact.why) == (None, "NotSupported")


def test_gpus_by_index_are_the_gpus_by_bus_id_in_order() -> None:
    draft = machine_with_one_switch()
    offer(draft, 70).gpu(index=0).offer("cpu_affinity", "0-31", at("topo.txt"))
    [gpu] = assemble(draft, "h").gpus
    assert (gpu.index, gpu.bus_id, gpu.cpu_affinity.value) == (0, "0000:1b:00.0", "0-31")


def test_gpus_that_only_pci_shows_are_numbered_by_bus_id() -> None:
    assert [gpu.bus_id for gpu in assemble(machine_with_one_switch(), "h").gpus] == ["0000:1b:00.0"]


def test_a_gpu_whose_driver_is_silent_has_its_product_from_the_pci_id() -> None:
    draft = machine_with_one_switch()
    offer(draft, 80).pci("0000:1b:00.0").offer("device", 0x2330, at("sys-pci.tree", 7))
    name = assemble(draft, "h").gpus[0].name
    assert name.value is not None
    assert "H100" in name.value
    assert str(name.origin) == "sys-pci.tree:7"


def test_two_samples_of_one_counter_come_from_one_source() -> None:
    draft = NodeDraft()
    draft.sample_interval_s = 5.0
    port = draft.nic(rdma="mlx5_0").child("port", 1)
    for trust, sample, value in ((80, 0, 100), (70, 0, 7), (70, 1, 9)):
        offer(draft, trust, sample)
        port.count("link_downed", value, at("x"))
    counter = assemble(draft, "h").nics[0].ports[0].counters["link_downed"]
    assert (counter.first.value, counter.later.value, counter.delta, counter.interval_s) == (7, 9, 2, 5.0)


def test_a_switch_is_one_vertex_and_its_devices_are_pix_apart() -> None:
    node = assemble(machine_with_one_switch(), "h")
    path = node.paths["GPU0", "mlx5_0"]
    assert path.type is PathType.PIX
    assert path.vertices == ("gpu:0", f"pci:{UP}", "nic:mlx5_0")
    assert path.negotiated_gbs == 48.0
    assert node.paths["GPU0", "mlx5_1"].type is PathType.PHB


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


def test_near_nics_compute_far_ones_of_the_same_kind_store() -> None:
    node = assemble(machine_with_one_switch(), "h")
    assert {nic.name: nic.role for nic in node.nics} == {"mlx5_0": NicRole.COMPUTE, "mlx5_1": NicRole.STORAGE}
    assert all(nic.role_why for nic in node.nics)


def test_the_nic_with_the_default_route_manages() -> None:
    draft = machine_with_one_switch()
    device = offer(draft, 80).netdev("ens1")
    device.offer("bus_id", "0000:18:00.0", at("net.tree"))
    device.offer("default_route", True, at("net.tree"))
    roles = {nic.name: nic.role for nic in assemble(draft, "h").nics}
    assert roles["mlx5_0"] is NicRole.MANAGEMENT


def test_on_a_machine_that_was_seen_to_have_no_gpu_no_nic_computes() -> None:
    draft = offer(NodeDraft(), 80)
    draft.told.add(Topic.GPUS)
    draft.nic(rdma="mlx5_0").child("port", 1).offer("link_layer", "InfiniBand", at("ib.tree"))
    assert assemble(draft, "h").nics[0].role is NicRole.UNKNOWN


def test_where_nothing_speaks_of_gpus_the_rdma_nics_are_judged_as_compute_nics() -> None:
    draft = offer(NodeDraft(), 80)
    draft.nic(rdma="mlx5_0").child("port", 1).offer("link_layer", "InfiniBand", at("ib.tree"))
    assert assemble(draft, "h").nics[0].role is NicRole.COMPUTE


def test_where_none_is_near_the_largest_infiniband_group_computes() -> None:
    draft = offer(NodeDraft(), 80)
    draft.gpu(index=0).offer("name", "NVIDIA GB200", at("nvml.json"))
    for number in range(4):
        nic = draft.nic(rdma=f"mlx5_{number}")
        nic.offer("hca_type", "MT4129", at("ib.tree"))
        nic.child("port", 1).offer("link_layer", "InfiniBand", at("ib.tree"))
    dpu = draft.nic(rdma="mlx5_9")
    dpu.offer("hca_type", "MT41692", at("ib.tree"))
    dpu.child("port", 1).offer("link_layer", "Ethernet", at("ib.tree"))
    roles = {nic.name: nic.role for nic in assemble(draft, "h").nics}
    assert [roles[f"mlx5_{n}"] for n in range(4)] == [NicRole.COMPUTE] * 4
    assert roles["mlx5_9"] is NicRole.STORAGE


def test_an_empty_draft_is_an_empty_node() -> None:
    node = assemble(NodeDraft(), "h")
    assert (node.host, node.gpus, node.nics, node.links) == ("h", (), (), ())
