"""`ibstat`: what is read of its two forms, and what its failures cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from tests.tables import examples
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.rdma_blocks import Ibstat

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "links"

TWO_DEVICES = """\
CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.41.1000
\tHardware version: 0
\tNode GUID: 0xa088c20300551234
\tSystem image GUID: 0xa088c20300551234
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tEffective speed: 400
\t\tBase lid: 418
\t\tLMC: 0
\t\tSM lid: 1
\t\tCapability mask: 0xa751e848
\t\tPort GUID: 0xa088c20300551234
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tCA type: MT4125
\tNumber of ports: 1
\tPort 1:
\t\tState: Down
\t\tPhysical state: Disabled
\t\tRate: 40
\t\tLink layer: Ethernet
"""


def filled(text: str) -> NodeDraft:
    return draft_by(Ibstat(), Blob("ibstat.txt", text.encode()))


def value(entity: Entity, name: str) -> object:
    return entity.offers[name][0].value


def port(text: str, device: str = "mlx5_0", number: int = 1) -> Entity:
    return filled(text).nic(rdma=device).child("port", number)


def test_a_port_says_its_state_in_the_kernels_words() -> None:
    entity = port(TWO_DEVICES)
    facts = {name: value(entity, name) for name in entity.offers}
    assert facts == {
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        "rate_gbps": 400.0,
        "lid": 418,
        "sm_lid": 1,
        "guid": "a088:c203:0055:1234",
        "link_layer": "InfiniBand",
    }


def test_a_device_says_type_firmware_and_guid() -> None:
    nic = filled(TWO_DEVICES).nic(rdma="mlx5_0")
    assert (value(nic, "hca_type"), value(nic, "firmware"), value(nic, "node_guid")) == (
        "MT4129",
        "28.41.1000",
        "a088:c203:0055:1234",
    )


def test_the_rate_of_a_port_that_is_down_is_offered_as_it_stands() -> None:
    entity = port(TWO_DEVICES, "mlx5_1")
    assert (value(entity, "state"), value(entity, "rate_gbps")) == ("DOWN", 40.0)


def test_a_fact_knows_its_line() -> None:
    origin = port(TWO_DEVICES).offers["rate_gbps"][0].origin
    assert (origin.source, origin.line, origin.text) == ("ibstat.txt", 11, "Rate: 400")


def test_the_form_for_one_port_has_a_colon_and_no_indentation() -> None:
    text = "CA: 'mlx5_3'\nPort 2:\nState: Initializing\nPhysical state: LinkUp\nRate: 200\nSM lid: 0\n"
    entity = port(text, "mlx5_3", 2)
    assert (value(entity, "state"), value(entity, "sm_lid")) == ("INIT", 0)
    assert Ibstat().recognises(text)


def test_fdr10_is_named() -> None:
    entity = port("CA 'mlx4_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 40 (FDR10)\n", "mlx4_0")
    assert (value(entity, "rate_gbps"), value(entity, "speed_name")) == (40.0, "FDR10")


def test_ports_of_one_device_are_told_apart() -> None:
    text = "CA 'mlx4_0'\n\tPort 1:\n\t\tState: Active\n\tPort 2:\n\t\tState: Down\n"
    assert [value(port(text, "mlx4_0", number), "state") for number in (1, 2)] == ["ACTIVE", "DOWN"]


def test_an_unknown_state_loses_only_itself() -> None:
    text = TWO_DEVICES.replace("State: Active", "State: ???", 1)
    entity = port(text)
    assert value(entity, "state") is None
    assert entity.offers["state"][0].why
    assert value(entity, "rate_gbps") == 400.0


def test_a_device_that_the_tool_could_not_read_is_named_as_not_observed() -> None:
    text = "ibstat: stat of IB device 'mlx5_7' failed: No such file or directory\n" + TWO_DEVICES
    draft = filled(text)
    assert [missing.what for missing in draft.missing] == ["ibstat of mlx5_7"]
    assert value(draft.nic(rdma="mlx5_0").child("port", 1), "state") == "ACTIVE"


def test_indentation_and_quoting_of_a_paste_do_not_matter() -> None:
    quoted = "".join(f"> {line.strip()}\n" for line in TWO_DEVICES.splitlines())
    assert value(port(quoted), "lid") == 418


@examples("text")
def test_other_formats_are_not_taken_for_ibstat(text: str) -> None:
    assert not Ibstat().recognises(text)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not there")
def test_ibstat_of_the_corpus_is_recognised_and_read_whole() -> None:
    texts = {path.name: path.read_text() for path in sorted(CORPUS.glob("*.txt"))}
    mine = {name: text for name, text in texts.items() if "; ibstat" in text or "); ibstat" in text}
    assert mine
    for name, text in texts.items():
        assert ("ibstat" in registry.recognise(text)) == (name in mine), name
    for name, text in mine.items():
        parsed = Ibstat().parse(Blob(name, text.encode()))
        assert parsed.unread_count == 0, name
        nics = list(filled(text).entities("nic"))
        assert len(nics) == text.count("CA '"), name
        assert all(value(nic.child("port", 1), "state") for nic in nics), name


@given(st.lists(st.sampled_from(TWO_DEVICES.splitlines(keepends=True)), max_size=60), st.integers(0, 60))
def test_lines_in_any_order_or_cut_off_are_read_without_an_exception(lines: list[str], cut: int) -> None:
    text = "".join(lines)
    draft = filled(text[: max(0, len(text) - cut)])
    assert len(list(draft.entities("nic"))) <= 2


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=40))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    entity = port(TWO_DEVICES.replace("Base lid: 418", f"Base lid: {junk}", 1))
    assert (value(entity, "state"), value(entity, "sm_lid"), value(entity, "rate_gbps")) == ("ACTIVE", 1, 400.0)


def test_ports_without_their_numbers_stand_in_their_order() -> None:
    text = (
        '$ ibstat | grep -E "CA \'|State|Rate"\n'
        "CA 'mlx5_0'\n\t\tState: Active\n\t\tRate: 200\n\t\tState: Down\n\t\tRate: 10\n"
        "CA 'mlx5_1'\n\t\tState: Initializing\n\t\tRate: 400\n"
    )
    assert [value(port(text, number=number), "state") for number in (1, 2)] == ["ACTIVE", "DOWN"]
    assert value(port(text, "mlx5_1"), "rate_gbps") == 400
