"""`/sys/class/net` and the route tables from a tree file."""

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.network.interfaces import MAX_COUNTERS, Ethtool
from topodiag.evidence.network.sys_net import SysInfiniband, SysNet

WHOLE = text_of("sys-net", "WHOLE")


def filled(text: str, sample: int = 0) -> NodeDraft:
    return draft_by(SysNet(), Blob("net.tree", text.encode()), sample)


def test_without_a_route_table_nothing_is_said_of_default_routes() -> None:
    text = "".join(line for line in WHOLE.splitlines(keepends=True) if "_route" not in line and "/route" not in line)
    assert "default_route" not in filled(text).netdev("eth0").offers


def test_bonding_masters_is_no_interface() -> None:
    assert "bonding_masters" not in {entity.keys["name"] for entity in filled(WHOLE).entities("netdev")}


# --- `/sys/class/infiniband` from a tree file: identity, ports, counters, and what the kernel refuses ---------


def infiniband(text: str, sample: int = 0) -> NodeDraft:
    return draft_by(SysInfiniband(), Blob("ib.tree", text.encode()), sample)


def test_the_second_sample_holds_counters_alone() -> None:
    text = "= sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error\t9\n"
    reading = infiniband(text, sample=1).nic(rdma="mlx5_0").child("port", 1).counters["symbol_error"][0]
    assert (reading.value, reading.sample) == (9, 1)


# --- what `ethtool` says in a second sample, in floods and with bad values; its readings are rows of a table --

CAPTURED = Item("ethtool-S-ens1", "ethtool-stats", "commands/x.txt", argv=("ethtool", "-S", "ens1"))
FAST, DRIVER, STATS = (text_of("ethtool", name) for name in ("FAST", "DRIVER", "STATS"))


def captured(text: str, sample: int = 0) -> Entity:
    return draft_by(Ethtool(), Blob("ethtool.txt", text.encode(), CAPTURED), sample).netdev("ens1")


def test_the_second_sample_is_marked() -> None:
    reading = captured(STATS, sample=1).counters["rx_discards_phy"][0]
    assert (reading.value, reading.sample) == (17, 1)


def test_more_counters_than_any_driver_has_are_not_kept() -> None:
    text = "NIC statistics:\n" + "".join(f"     c{number}x: 1\n" for number in range(MAX_COUNTERS + 50))
    assert len(captured(text).counters) == MAX_COUNTERS
