"""The tree from NCCL's print of its system: NCCL's choices follow from it as from the file that it was printed of."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.model.nccl_view import NcclSystem, SystemDevice, SystemLink
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.topo.printed import bus_of, tree_of_print

CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus" / "jobs"
LIKE_THEIR_FILE = (
    "a_h100_1node", "b_h100_2node", "c_a100_1node", "d_pcie4_intel", "d_pcie8_l40s", "e_h100_gpu3_12nvl_1node",
    "f_h100_2node_1nic", "g_tp8_scatter", "h_dgx1v", "h_gb200_2tray", "v2.18.6-1_a_h100_1node",
    "v2.21.5-1_b_h100_2node", "v2.30.7-1_a_h100_1node",
)  # fmt: skip
"""Jobs on one kind of machine whose settings do not change what the search finds."""


def small() -> NcclSystem:
    """Two GPUs with NVLink on one switch, one NIC: what NCCL prints of it."""
    devices = [
        SystemDevice("CPU", "0-0", numbers=(1, 1, 3)),
        SystemDevice("PCI", "0-17000", "CPU/0-0"),
        SystemDevice("NIC", "0-18000", "PCI/0-17000"),
        SystemDevice("NET", "0-0", "NIC/0-18000", speed_gbs=50.0, port=1, guid="946dae"),
        SystemDevice("GPU", "0-1b000", "PCI/0-17000", 0),
        SystemDevice("GPU", "0-1c000", "PCI/0-17000", 1),
    ]
    links = [
        SystemLink("CPU/0-0", "PCI/0-17000", "PCI", 48.0),
        SystemLink("PCI/0-17000", "NIC/0-18000", "PCI", 24.0),
        SystemLink("PCI/0-17000", "GPU/0-1b000", "PCI", 48.0),
        SystemLink("PCI/0-17000", "GPU/0-1c000", "PCI", 6.0),
        SystemLink("GPU/0-1b000", "GPU/0-1c000", "NVL", 82.4),
        SystemLink("GPU/0-1c000", "GPU/0-1b000", "NVL", 82.4),
        SystemLink("NIC/0-18000", "NET/0-0", "NET", 50.0),
    ]
    return NcclSystem(devices={device.name: device for device in devices}, links=tuple(links))


def test_bus_ids_are_unpacked() -> None:
    assert bus_of("0-1b000") == "0000:1b:00.0"
    assert bus_of("1-801000") == "0008:01:00.0"


def test_links_come_back_as_speeds_lanes_and_numbers_of_nvlinks() -> None:
    tree = tree_of_print(small(), 90)
    by_bus = {pci.get("busid"): pci for pci in tree.walk() if pci.tag == "pci"}
    shown = (by_bus["0000:1b:00.0"].get("link_speed"), by_bus["0000:1b:00.0"].get("link_width"))
    assert shown == ("32.0 GT/s PCIe", "16")
    told = (by_bus["0000:18:00.0"].get("link_speed"), by_bus["0000:18:00.0"].get("link_width"))
    assert told == ("16.0 GT/s PCIe", "16")
    assert (by_bus["0000:1c:00.0"].get("link_speed"), by_bus["0000:1c:00.0"].get("link_width")) in {
        ("8.0 GT/s PCIe", "8"), ("5.0 GT/s PCIe", "16"),
    }  # fmt: skip
    assert [link.get("count") for link in tree.walk() if link.tag == "nvlink"] == ["4", "4"]
    assert [net.get("speed") for net in tree.walk() if net.tag == "net"] == ["400000"]


def test_nccl_would_take_it() -> None:
    tree = tree_of_print(small(), 90)
    assert tree is not None
    assert predict_tree(tree, nodes=2).accepted


def test_a_print_without_gpus_or_cpus_is_no_machine() -> None:
    assert tree_of_print(NcclSystem(), 90) is None
    lone = {"GPU/0-1b000": SystemDevice("GPU", "0-1b000", "PCI/0-17000")}
    assert tree_of_print(NcclSystem(devices=lone), 90) is None


KINDS = st.sampled_from(["CPU", "PCI", "DEV", "GPU", "NIC", "NET", "NVS"])
IDS = st.sampled_from(["0-0", "0-17000", "0-1b000", "1-0", "x", "", "0-zz", "-"])


@given(
    st.lists(st.tuples(KINDS, IDS, KINDS, IDS), max_size=12),
    st.lists(st.tuples(KINDS, IDS, KINDS, IDS, st.floats(0, 1e6)), max_size=12),
)
def test_any_print_is_taken_without_a_complaint(
    devices: list[tuple[str, str, str, str]], links: list[tuple[str, str, str, str, float]]
) -> None:
    system_devices = {
        f"{kind}/{name}": SystemDevice(kind, name, "" if kind == "CPU" else f"{above}/{place}")
        for kind, name, above, place in devices
    }
    wires = tuple(SystemLink(f"{a}/{b}", f"{c}/{d}", "NVL", gbs) for a, b, c, d, gbs in links)
    tree_of_print(NcclSystem(devices=system_devices, links=wires), 90)


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus is not here: {CORPUS}")
@pytest.mark.parametrize("name", LIKE_THEIR_FILE)
def test_the_search_finds_on_it_what_it_finds_on_the_file(name: str) -> None:
    from topodiag.app.case.topology import open_topology  # noqa: PLC0415
    from topodiag.app.logs import logs as diagnose_logs  # noqa: PLC0415 - numpy, for the corpus alone

    folder = CORPUS / name
    truth = json.loads((folder / "truth.json").read_text())
    version = truth["nccl_version"][0].partition("+")[0]
    (file,) = (path for path in folder.glob("*.xml") if path.name != "graph.xml")
    known = open_topology(str(file)).tree
    sm = next(int(gpu.get("sm") or 0) for gpu in known.walk() if gpu.tag == "gpu")
    jobs = diagnose_logs([str(folder / "logs")]).jobs
    comm = max((c for job in jobs for c in job.communicators if c.systems), key=lambda c: c.nranks)
    tree = tree_of_print(next(iter(comm.systems.values())), sm, int(version.split(".")[1]))
    assert tree is not None
    nodes = len(truth["hosts"])
    prediction, expected = (predict_tree(element, nodes=nodes, version=version) for element in (tree, known))
    graphs = [
        [(g.pattern, g.channels, g.bw_intra, g.bw_inter, g.type_intra, g.type_inter) for g in prediction.graphs]
        for prediction in (prediction, expected)
    ]
    assert graphs[0] == graphs[1]
