"""Nodes whose captures differ in identities and measured numbers alone are made from a sibling's, and are right."""

import re
from hashlib import sha256

import pytest

from fixtures.generate import bundle
from fixtures.generate.machines.dgx_h100 import dgx_h100
from topodiag.evidence.host.os_state import OsState
from topodiag.evidence.intake.bundle import Evidence, from_files
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.network.interfaces import Ethtool
from topodiag.evidence.network.sys_net import SysInfiniband, SysNet
from topodiag.evidence.nvidia.nvidia_smi_xml import NvidiaSmiXml
from topodiag.fleet import sibling_nodes as module
from topodiag.fleet.digest import digest_of
from topodiag.fleet.sibling_nodes import MOST_FAILURES, MOST_PATTERNS, Siblings
from topodiag.model.node import Node

RDMA = "= sys/class/infiniband/mlx5_0/"
TEXTS = {
    "sys-infiniband": f"""{RDMA}node_guid\t{{guid}}
{RDMA}sys_image_guid\t{{guid}}
{RDMA}node_desc\t{{host}} mlx5_0
{RDMA}ports/1/state\t4: ACTIVE
{RDMA}ports/1/rate\t{{rate}} Gb/sec (4X NDR)
{RDMA}ports/1/link_layer\tInfiniBand
{RDMA}ports/1/lid\t0x1
{RDMA}ports/1/gids/0\tfe80:0000:0000:0000:{{guid}}
{RDMA}ports/1/counters/port_xmit_data\t{{sent}}
{RDMA}ports/1/counters/symbol_error\t{{errors}}
""",
    "os-state": "= proc/uptime\t{uptime} 365783554.08\n= proc/version\tLinux version 5.15.0-1047 (b@c)\n",
    "nvidia-smi-nvlink": "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-{uuid})\n\t Link 0: 26.562 GB/s\n",
    "settings": "= environ\tSLURM_NODELIST={host}\n",
}
OF = {
    "guid": ("a088:c203:0abc:0eaf", "a088:c203:1234:5678", "946d:ae03:00c1:0d1e", "b8ce:f603:0041:0532"),
    "uuid": (
        "94635532-b65a-6443-bb19-5513e3eabba6", "01234567-89ab-cdef-0123-456789abcdef",
        "fedcba98-7654-3210-fedc-ba9876543210", "deadbeef-0102-0304-0506-0708090a0b0c",
    ),
    "sent": ("175002770301909", "1", "0", "99"),
    "uptime": ("1815142.55", "1815179.50", "12.25", "0.00"),
    "errors": ("0", "0", "0", "0"),
    "rate": ("400", "400", "400", "400"),
}  # fmt: skip


