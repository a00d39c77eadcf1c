"""A node as facts in long form: what each row says, and what has none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks.nodes import hgx_h100, link, read
from topodiag.fleet.facts import facts_of
from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.node import Node
from topodiag.model.provenance import Counter, Origin
from topodiag.model.system import KernelEvent, Os


def rows(node: Node) -> dict[tuple[str, str, str], NodeFact]:
    return {(fact.family, fact.part, fact.key): fact for fact in facts_of(node)}


def with_command_line(text: str) -> dict[tuple[str, str, str], NodeFact]:
    return rows(Node("n1", os=Os(cmdline=read(text, "proc/cmdline", 1))))


def test_a_secret_of_the_command_line_is_hidden_though_its_name_stands_in_another_field() -> None:
    node_facts = with_command_line(
        "ro rd.iscsi.password=hunter2 netroot=iscsi:bob:hunter2@10.0.0.1::3260:1:iqn.x iommu=pt"
    )
    assert "hunter2" not in str(list(node_facts.values()))
    assert node_facts["kernel command line", "", "rd.iscsi.password"].value == "<hidden>"
    assert node_facts["kernel command line", "", "iommu"].value == "pt"


def test_each_fact_of_a_node_has_one_row() -> None:
    node_facts = facts_of(hgx_h100())
    assert len(rows(hgx_h100())) == len(node_facts)


def test_a_row_names_family_part_key_value_and_where_it_was_read() -> None:
    node = hgx_h100()
    fact = rows(node)["nvlink", "gpu3", "links"]
    assert (fact.value, fact.kind, fact.source) == ("18 active", FactKind.CATEGORY, "nvlink-s:0")


def test_what_is_not_known_has_no_row() -> None:
    assert facts_of(Node("bare")) == ()


def test_serials_and_addresses_are_identities() -> None:
    node = hgx_h100()
    node = replace(node, gpus=(replace(node.gpus[0], uuid=read("GPU-1")),))
    assert rows(node)["gpu", "gpu0", "uuid"].kind is FactKind.IDENTITY


def test_paths_are_no_fact_where_nothing_tells_of_nvlinks() -> None:
    """A node whose nvidia-smi hangs shows its PCIe tree alone: it must not stand apart for what was not read."""
    whole = hgx_h100()
    blind = replace(whole, smi_matrix={}, gpus=tuple(replace(gpu, nvlinks=(), name=read(None)) for gpu in whole.gpus))
    assert ("pairing", "gpu0", "GPUs by path") in rows(whole)
    assert ("pairing", "gpu0", "GPUs by path") not in rows(blind)


def test_which_gpus_a_gpu_may_reach_is_a_fact_of_it() -> None:
    node = hgx_h100()
    words = {(a.label, b.label): read("OK" if b.index < 7 else "NS") for a in node.gpus for b in node.gpus}
    node_facts = rows(replace(node, p2p={"read": words}))
    assert node_facts["peer access", "gpu0", "read"].value == "NS GPU7; OK GPU1-6"


def test_a_slot_is_as_able_as_the_port_above() -> None:
    node = hgx_h100()
    bus_id = node.gpus[0].bus_id or ""
    above = node.ancestors(bus_id)[0]
    older = replace(node, pci=node.pci | {above.bus_id: replace(above, max_gen=read(4))})
    assert rows(older)["pci", "gpu0", "slot's highest generation"].value == "4"


@pytest.mark.parametrize(
    "parameter", ["root=/dev/md0", "ip=10.0.0.4::10.0.0.1", "disk=2c8f0a1e-1111-2222-3333-1234567890ab"]
)
def test_a_parameter_of_the_kernel_that_names_a_disk_or_an_address_is_an_identity(parameter: str) -> None:
    node_facts = with_command_line(f"ro {parameter}")
    name = parameter.partition("=")[0]
    assert node_facts["kernel command line", "", name].kind is FactKind.IDENTITY
    assert node_facts["kernel command line", "", "ro"].kind is FactKind.CATEGORY


def test_several_values_of_one_parameter_are_one_value() -> None:
    node_facts = with_command_line("console=tty0 console=ttyS0 iommu=pt")
    assert node_facts["kernel command line", "", "console"].value == "tty0,ttyS0"
    assert node_facts["kernel command line", "", "iommu"].value == "pt"


def test_the_generation_of_an_idle_gpus_link_is_of_the_moment_and_its_width_is_not() -> None:
    node_facts = rows(hgx_h100())
    assert node_facts["pci", "gpu0", "generation"].kind is FactKind.MOMENT
    assert node_facts["pci", "gpu0", "width"].kind is FactKind.CATEGORY


def test_counters_carry_the_latest_reading_and_what_they_count() -> None:
    node = hgx_h100()
    counted = {
        "symbol_error": Counter("symbol_error", first=read(3), later=read(5)),
        "port_rcv_data": Counter("port_rcv_data", first=read(7)),
    }
    port = replace(node.nics[0].ports[0], counters=counted)
    node_facts = rows(replace(node, nics=(replace(node.nics[0], ports=(port,)),)))
    errors, data = (node_facts["nic", "mlx5_0/1", name] for name in counted)
    assert (errors.value, errors.kind, errors.unit) == (5, FactKind.COUNTER, "errors")
    assert (data.value, data.unit) == (7, "words of 4 bytes")


def test_links_that_did_not_train_are_in_the_value_of_their_gpu() -> None:
    node = hgx_h100()
    links = tuple(link(at, "inactive" if at < 6 else "active") for at in range(18))
    node = replace(node, gpus=(replace(node.gpus[0], nvlinks=links), *node.gpus[1:]))
    node_facts = rows(node)
    assert node_facts["nvlink", "gpu0", "links"].value == "12 active, 6 inactive"
    assert node_facts["nvlink", "gpu1", "links"].value == "18 active"


def test_each_gpu_says_which_network_cards_are_how_far_away() -> None:
    node_facts = rows(hgx_h100(4))
    assert node_facts["pairing", "gpu1", "network cards by path"].value == "PHB mlx5_0; PIX mlx5_1; SYS mlx5_2-3"
    assert node_facts["pairing", "gpu1", "nearest network cards"].value == "mlx5_1 over PIX"


def test_troubles_in_the_kernels_log_are_counted_by_part_and_kind() -> None:
    node = hgx_h100()
    at = Origin("dmesg.txt", 4)
    events = tuple(KernelEvent("xid", "Xid 79", at, bus_id=node.gpus[2].bus_id, code=79) for _ in range(3))
    fact = rows(replace(node, events=events))["kernel log", "gpu2", "xid 79"]
    assert (fact.value, fact.kind, fact.source) == (3, FactKind.COUNTER, "dmesg.txt:4")


def test_the_rate_of_a_port_that_is_down_is_no_fact() -> None:
    node = hgx_h100()
    port = replace(node.nics[0].ports[0], state=read("DOWN"))
    node_facts = rows(replace(node, nics=(replace(node.nics[0], ports=(port,)),)))
    assert ("nic", "mlx5_0/1", "rate") not in node_facts


def test_firmware_of_the_machine_and_of_its_gpus_are_facts() -> None:
    node = hgx_h100()
    gpus = tuple(replace(gpu, vbios=read("96.00.89.00.01")) for gpu in node.gpus)
    node_facts = rows(replace(node, os=replace(node.os, bios=read("2.16 12/05/2023")), gpus=gpus))
    assert node_facts["bios", "", "BIOS"].value == "2.16 12/05/2023"
    assert node_facts["gpu", "gpu7", "VBIOS"].value == "96.00.89.00.01"


def test_locked_memory_without_a_limit_is_said_to_be_unlimited() -> None:
    node_facts = [rows(Node("n1", os=Os(memlock_bytes=read(limit, "limits", 1))))["limits", "", "locked memory"]
            for limit in (-1, 65536)]  # fmt: skip
    assert [(node_fact.value, node_fact.unit) for node_fact in node_facts] == [
        ("unlimited", "bytes"),
        ("65536", "bytes"),
    ]
