"""`ibv_devinfo`: devices, ports, rates and GIDs, with and without `-v`."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, values
from tests.tables import examples, texts
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.rdma_blocks import IbvDevinfo

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"

TEXTS = texts(__file__)
VERBOSE = TEXTS["verbose"]

EFA = TEXTS["efa"]


def filled(text: str) -> NodeDraft:
    return draft_by(IbvDevinfo(), Blob("ibv.txt", text.encode()))


def port(text: str, device: str = "mlx5_0", number: int = 1) -> Entity:
    return filled(text).nic(rdma=device).child("port", number)


def value(entity: Entity, name: str) -> object:
    return entity.offers[name][0].value


def test_verbose_output_gives_every_field_of_a_port() -> None:
    entity = port(VERBOSE)
    assert {name: value(entity, name) for name in entity.offers} == {
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        "max_mtu": 4096,
        "active_mtu": 1024,
        "lid": 418,
        "sm_lid": 1,
        "link_layer": "InfiniBand",
        "lanes": 4,
        "speed_name": "NDR",
        "rate_gbps": 400.0,
        "gids": ("0 fe80::a088:c203:55:1234", "3 ::ffff:198.51.100.6 RoCE v2"),
    }


def test_the_device_is_named_as_the_kernel_names_it() -> None:
    nic = filled(VERBOSE).nic(rdma="mlx5_0")
    assert {name: value(nic, name) for name in nic.offers} == {
        "transport": "InfiniBand",
        "firmware": "28.41.1000",
        "node_guid": "a088:c203:0055:1234",
        "sys_image_guid": "a088:c203:0055:1234",
        "hca_type": "MT4129",
        "board_id": "MT_0000000838",
    }


def test_verbose_attributes_and_flags_are_no_unread_lines() -> None:
    assert IbvDevinfo().parse(Blob("v", VERBOSE.encode())).unread == []


def test_efa_has_no_mellanox_type_and_an_unspecified_link_layer() -> None:
    nic = filled(EFA).nic(rdma="rdmap0s6")
    assert (value(nic, "transport"), "hca_type" in nic.offers) == ("unspecified", False)
    assert value(nic.child("port", 1), "link_layer") == "Unspecified"


def test_misspelt_states_are_understood() -> None:
    text = VERBOSE.replace("LINK_UP (5)", "PORT_CONFIGURATION TRAINNING (4)").replace(
        "PORT_ACTIVE (4)", "PORT_INIT (2)"
    )
    assert (value(port(text), "phys_state"), value(port(text), "state")) == ("PortConfigurationTraining", "INIT")


def test_a_tool_older_than_the_hardware_still_tells_the_rate() -> None:
    entity = port(VERBOSE.replace("100.0 Gbps (128)", "invalid speed (128)"))
    assert (value(entity, "rate_gbps"), value(entity, "speed_name")) == (400.0, "NDR")


def test_an_unreadable_width_loses_the_rate_and_nothing_else() -> None:
    entity = port(VERBOSE.replace("4X (2)", "invalid width (0)"))
    assert (value(entity, "rate_gbps"), value(entity, "state"), value(entity, "sm_lid")) == (None, "ACTIVE", 1)


def test_ports_of_one_device_are_told_apart() -> None:
    second = "\t\tport:\t2\n\t\t\tstate:\t\t\tPORT_DOWN (1)\n\t\t\tGID[  0]:\t\tfe80::2\n"
    draft = filled(VERBOSE.rstrip() + "\n" + second)
    two = draft.nic(rdma="mlx5_0").child("port", 2)
    assert (value(two, "state"), value(two, "gids")) == ("DOWN", ("0 fe80::2",))


def test_a_second_device_does_not_inherit_from_the_first() -> None:
    nic = filled(VERBOSE + "hca_id:\tmlx5_1\n\tfw_ver:\t\t\t\t22.38.1900\n").nic(rdma="mlx5_1")
    assert set(nic.offers) == {"firmware"}
    assert nic.children == {}


def test_a_fragment_without_a_header_is_read_but_given_to_no_device() -> None:
    text = "\t\t\tphys_state:\t\tLINK_UP (5)\n\t\t\tGID[  0]:\t\tfe80::1, RoCE v1\n"
    assert IbvDevinfo().recognises(text)
    assert list(filled(text).entities("nic")) == []


@examples("text")
def test_other_formats_are_not_taken_for_ibv_devinfo(text: str) -> None:
    assert not IbvDevinfo().recognises(text)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not there")
def test_ibv_devinfo_of_the_corpus_is_recognised_and_read_whole() -> None:
    seen = 0
    for path in sorted((CORPUS / "links").glob("*.txt")):
        text = path.read_text()
        mine = "ibv_devinfo" in text.split("\n")[1]
        assert IbvDevinfo().recognises(text) == mine, path.name
        if mine:
            seen += 1
            parsed = IbvDevinfo().parse(Blob(path.name, text.encode()))
            assert (parsed.unread_count, bool(parsed.records)) == (0, True), path.name
    assert seen


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not there")
def test_facts_of_the_corpus_cases_are_recovered() -> None:
    checked = 0
    for path in sorted((CORPUS / "cases").glob("*.json")):
        case = json.loads(path.read_text())
        for text in (entry["text"] for entry in case["inputs"] if entry["kind"] == "ibv_devinfo"):
            nic = next(filled(text).entities("nic"), None)
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


@given(st.lists(st.sampled_from(VERBOSE.splitlines(keepends=True)), max_size=60), st.integers(0, 60))
def test_lines_in_any_order_or_cut_off_are_read_without_an_exception(lines: list[str], cut: int) -> None:
    text = "".join(lines)
    assert len(list(filled(text[: max(0, len(text) - cut)]).entities("nic"))) <= 2


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=40))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    entity = port(VERBOSE.replace("1024 (3)", junk))
    assert (value(entity, "state"), value(entity, "max_mtu"), value(entity, "rate_gbps")) == ("ACTIVE", 4096, 400.0)


def test_lines_that_a_pattern_took_out_are_of_the_ports_in_their_order() -> None:
    text = (
        "hca_id: mlx5_0\n\t\tstate: PORT_ACTIVE (4)\n\t\tlink_layer: InfiniBand\n"
        "\t\tstate: PORT_DOWN (1)\n\t\tlink_layer: Ethernet\nhca_id: mlx5_1\n\t\tstate: PORT_DOWN (1)\n"
    )
    first, second = port(text), port(text, number=2)
    assert (value(first, "state"), value(first, "link_layer")) == ("ACTIVE", "InfiniBand")
    assert (value(second, "state"), value(second, "link_layer")) == ("DOWN", "Ethernet")
    assert value(port(text, "mlx5_1"), "state") == "DOWN"