def capture(number: int, **given: str) -> Evidence:
    """A capture of node `number`; `given` are other values, and other texts by kind."""
    host = given.get("host", f"node-{number:03d}")
    values = {name: given.get(name, of[number % 4]) for name, of in OF.items()} | {"host": host}
    texts = {kind: given[kind] if kind in given else text.format(**values) for kind, text in TEXTS.items()}
    blobs = [Blob(f"{kind}.txt", text.encode(), Item(kind, kind, f"{kind}.txt")) for kind, text in texts.items()]
    return Evidence(f"{host}.tar.gz", blobs, host=host, time=f"2026-03-0{number + 1}T08:00:00Z", is_bundle=True)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that were read whole."""
    hosts: list[str] = []

    def counted(evidence: Evidence):  # type: ignore[no-untyped-def]
        hosts.append(evidence.host)
        return read_node(evidence)

    monkeypatch.setattr(module, "read_node", counted)
    return hosts


def read(*captures: Evidence) -> tuple[Siblings, list[Node]]:
    """The nodes of captures, in turn; each must be what reading it whole gives."""
    siblings = Siblings()
    nodes = [siblings.read(evidence) for evidence in captures]
    assert nodes == [read_node(evidence).node for evidence in captures]
    return siblings, nodes


def test_the_third_of_siblings_is_made_from_the_first_and_is_what_reading_it_gives(whole: list[str]) -> None:
    _, nodes = read(*map(capture, range(4)))
    assert whole == ["node-000", "node-001"]
    port = nodes[3].nics[0].ports[0]
    assert port.counters["port_xmit_data"].latest.value == 99
    assert str(port.counters["port_xmit_data"].latest.origin).startswith("sys-infiniband.txt:")
    assert nodes[3].nics[0].node_guid.value == "b8ce:f603:0041:0532"
    assert nodes[3].os.uptime_s.value == 0.0
    assert nodes[3].host == "node-003"


def test_a_line_that_varies_for_the_first_time_is_read_once_more(whole: list[str]) -> None:
    _, nodes = read(capture(0), capture(1), capture(2, errors="9"), capture(3), capture(1, errors="12"))
    assert whole == ["node-000", "node-001", "node-002"]
    counts = [node.nics[0].ports[0].counters["symbol_error"].latest.value for node in nodes]
    assert counts == [0, 0, 9, 0, 12]


XID = "[{0}.000000] NVRM: Xid (PCI:0000:1b:00): {1}, pid=1, name=a\n"


def test_what_happened_is_read_of_each_node_and_the_rest_is_not(whole: list[str]) -> None:
    logs = ("[1.000000] quiet\n", XID.format(7, 79), XID.format(9, 48) * 2 + XID.format(12, 79), "", XID.format(1, 31))
    captures = [capture(at % 4) for at in range(len(logs))]
    for evidence, log in zip(captures, logs, strict=True):
        begin, end = "[0.500000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15\n", "[901.000000] quiet\n"
        data = (begin + log + end).encode()
        evidence.blobs.append(Blob("dmesg.txt", data, Item("dmesg", "kernel-log", "dmesg.txt")))
    _, nodes = read(*captures)
    assert whole == ["node-000", "node-001"]
    assert [[event.code for event in node.events] for node in nodes] == [[], [79], [48, 79], [], [31]]


def test_a_log_that_stays_the_same_keeps_the_names_in_it(whole: list[str]) -> None:
    captures = [capture(at) for at in range(4)]
    log = f"[1.000000] NVRM: Xid (PCI:0000:1b:00): 79, on node-000 {OF['uuid'][0]}\n"
    for evidence in captures:
        evidence.blobs.append(Blob("dmesg.txt", log.encode(), Item("dmesg", "kernel-log", "dmesg.txt")))
    _, nodes = read(*captures)
    assert len(whole) == 2
    assert all("node-000" in node.events[0].text for node in nodes)


def test_a_journal_that_speaks_of_services_is_read_whole(whole: list[str]) -> None:
    unit = (
        "Mar 01 08:00:00 h systemd[1]: Failed to start nvidia-fabricmanager.service - NVIDIA fabric manager service.\n"
    )
    captures = [capture(at) for at in range(3)]
    for evidence, log in zip(captures, (XID.format(1, 31), XID.format(2, 31), unit), strict=True):
        evidence.blobs.append(Blob("dmesg.txt", log.encode(), Item("dmesg", "kernel-log", "dmesg.txt")))
    _, nodes = read(*captures)
    assert nodes[2].os.services
    assert len(whole) == 3


IB, STATE = TEXTS["sys-infiniband"], TEXTS["os-state"]


@pytest.mark.parametrize(
    ("why", "other"),
    [
        ("a rate is no measured number", {"rate": "200"}),
        ("a state is no number", {"os-state": STATE.format(uptime="1.25").replace("5.15.0", "6.08.0")}),
        ("a line more", {"os-state": STATE.format(uptime="1.25") + "= proc/cmdline\tquiet\n"}),
        ("all zeros mean something", {"uuid": "00000000-0000-0000-0000-000000000000"}),
        ("a number that no source could read", {"sent": "9" * 24}),
        ("no number at all", {"sent": "Invalid argument"}),
        ("below zero", {"sent": "-1"}),
        ("lines end otherwise", {"os-state": STATE.format(uptime="1.25").replace("\n", "\r\n")}),
        ("a host is named that is not its own", {"settings": "= environ\tSLURM_NODELIST=node-777\n"}),
        ("a short name stands in many words", {"host": "sys"}),
    ],
)
def test_a_capture_that_differs_in_more_is_read_whole(whole: list[str], why: str, other: dict[str, str]) -> None:
    read(capture(0), capture(1), capture(2, **other))
    assert len(whole) == 3, why


def test_identities_that_are_equal_on_one_node_only_are_no_exchange(whole: list[str]) -> None:
    """Two adapters of one card have its GUID in common: where they do not, they are two cards."""
    text = IB.format(guid=OF["guid"][2], host="node-002", sent="1", errors="0", rate="400")
    read(capture(0), capture(1), capture(2, **{"sys-infiniband": text.replace(OF["guid"][2], OF["guid"][3], 1)}))
    assert len(whole) == 3


def test_an_identity_that_stays_in_another_line_is_no_exchange(whole: list[str]) -> None:
    texts = [f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-{uuid})\n(UUID: GPU-{OF['uuid'][3]})\n" for uuid in OF["uuid"]]
    read(*(capture(at, **{"nvidia-smi-nvlink": texts[at]}) for at in (3, 0, 1, 2)))
    assert whole[:2] == ["node-003", "node-000"], "the first names one GPU twice: it is like no other"


def test_other_items_make_no_siblings(whole: list[str]) -> None:
    late = capture(2)
    late.missing.append(Item("nvml", "nvml", "", status="timeout"))
    read(capture(0), capture(1), late)
    assert len(whole) == 3


def test_a_text_that_is_there_twice_is_of_no_pattern(whole: list[str]) -> None:
    twice = [capture(at) for at in range(3)]
    for evidence in twice:
        evidence.blobs.append(evidence.blobs[0])
    read(*twice)
    assert len(whole) == 3


def test_a_pattern_that_does_not_foretell_its_second_serves_no_third(
    whole: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were a source to claim a line from which it makes more than a copy, the nodes would still be right."""
    rates = re.compile(r"= \S+/rate\t(?P<numbers>[0-9]+) Gb/sec \(4X NDR\)\Z|= \S+/lid\t0x(?P<hex>[0-9])\Z")
    monkeypatch.setattr(SysInfiniband, "measured", rates)
    siblings, nodes = read(*(capture(0, rate=rate) for rate in ("400", "200", "100", "50")))
    assert [node.nics[0].ports[0].rate_gbps.value for node in nodes] == [400, 200, 100, 50]
    assert len(siblings._patterns) <= MOST_PATTERNS


