"""What tools and files say of RDMA devices: words, blocks of commands, mlxlink, sysfs, tests of pairs."""

import ipaddress
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, node_of, text_of, value, values
from tests.tables import examples
from topodiag.checks.nic.events import troubles
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.interfaces import MAX_COUNTERS, Ethtool
from topodiag.evidence.network.perftest import pair_runs
from topodiag.evidence.network.rdma_tools import Ibdev2netdev, IbvDevinfo, RdmaLink
from topodiag.evidence.network.sys_net import SysInfiniband, SysNet
from topodiag.words.unfilled import is_unfilled


@examples("text", "state")
def test_port_states(text: str, state: str | None) -> None:
    assert words.port_state(text) == state


@examples("text", "state")
def test_physical_states(text: str, state: str | None) -> None:
    assert words.phys_state(text) == state


@examples("reader", "text", "value")
def test_what_a_word_means(reader: str, text: str, value: Any) -> None:
    read = getattr(words, reader)(text)
    assert (list(read) if isinstance(read, tuple) else read) == value


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("400 Gb/sec (4X NDR)", (400.0, 4)),
        ("2.5 Gb/sec (1X SDR)", (2.5, 1)),
        ("10 Gb/sec (4X)", (10.0, 4)),
        ("100 Gb/sec (2X HDR)", (100.0, 2)),
        ("0 Gb/sec (4X)", (None, None)),
        ("fast", (None, None)),
        (" 40 (FDR10)", (40.0, None)),  # ibstat says no lanes
        (" 400", (400.0, None)),
        (" 0", (None, None)),
    ],
)
def test_rates(text: str, rate: tuple[float | None, int | None]) -> None:
    assert words.rate(text) == rate


def test_guids_have_one_spelling_and_zeros_are_none() -> None:
    assert words.guid("0xa088c20300551234") == words.guid("A088:C203:0055:1234") == "a088:c203:0055:1234"
    assert words.guid("0x0000000000000000") is None
    assert words.guid("0000:0000:0000:0000") is None


def test_gids_are_equal_whoever_printed_them() -> None:
    from_sysfs = words.gid(3, "0000:0000:0000:0000:0000:ffff:c633:6406", "RoCE v2")
    assert from_sysfs == words.gid(3, "::ffff:198.51.100.6", " RoCE v2") == "3 ::ffff:198.51.100.6 RoCE v2"
    assert words.gid(0, "fe80::1", "IB/RoCE v1") == "0 fe80::1 RoCE v1"
    assert words.gid(1, "::", "") is None


# --- which RDMA devices there are: `ibstat`, `ibv_devinfo`, `rdma link show` and `ibdev2netdev` are read whole


CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not there")
@pytest.mark.parametrize(("kind", "command"), [("ibstat", "; ibstat"), ("ibv-devinfo", r"\A.*\n.*ibv_devinfo")])
def test_rdma_tools_of_the_corpus_are_recognised_and_read_whole(kind: str, command: str) -> None:
    source = registry.source(kind)
    texts = {path.name: path.read_text() for path in sorted((CORPUS / "links").glob("*.txt"))}
    mine = {name: text for name, text in texts.items() if re.search(command, text)}
    assert mine
    for name, text in texts.items():
        assert (kind in registry.recognise(text)) == (name in mine), name
    for name, text in mine.items():
        parsed = source.parse(Blob(name, text.encode()))
        assert (parsed.unread_count, bool(parsed.records)) == (0, True), name
        nics = list(draft_by(source, text).entities("nic"))
        assert len(nics) == len(re.findall("CA '|^hca_id:", text, re.MULTILINE)), name
        assert all(value(port, "state") for nic in nics for port in nic.children.values()), name


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not there")
def test_facts_of_the_corpus_cases_are_recovered() -> None:
    checked = 0
    for path in sorted((CORPUS / "cases").glob("*.json")):
        case = json.loads(path.read_text())
        for text in (entry["text"] for entry in case["inputs"] if entry["kind"] == "ibv_devinfo"):
            nic = next(draft_by(IbvDevinfo(), text).entities("nic"), None)
            if nic is None:
                continue  # a table of GIDs that somebody cut out
            facts = values(next(iter(nic.children.values())))
            wanted = case["facts"]
            for name in wanted.keys() & {"active_mtu", "max_mtu", "link_layer"}:
                assert facts[name] == wanted[name], path.name
                checked += 1
            if "nic" in wanted:
                assert nic.keys["rdma"] == wanted["nic"], path.name
                checked += 1
            if "gids" in wanted:
                gids = facts["gids"]
                assert isinstance(gids, tuple)
                assert len(gids) == wanted["gids"], path.name
                v2 = {int(gid.split()[0]): gid.split()[1] for gid in gids if gid.endswith("RoCE v2")}
                local = [index for index, gid in v2.items() if ipaddress.IPv6Address(gid).is_link_local]
                assert local == wanted["bad"], path.name
                checked += 1
    assert checked


# --- `ibdev2netdev`: which interface belongs to which RDMA port -----------------------------------------------


@pytest.mark.parametrize("piece", [" port 1", "(", "mlx5_0 ", " ", "=="])
def test_a_line_of_one_piece_repeated_is_left(piece: str) -> None:
    text = (piece * 4000)[:4000] + "\n"
    assert Ibdev2netdev().parse(Blob("x", (text * 20).encode())).records == []


# --- `rdma link show`: InfiniBand, RoCE, old and new releases, and JSON ---------------------------------------

INFINIBAND = (
    "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 418 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP \n"
)
JSON = text_of("rdma-link", "JSON")


def facts(text: str, device: str, number: int = 1) -> dict[str, object]:
    entity: Entity = draft_by(RdmaLink(), text).nic(rdma=device).child("port", number)
    return {name: offers[0].value for name, offers in entity.offers.items()}


def test_counters_tell_no_state() -> None:
    text = "link mlx5_0/1 rx_write_requests 12 out_of_sequence 41002 local_ack_timeout_err 7\n"
    assert not RdmaLink().told(RdmaLink().parse(Blob("rdma.txt", text.encode())))


def test_pretty_json_knows_the_line_of_each_port() -> None:
    pretty = json.dumps(json.loads(JSON), indent=4)
    origin = draft_by(RdmaLink(), pretty).nic(rdma="mlx5_2").child("port", 1).offers["state"][0].origin
    assert RdmaLink().recognises(pretty)
    assert '"mlx5_2"' in pretty.split("\n")[origin.line - 1]


@pytest.mark.parametrize("text", ["[" * 100_000, "[" + "9" * 10_000 + "]", JSON[:-20], "[1, null]"])
def test_hostile_or_cut_json_is_left(text: str) -> None:
    parsed = RdmaLink().parse(Blob("j", text.encode()))
    assert parsed.records == []
    assert parsed.unread_count > 0


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=20))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    assume(not is_unfilled(junk))  # a line with a place like %s is a program's text
    document = facts(INFINIBAND.replace("lid 418", f"lid {junk}", 1), "mlx5_0")
    assert (document["state"], document["sm_lid"]) == ("ACTIVE", 1)


# --- `mlxlink`: state, rate, counters and the firmware's word on the signal of one port


TEXT = text_of("mlxlink", "TEXT")


def test_errors_that_remain_after_correction_are_those_of_a_poor_signal_above_the_limit() -> None:
    well = TEXT.format(word="No issue was observed.")
    assert not troubles(node_of(well + "Effective Physical BER : 15E-255\nSymbol BER : 1E-13\n"))
    (event,) = troubles(node_of(well + "Effective Physical BER : 8E-09\nSymbol BER : 4E-12\n"))
    assert event.words == (
        "its link is up with a poor signal: Effective Physical BER 8E-09, and 1e-12 is the most of a link that is well"
    )


def test_a_port_that_nobody_names_is_told_where_it_is_the_only_one() -> None:
    text = TEXT.replace("# mlxlink -d mlx5_5 -c\n", "").format(word="Bad signal integrity")
    other = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n"
    assert [nic.name for nic in node_of(text, other).nics] == ["mlx5_0"]
    assert [nic.name for nic in node_of(text + text).nics] == []


# --- tests of perftest whose pair of hosts is known


TEST = """### {a} -> {b}: ib_write_bw -d mlx5_4 --report_gbits
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_4
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             {rate}             {rate}\t\t   0.748444
"""


def measured(*rates: tuple[str, str, str]) -> str:
    return "".join(TEST.format(a=a, b=b, rate=rate) for a, b, rate in rates)


@pytest.mark.parametrize(
    ("text", "source", "pairs"),
    [
        (measured(("ws-1", "ws-2", "391.84"), ("ws-1", "ws-3", "196.31")), "x", [("ws-1", "ws-2"), ("ws-1", "ws-3")]),
        (measured(("ws-1", "ws-2", "391.84")), "out/gpu-07-gpu-12.txt", [("ws-1", "ws-2")]),
        (TEST.format(a="", b="", rate="391.84"), "out/gpu-07-gpu-12.txt", [("gpu-07", "gpu-12")]),
        (TEST.format(a="", b="", rate="391.84"), "ib_write_bw_n3_to_n14.log", [("n3", "n14")]),
        (TEST.format(a="", b="", rate="391.84"), "write-bw-2026-04-07.log", []),
    ],
    ids=["lines above", "a line before the name", "name of the file", "other signs in the name", "a date"],
)
def test_tests_whose_pair_is_known_are_runs_of_two_hosts(text: str, source: str, pairs: list[tuple[str, str]]) -> None:
    runs = pair_runs(text, source)
    assert [run.hosts for run in runs] == pairs
    assert all(run.top == (65536, pytest.approx(391.84 / 8)) for run in runs[:1])


# --- `/sys/class/net` and the route tables from a tree file


WHOLE = text_of("sys-net", "WHOLE")


def test_without_a_route_table_nothing_is_said_of_default_routes() -> None:
    text = "".join(line for line in WHOLE.splitlines(keepends=True) if "_route" not in line and "/route" not in line)
    assert "default_route" not in draft_by(SysNet(), text).netdev("eth0").offers


def test_bonding_masters_is_no_interface() -> None:
    assert "bonding_masters" not in {entity.keys["name"] for entity in draft_by(SysNet(), WHOLE).entities("netdev")}


# --- `/sys/class/infiniband` from a tree file: identity, ports, counters, and what the kernel refuses ---------


def test_the_second_sample_holds_counters_alone() -> None:
    text = "= sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error\t9\n"
    reading = draft_by(SysInfiniband(), text, sample=1).nic(rdma="mlx5_0").child("port", 1).counters["symbol_error"][0]
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