def test_a_wrong_claim_is_found_and_given_up(whole: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OsState, "measured", re.compile(r"= proc/version\tLinux version (?P<numbers>[0-9])"))
    texts = [STATE.format(uptime="1.00").replace("5.15.0", f"{kernel}.15.0") for kernel in range(9)]
    captures = [capture(0, **{"os-state": text}) for text in texts]
    siblings, _ = read(*captures)
    assert len(whole) == len(captures)
    assert max(siblings._failures.values()) == MOST_FAILURES


def test_what_is_held_is_bounded() -> None:
    captures = [capture(0, **{"os-state": f"= proc/version\tLinux version 5.{kernel}.0\n"}) for kernel in range(12)]
    siblings, _ = read(*captures)
    assert len(siblings._patterns) == MOST_PATTERNS


XML = """<?xml version="1.0" ?>
<nvidia_smi_log>
\t<timestamp>Mon Mar  {0:.1} 08:00:00 2026</timestamp>
\t<attached_gpus>1</attached_gpus>
\t<gpu id="00000000:1B:00.0">
\t\t<product_name>H100</product_name>
\t\t<serial>1650{0}</serial>
\t\t<gpu_temp>{0} C</gpu_temp>
\t\t<power_draw>{0}.27 W</power_draw>
\t</gpu>
</nvidia_smi_log>
"""


@pytest.mark.parametrize(
    ("kind", "text", "argv"),
    [
        (SysInfiniband.kind, "= sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error\t{0}\n", ()),
        (SysInfiniband.kind, "= sys/class/infiniband/mlx5_0/hw_counters/np_cnp_sent\t{0}\n", ()),
        (SysInfiniband.kind, "= sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan\t{0}\n", ()),
        (SysNet.kind, "= sys/class/net/eth0/mtu\t1500\n= sys/class/net/eth0/statistics/rx_bytes\t{0}\n", ()),
        (OsState.kind, "= proc/uptime\t{0}.25 {0}.75\n= proc/cmdline\tquiet\n", ()),
        (NvidiaSmiXml.kind, XML, ("nvidia-smi", "-q", "-x")),
        (Ethtool.kind, "NIC statistics:\n  rx_prio1_pause: {0}\n  rx1_bytes: {0}\n", ("ethtool", "-S", "e1")),
    ],
)  # fmt: skip
def test_a_measured_number_is_copied_whatever_it_is(
    whole: list[str], kind: str, text: str, argv: tuple[str, ...]
) -> None:
    """The claim of each source with `measured` lines."""
    item = Item(kind, kind, "a.txt", argv=argv)
    numbers = ("5", "1", "0", "31", "007", "123456789012", "4", "5")
    read(*(
        Evidence("x", [Blob("a.txt", text.format(number).encode(), item)], host=f"node-{number}", is_bundle=True)
        for number in numbers
    ))  # fmt: skip
    assert len(whole) == 2


def _machine(host: str, **counts: int) -> Evidence:
    """A DGX H100 of this name with identities, uptime and, of `mlx5_4`, counters of its own."""
    machine = dgx_h100("dgx-XXXXX")
    machine.nic("mlx5_4").counters.update(counts)
    own = int(sha256(host.encode()).hexdigest()[:7], 16) + 2**28
    uptimes = f"{machine.uptime_s:.2f}", f"{machine.uptime_s + own % 977:.2f}"
    files = {
        name: text.replace("dgx-XXXXX", host).replace(*uptimes)
        .replace("a51f73d5", f"{own:08x}").replace("a51f", f"{own:08x}"[:4]).encode()
        for name, text in bundle.files(machine).items()
    }  # fmt: skip
    return from_files(f"{host}.tar.gz", files)


def test_a_whole_machine_is_made_from_its_siblings(whole: list[str]) -> None:
    downed = {"dgx-00001": 0, "dgx-00002": 7, "gpu-rack7-node12": 0, "dgx-00004": 90_000}
    _, nodes = read(*(_machine(host, link_downed=count) for host, count in downed.items()))
    assert whole == ["dgx-00001", "dgx-00002"]
    found = [{finding.id for finding in digest_of(node, node.host).findings} for node in nodes]
    assert ["NIC003" in ids for ids in found] == [False, False, False, True]
